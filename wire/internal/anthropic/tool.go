package anthropic

import (
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tool is the handle of a tool.
type tool struct {
	native middleware.Native
	v      rawjson.Value
	is     middleware.Tool // as decoded, but for Parameters
	schema string
}

// hosted are the beginnings of the types of tools that the provider runs.
// Others that it defines (bash, computer, text_editor, memory) are run by the
// client, and called as if it had declared them: so are the unknown ones,
// because a tool that is never called does no harm.
var hosted = []string{"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_"}

func readTool(v rawjson.Value) (*tool, error) {
	if v.Kind() != rawjson.Object {
		return nil, codec.Shapef("%s where a tool should be", v.Kind())
	}
	t := &tool{v: v}
	t.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: t}
	var err error
	if t.is.Name, err = text(v, "name"); err != nil {
		return nil, err
	}
	if t.is.Description, err = text(v, "description"); err != nil {
		return nil, err
	}
	t.is.Strict = v.Get("strict").Raw() == "true"
	switch schema := v.Get("input_schema"); schema.Kind() {
	case rawjson.Object:
		t.schema = schema.Raw()
	case rawjson.Invalid, rawjson.Null:
	default:
		return nil, codec.Shapef("%s where a schema should be", schema.Kind())
	}
	for _, h := range hosted {
		if strings.HasPrefix(v.Get("type").Str(), h) {
			t.is.Kind = middleware.KindHosted
		}
	}
	return t, nil
}

func (t *tool) neutral() middleware.Tool {
	out := t.is
	out.Native = &t.native
	if t.schema != "" {
		out.Parameters = []byte(t.schema)
	}
	return out
}

func (t *tool) unchanged(now middleware.Tool) bool {
	schema := string(now.Parameters)
	now.Parameters = nil
	return schema == t.schema && codec.SameTool(now, t.is)
}

// toolsOf returns tools as the wire has them. was are those of the request
// that they came from.
func toolsOf(tools []middleware.Tool, was []*tool) ([]string, error) {
	out := make([]string, len(tools))
	for i, now := range tools {
		n := now.Native
		if i < len(was) {
			n = known(n, &was[i].native)
		}
		t, err := codec.Handle(n, dialect, storedTool)
		switch {
		case err != nil:
			return nil, err
		case t == nil:
			out[i], err = freshTool(now)
		default:
			out[i], err = t.with(now)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func storedTool(raw string) (*tool, error) {
	doc, err := codec.Parse(raw)
	if err == nil {
		if t, err := readTool(doc.Root()); err == nil {
			return t, nil
		}
	}
	return nil, codec.Unencodablef("a Native that holds no tool")
}

// with returns t's text with what now has changed.
func (t *tool) with(now middleware.Tool) (string, error) {
	if t.unchanged(now) {
		return t.native.Raw, nil
	}
	if now.Kind != t.is.Kind {
		return "", codec.Unencodablef("a tool of another kind")
	}
	var members []member
	if now.Name != t.is.Name {
		members = append(members, kv("name", quote(now.Name)))
	}
	if now.Description != t.is.Description {
		members = append(members, kv("description", quote(now.Description)))
	}
	if string(now.Parameters) != t.schema {
		schema, err := schemaOf(now)
		if err != nil {
			return "", err
		}
		members = append(members, kv("input_schema", schema))
	}
	if now.Strict != t.is.Strict {
		members = append(members, kv("strict", strconv.FormatBool(now.Strict)))
	}
	return edited(t.v, members...)
}

func schemaOf(t middleware.Tool) (string, error) {
	switch {
	case len(t.Parameters) == 0:
		return `{"type":"object"}`, nil
	case codec.IsObject(string(t.Parameters)):
		return string(t.Parameters), nil
	}
	return "", codec.Unencodablef("a schema that is no JSON object")
}

func freshTool(t middleware.Tool) (string, error) {
	if t.Kind != middleware.KindFunction {
		return "", codec.Unencodablef("a tool of another provider")
	}
	schema, err := schemaOf(t)
	if err != nil {
		return "", err
	}
	members := []member{kv("name", quote(t.Name))}
	if t.Description != "" {
		members = append(members, kv("description", quote(t.Description)))
	}
	members = append(members, kv("input_schema", schema))
	if t.Strict {
		members = append(members, kv("strict", "true"))
	}
	return codec.Object(members...), nil
}
