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
	in := on.Reader()
	function := in.Kind(v, "function", rawjson.Object)
	t.Name, t.Description, t.Native = in.Text(function, "name"), in.Text(function, "description"), on.Native(v.Raw())
	if !function.Exists() {
		t.Kind, t.Name = middleware.KindHosted, in.Text(v, "type")
	}
	if p := on.Get(function, "parameters"); p.Exists() {
		t.Parameters = json.RawMessage(p.Raw())
	}
	return t, in.Err
}

// toolText returns t as an element of tools. That the provider is to enforce
// the schema goes unsaid: this one does not.
func toolText(t middleware.Tool) (string, error) {
	return lens.Rewrite(on, t.Native, t, codec.SameTool, readTool, toolMembers)
}

// toolMembers projects a function. v is the edited text: if a client gives the name twice,
// both places change.
func toolMembers(v rawjson.Value, t middleware.Tool) ([]lens.Member, error) {
	switch _, err := codec.Parse(string(t.Parameters)); {
	case t.Kind != middleware.KindFunction:
		return nil, codec.Unencodablef("a tool of kind %q", t.Kind)
	case v.Exists() && t.Strict:
		return nil, codec.Unencodablef("the strictness of a tool")
	case err != nil && len(t.Parameters) > 0:
		return nil, codec.Unencodablef("parameters that are not JSON")
	}
	members := []lens.Member{
		lens.Text("type", "function"),
		lens.Text("function/name", t.Name),
		lens.Word("function/description", t.Description),
		lens.Raw("function/parameters", string(t.Parameters)),
	}
	if v.Exists() && v.Get("name").Kind() == rawjson.String && v.Get("name").Str() == v.Get("function").Get("name").Str() {
		members = append(members, lens.Text("name", t.Name))
	}
	return members, nil
}
