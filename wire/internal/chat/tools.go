package chat

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// toolLists are the members that hold tools, the second in the old form.
var toolLists = []string{"tools", "functions"}

// isOld reports whether a request has its tools in the old form only. Then the tools
// that a middleware adds are written in the old form as well: a server that knows no
// tools is why a client writes functions.
func isOld(v rawjson.Value) bool {
	return v.Get("functions").Kind() == rawjson.Array && v.Get("tools").Kind() != rawjson.Array
}

// readTools reads both lists of tools.
func readTools(body rawjson.Value, in *codec.Input) ([]middleware.Tool, error) {
	tools, err := lens.ReadList(on, body, toolLists[0], readNewTool)
	if err != nil {
		return nil, err
	}
	tools = append(in.Tools(body.Get(toolLists[0])), tools...)
	old, err := lens.ReadList(on, body, toolLists[1], func(v rawjson.Value) (middleware.Tool, error) { return readTool(v, true) })
	return append(tools, old...), err
}

// holderOfTool returns what has the name of a tool, absent for a type that is not
// known here:
//
//	{"type": "function", "function": {"name": …, "description": …, "parameters": schema, "strict": …}}
//	{"type": "custom", "custom": {"name": …, "description": …, "format": …}}
//	{"name": …, "description": …, "parameters": schema}                         old
func holderOfTool(v rawjson.Value, old bool) rawjson.Value {
	switch {
	case old:
		return v
	case v.Get("type").Str() == "custom":
		return v.Get("custom")
	}
	return v.Get("function")
}

// parametersOf returns the schema and its key: Hugging Face takes "arguments" as well.
func parametersOf(holder rawjson.Value) (schema rawjson.Value, key string) {
	schema = holder.Get("parameters")
	if a := holder.Get("arguments"); !schema.Exists() && a.Kind() == rawjson.Object {
		return a, "arguments"
	}
	return schema, "parameters"
}

// readNewTool is readTool for the newer form.
func readNewTool(v rawjson.Value) (middleware.Tool, error) { return readTool(v, false) }

// readTool reads a tool. One of a type that is not known is the provider's own.
func readTool(v rawjson.Value, old bool) (t middleware.Tool, err error) {
	in, word, holder := on.Reader(), "", holderOfTool(v, old)
	if !old {
		word = in.Text(v, "type")
	}
	t.Name, t.Description, t.Native = in.Text(holder, "name"), in.Text(holder, "description"), on.Native(v.Raw())
	t.Strict = holder.Get("strict").Raw() == "true"
	switch {
	case old, word == "function", word == "" && holder.Kind() == rawjson.Object:
		if p, _ := parametersOf(holder); p.Kind() == rawjson.Object || p.Kind() == rawjson.Bool {
			t.Parameters = json.RawMessage(p.Raw())
		}
	case word == "custom":
		t.Kind = middleware.KindCustom
	default:
		t.Kind = middleware.KindHosted
		if word == "mcp" {
			t.Loads = middleware.LoadsToolset
		}
		if t.Name == "" {
			t.Name = word
		}
	}
	return t, in.Err
}

// isOldTool reports whether v, the text of a tool, has the old form.
func isOldTool(v rawjson.Value) bool {
	return v.Get("name").Exists() && !v.Get("type").Exists() && !v.Get("function").Exists()
}

// toolText writes t as an element of tools or, if old, of functions: from its own
// text where that has the same form and kind.
func toolText(t middleware.Tool, old bool) (string, error) {
	return rewrite(t.Native, t, codec.SameTool, form[middleware.Tool]{
		read:    func(v rawjson.Value) (middleware.Tool, error) { return readTool(v, isOldTool(v)) },
		fits:    func(v rawjson.Value, was middleware.Tool) bool { return isOldTool(v) == old && was.Kind == t.Kind },
		members: func(v rawjson.Value, t middleware.Tool) ([]lens.Member, error) { return toolMembers(v, t, old) },
	})
}

// toolMembers projects a tool. v is the text that is edited, absent for a fresh one.
// A tool of the provider has nothing that could be changed here.
func toolMembers(v rawjson.Value, t middleware.Tool, old bool) ([]lens.Member, error) {
	kind := "function"
	switch {
	case t.Kind == middleware.KindHosted, old && t.Kind != middleware.KindFunction:
		return nil, codec.Unencodablef("a tool of kind %q that is not of this format", t.Kind)
	case t.Kind == middleware.KindFunction:
	case len(t.Parameters) > 0:
		return nil, codec.Unencodablef("a schema for a tool of kind %q", t.Kind)
	default:
		kind = "custom"
	}
	if _, err := codec.Parse(string(t.Parameters)); err != nil && len(t.Parameters) > 0 {
		return nil, codec.Unencodablef("a schema that is not JSON")
	}
	var members []lens.Member
	at := ""
	if !old {
		at = kind + "/"
	}
	if !old && !v.Exists() {
		members = append(members, lens.Text("type", kind))
	}
	_, key := parametersOf(holderOfTool(v, old))
	return append(members, lens.Text(at+"name", t.Name), lens.Word(at+"description", t.Description),
		lens.Raw(at+key, string(t.Parameters)), lens.Flag(at+"strict", t.Strict)), nil
}

// editTools puts the tools of req into an edit of v, each into the list of its form. A
// tool from elsewhere has no form: it goes into the old list only where that is the only
// one. A list goes with its last tool, because OpenAI refuses an empty one.
func editTools(e *lens.Edit, v rawjson.Value, is, req *middleware.Request) error {
	if codec.SameTools(is.Tools, req.Tools) {
		return nil
	}
	old := func(t middleware.Tool) bool {
		own, err := on.Value(t.Native)
		return err == nil && (isOldTool(own) || !own.Exists() && isOld(v))
	}
	texts, _, err := on.Tools(is.Tools, req.Tools, func(t middleware.Tool) (string, error) { return toolText(t, old(t)) })
	if err != nil {
		return err
	}
	lists := make([][]string, len(toolLists))
	for i, t := range req.Tools {
		n := 0
		if old(t) {
			n = 1
		}
		lists[n] = append(lists[n], texts[i])
	}
	for i, key := range toolLists {
		if len(lists[i]) == 0 && v.Get(key).Len() > 0 {
			e.Put(lens.None(key))
		} else {
			e.Elements(key, lists[i])
		}
	}
	return nil
}
