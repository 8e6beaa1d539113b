package ollama

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readTool reads an element of tools:
//
//	{"type": "function", "function": {"name": …, "description": …, "parameters": schema}}
//
// Only functions are of this format's making;
// whatever else is there is a hosted tool, which can be kept or left out but not
// changed.
func readTool(v rawjson.Value) (t middleware.Tool, err error) {
	function, err := on.Kind(v, "function", rawjson.Object)
	if err != nil {
		return t, err
	}
	if function.Exists() {
		t.Name, err = on.Text(function, "name")
	} else {
		t.Kind = middleware.KindHosted
		t.Name, err = on.Text(v, "type")
	}
	if err != nil {
		return t, err
	}
	if t.Description, err = on.Text(function, "description"); err != nil {
		return t, err
	}
	if p := on.Get(function, "parameters"); p.Exists() {
		t.Parameters = json.RawMessage(p.Raw())
	}
	t.Native = on.Native(v.Raw())
	return t, nil
}

// toolText returns t as an element of tools. That the provider is to enforce
// the schema goes unsaid: this one does not.
func toolText(t middleware.Tool) (string, error) {
	v, err := on.Value(t.Native)
	if err != nil {
		return "", err
	}
	was := middleware.Tool{Kind: t.Kind, Strict: t.Strict}
	if v.Exists() {
		if was, err = readTool(v); err != nil {
			return "", codec.Unencodablef("the Native of a tool is none")
		}
	}
	switch {
	case v.Exists() && codec.SameTool(t, was):
		return v.Raw(), nil
	case t.Kind != middleware.KindFunction:
		return "", codec.Unencodablef("a tool of kind %q", t.Kind)
	case t.Kind != was.Kind || t.Strict != was.Strict:
		return "", codec.Unencodablef("another kind of tool, or its strictness")
	}
	if len(t.Parameters) > 0 {
		if _, err := codec.Parse(string(t.Parameters)); err != nil {
			return "", codec.Unencodablef("parameters that are not JSON")
		}
	}
	return on.Write(v, toolMembers(v, was), toolMembers(v, t))
}

// toolMembers projects a function. v is the edited text: if a client gives the name twice,
// both places change.
func toolMembers(v rawjson.Value, t middleware.Tool) []lens.Member {
	members := []lens.Member{
		lens.Text("type", "function"),
		lens.Text("function/name", t.Name),
		lens.Word("function/description", t.Description),
		lens.Raw("function/parameters", string(t.Parameters)),
	}
	if v.Exists() && v.Get("name").Kind() == rawjson.String && v.Get("name").Str() == v.Get("function").Get("name").Str() {
		members = append(members, lens.Text("name", t.Name))
	}
	return members
}
