package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// hosted are the beginnings of the types of tools that the provider runs.
// Others that it defines (bash, computer, text_editor, memory) are run by the
// client, and called as if it had declared them: so are the unknown ones,
// because a tool that is never called does no harm.
var hosted = []string{"web_search_", "web_fetch_", "code_execution_", "tool_search_tool_", "mcp_toolset", "advisor_"}

// readTool reads an element of tools: one that the client declares, or one that the
// provider defines, which has a type with a version in it:
//
//	{"name": …, "description": …, "input_schema": schema, "strict": true}
//	{"type": "bash_20250124", "name": "bash"}
//	{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}
func readTool(v rawjson.Value) (t middleware.Tool, err error) {
	if v.Kind() != rawjson.Object {
		return t, codec.Shapef("%s where a tool should be", v.Kind())
	}
	in := on.Reader()
	t.Name, t.Description = in.Text(v, "name"), in.Text(v, "description")
	if schema := in.Kind(v, "input_schema", rawjson.Object); schema.Exists() {
		t.Parameters = []byte(schema.Raw())
	}
	t.Strict, t.Kind, t.Native = v.Get("strict").Raw() == "true", toolKind(v), on.Native(v.Raw())
	return t, in.Err
}

// toolKind says who runs a tool. The zero value is that of a fresh one.
func toolKind(v rawjson.Value) middleware.Kind {
	if slices.ContainsFunc(hosted, func(begin string) bool { return strings.HasPrefix(v.Get("type").Str(), begin) }) {
		return middleware.KindHosted
	}
	return middleware.KindFunction
}

// toolText returns t as an element of tools.
func toolText(t middleware.Tool) (string, error) {
	return lens.Rewrite(on, t.Native, t, readTool, toolMembers)
}

// toolMembers projects a tool. The wire demands a schema of all but those that the
// provider defines.
func toolMembers(v rawjson.Value, t middleware.Tool) ([]lens.Member, error) {
	schema := string(t.Parameters)
	switch {
	case t.Kind != toolKind(v):
		return nil, codec.Unencodablef("a tool of another kind")
	case schema == "" && (!v.Exists() || on.Get(v, "input_schema").Exists()):
		schema = `{"type":"object"}`
	case schema != "" && !codec.IsObject(schema):
		return nil, codec.Unencodablef("a schema that is not a JSON object")
	}
	members := []lens.Member{lens.Text("name", t.Name), lens.Word("description", t.Description), lens.Raw("input_schema", schema), lens.Flag("strict", t.Strict)}
	if v.Get("strict").Exists() {
		members[3].Raw = strconv.FormatBool(t.Strict)
	}
	return members, nil
}
