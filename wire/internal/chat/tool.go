package chat

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tool is the handle of a tool: an element of tools or, in the old form, of
// functions.
type tool struct {
	native middleware.Native
	v      rawjson.Value
	snap   middleware.Tool // without Parameters: their text is compared
	old    bool
}

// holder returns what has the name of the tool; absent if that is the type.
func (h *tool) holder() rawjson.Value {
	switch {
	case h.old:
		return h.v
	case h.v.Get("type").Str() == "custom":
		return h.v.Get("custom")
	}
	return h.v.Get("function")
}

// parameters returns the schema, and under which key it stands: Hugging Face
// takes "arguments" as well.
func (h *tool) parameters() (rawjson.Value, string) {
	holder := h.holder()
	if p, a := holder.Get("parameters"), holder.Get("arguments"); !p.Exists() && a.Kind() == rawjson.Object {
		return a, "arguments"
	} else {
		return p, "parameters"
	}
}

// toolLists are the members that hold tools, the second in the old form.
var toolLists = []string{"tools", "functions"}

// readTools decodes both lists of tools.
func readTools(body rawjson.Value) ([]middleware.Tool, error) {
	var tools []middleware.Tool
	for _, key := range toolLists {
		list := body.Get(key)
		if k := list.Kind(); k != rawjson.Array && k != rawjson.Null && k != rawjson.Invalid {
			return nil, codec.Shapef("%s is of kind %s", key, k)
		}
		for v := range list.Each() {
			t, err := readTool(v, key == "functions")
			if err != nil {
				return nil, err
			}
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// readTool decodes a tool. One of a type that is not known is the provider's
// own.
func readTool(v rawjson.Value, old bool) (middleware.Tool, error) {
	h := &tool{v: v, old: old}
	h.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: h}
	t := middleware.Tool{Native: &h.native}
	kind := v.Get("type")
	if v.Kind() != rawjson.Object || !old && !isText(kind) {
		return t, codec.Shapef("a tool that is no object with a type")
	}
	holder := h.holder()
	if !isText(holder.Get("name")) || !isText(holder.Get("description")) {
		return t, codec.Shapef("a tool's name or description is no string")
	}
	t.Name, t.Description = holder.Get("name").Str(), holder.Get("description").Str()
	t.Strict = holder.Get("strict").Raw() == "true"
	switch word := kind.Str(); {
	case old, word == "function", word == "" && holder.Kind() == rawjson.Object:
		if p, _ := h.parameters(); p.Kind() == rawjson.Object || p.Kind() == rawjson.Bool {
			t.Parameters = json.RawMessage(p.Raw())
		}
	case word == "custom":
		t.Kind = middleware.KindCustom
	default:
		t.Kind = middleware.KindHosted
		if t.Name == "" {
			t.Name = word
		}
	}
	h.snap = t
	h.snap.Parameters = nil
	return t, nil
}

func toolHandle(t middleware.Tool) (*tool, error) {
	return codec.Handle(t.Native, dialect, func(raw string) (*tool, error) {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		again, err := readTool(v, v.Get("name").Exists() && !v.Get("type").Exists() && !v.Get("function").Exists())
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*tool), nil
	})
}

// schemaText returns the text of the schema that was decoded; "" for none.
func (h *tool) schemaText() string {
	if h.snap.Kind != middleware.KindFunction {
		return ""
	}
	if p, _ := h.parameters(); p.Kind() == rawjson.Object || p.Kind() == rawjson.Bool {
		return p.Raw()
	}
	return ""
}

func (h *tool) same(t middleware.Tool) bool {
	return string(t.Parameters) == h.schemaText() && h.sameButSchema(t)
}

func (h *tool) sameButSchema(t middleware.Tool) bool {
	t.Parameters = nil
	return codec.SameTool(t, h.snap)
}

// toolText writes t as an element of tools or, if old, of functions.
func toolText(t middleware.Tool, old bool) (string, error) {
	h, err := toolHandle(t)
	switch {
	case err != nil:
		return "", err
	case h == nil || h.old != old || t.Kind != h.snap.Kind:
		return freshTool(t, old)
	case h.same(t):
		return h.v.Raw(), nil
	case t.Kind == middleware.KindHosted:
		return "", codec.Unencodablef("a changed tool of the provider's own")
	}
	edits, err := h.edits(t)
	if err != nil {
		return "", err
	}
	return codec.Within(h.v, edits)
}

func (h *tool) edits(t middleware.Tool) ([]rawjson.Edit, error) {
	var members []codec.Member
	if t.Name != h.snap.Name {
		members = append(members, codec.Member{Key: "name", Raw: rawjson.Quote(t.Name)})
	}
	if t.Description != h.snap.Description {
		members = append(members, codec.Member{Key: "description", Raw: quoted(t.Description)})
	}
	if string(t.Parameters) != h.schemaText() {
		raw, err := schemaJSON(t)
		if err != nil {
			return nil, err
		}
		_, key := h.parameters()
		members = append(members, codec.Member{Key: key, Raw: raw})
	}
	if t.Strict != h.snap.Strict {
		members = append(members, codec.Member{Key: "strict", Raw: strictJSON(t)})
	}
	return codec.SetAll(h.holder(), members...)
}

func strictJSON(t middleware.Tool) string {
	if t.Strict {
		return "true"
	}
	return ""
}

func schemaJSON(t middleware.Tool) (string, error) {
	if t.Kind != middleware.KindFunction && len(t.Parameters) > 0 {
		return "", codec.Unencodablef("a schema for a tool of kind %q", t.Kind)
	}
	if len(t.Parameters) == 0 {
		return "", nil
	}
	if _, err := codec.Parse(string(t.Parameters)); err != nil {
		return "", codec.Unencodablef("a schema that is no JSON")
	}
	return string(t.Parameters), nil
}

// freshTool writes t from its neutral fields.
func freshTool(t middleware.Tool, old bool) (string, error) {
	schema, err := schemaJSON(t)
	if err != nil {
		return "", err
	}
	function := codec.Object(
		codec.Member{Key: "name", Raw: rawjson.Quote(t.Name)},
		codec.Member{Key: "description", Raw: quoted(t.Description)},
		codec.Member{Key: "parameters", Raw: schema},
		codec.Member{Key: "strict", Raw: strictJSON(t)})
	switch {
	case t.Kind == middleware.KindFunction && old:
		return function, nil
	case t.Kind == middleware.KindFunction:
		return `{"type":"function","function":` + function + `}`, nil
	case t.Kind == middleware.KindCustom && !old:
		return `{"type":"custom","custom":` + function + `}`, nil
	}
	return "", codec.Unencodablef("a tool of kind %q that is not of this format", t.Kind)
}

// old reports whether the request has its tools in the old form only.
func (h *request) old() bool {
	return h.v.Get("functions").Kind() == rawjson.Array && h.v.Get("tools").Kind() != rawjson.Array
}

// tools returns what has to change for the tools of req. Without any, the
// members that are allowed beside tools only go as well.
func (h *request) tools(req *middleware.Request) (members []codec.Member, inner []rawjson.Edit, err error) {
	if h.sameTools(req.Tools) {
		return nil, nil, nil
	}
	lists := map[string][]string{}
	for _, t := range req.Tools {
		own, err := toolHandle(t)
		if err != nil {
			return nil, nil, err
		}
		key := toolLists[0]
		if own != nil && own.old || own == nil && h.old() {
			key = toolLists[1]
		}
		text, err := toolText(t, key == toolLists[1])
		if err != nil {
			return nil, nil, err
		}
		lists[key] = append(lists[key], text)
	}
	if len(req.Tools) == 0 && req.ToolChoice == (middleware.ToolChoice{}) && h.v.Get("tools").Len() > 0 {
		members = append(members, codec.Member{Key: "tool_choice"}, codec.Member{Key: "parallel_tool_calls"})
	}
	for _, key := range toolLists {
		list, items := h.v.Get(key), lists[key]
		switch {
		case list.Kind() != rawjson.Array && len(items) > 0:
			members = append(members, codec.Member{Key: key, Raw: codec.Array(items)})
		case list.Len() > 0 && len(items) == 0:
			members = append(members, codec.Member{Key: key})
		default:
			inner = append(inner, codec.Splice(list, items)...)
		}
	}
	if len(inner) > 0 {
		for _, key := range toolLists {
			if _, err := codec.Only(h.v, key); err != nil {
				return nil, nil, err
			}
		}
	}
	return members, inner, nil
}

// sameTools is the answer for most requests, without allocating.
func (h *request) sameTools(tools []middleware.Tool) bool {
	i := 0
	for _, key := range toolLists {
		for v := range h.v.Get(key).Each() {
			if i == len(tools) {
				return false
			}
			own, err := toolHandle(tools[i])
			if err != nil || own == nil || own.v.Raw() != v.Raw() || own.old != (key == toolLists[1]) || !own.same(tools[i]) {
				return false
			}
			i++
		}
	}
	return i == len(tools)
}
