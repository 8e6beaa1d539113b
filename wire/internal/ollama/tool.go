package ollama

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tool is the handle behind a tool.
type tool struct {
	value rawjson.Value
	snap  middleware.Tool
}

func readTools(root rawjson.Value) ([]middleware.Tool, error) {
	list, err := member(root, "tools", rawjson.Array)
	if err != nil {
		return nil, err
	}
	var tools []middleware.Tool
	for v := range list.Each() {
		t, err := readTool(v)
		if err != nil {
			return nil, err
		}
		tools = append(tools, t)
	}
	return tools, nil
}

func readTool(v rawjson.Value) (middleware.Tool, error) {
	var t middleware.Tool
	if v.Kind() != rawjson.Object {
		return t, codec.Shapef("a tool of kind %s", v.Kind())
	}
	function, err := member(v, "function", rawjson.Object)
	if err != nil {
		return t, err
	}
	if function.Exists() {
		t.Name, err = text(function, "name")
	} else { // not of this format's making; the server knows
		t.Kind = middleware.KindHosted
		t.Name, err = text(v, "type")
	}
	if err != nil {
		return t, err
	}
	if t.Description, err = text(function, "description"); err != nil {
		return t, err
	}
	if p := function.Get("parameters"); p.Exists() && p.Kind() != rawjson.Null {
		t.Parameters = json.RawMessage(p.Raw())
	}
	h := &tool{value: v, snap: t}
	h.snap.Parameters = json.RawMessage(string(t.Parameters)) // the caller's may change
	t.Native = native(v, h)
	return t, nil
}

// writeTool returns t as an element of tools. That the provider is to enforce
// the schema goes unsaid: this one does not.
func writeTool(t middleware.Tool) (string, error) {
	h, err := codec.Handle(t.Native, dialect, func(raw string) (*tool, error) {
		v, err := object(raw)
		if err != nil {
			return nil, err
		}
		again, err := readTool(v)
		if err != nil {
			return nil, codec.Unencodablef("the Native of a tool is none")
		}
		return again.Native.Ref.(*tool), nil
	})
	switch {
	case err != nil:
		return "", err
	case h != nil && codec.SameTool(t, h.snap):
		return h.value.Raw(), nil
	case t.Kind != middleware.KindFunction:
		return "", codec.Unencodablef("a tool of kind %q", t.Kind)
	case h != nil && (h.snap.Kind != t.Kind || h.snap.Strict != t.Strict):
		return "", codec.Unencodablef("another kind of tool, or its strictness")
	}
	of := []codec.Member{{Key: "name", Raw: rawjson.Quote(t.Name)}, quoted("description", t.Description), {Key: "parameters", Raw: string(t.Parameters)}}
	if len(t.Parameters) > 0 {
		if _, err := codec.Parse(string(t.Parameters)); err != nil {
			return "", codec.Unencodablef("parameters that are not JSON")
		}
	}
	if h == nil {
		return codec.Object(codec.Member{Key: "type", Raw: `"function"`}, codec.Member{Key: "function", Raw: codec.Object(of...)}), nil
	}
	return h.edited(t, of)
}

// edited writes what has changed, the name in both places that some clients
// give it.
func (h *tool) edited(t middleware.Tool, of []codec.Member) (string, error) {
	function, err := codec.Only(h.value, "function")
	if err != nil {
		return "", err
	}
	p, inner := codec.NewPatch(h.value), codec.NewPatch(function)
	if t.Name != h.snap.Name {
		inner.Put(of[0])
		if copied := h.value.Get("name"); copied.Kind() == rawjson.String && copied.Str() == h.snap.Name {
			p.Put(of[0])
		}
	}
	if t.Description != h.snap.Description {
		inner.Put(of[1])
	}
	if string(t.Parameters) != string(h.snap.Parameters) {
		inner.Put(of[2])
	}
	p.Add(inner.Edits())
	return p.Text()
}
