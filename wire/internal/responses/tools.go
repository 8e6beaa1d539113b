package responses

import (
	"encoding/json"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// tool is the handle of a tool.
type tool struct {
	val rawjson.Value
	was middleware.Tool
}

// view is where one tool of the request is declared: in tools itself, inside a
// namespace of tools, or in an item of the input.
type view struct {
	native *middleware.Native
	inside *middleware.Native // the namespace's or the message's; nil: in tools itself
}

// readTools reads the tools of the request. Those that a namespace or an item
// of the input declares come first: the model may call these too, and a tool
// that is added at the end comes last in the body as well. A tool that is
// listed again, as a search for tools does, is read once.
func readTools(req *middleware.Request, h *request) error {
	var err error
	if req.ToolChoice, err = choice(h.root.Get("tool_choice")); err != nil {
		return err
	}
	d := declared{at: map[string]int{}, spaces: map[string]string{}}
	if err := d.add(h.root.Get("tools"), nil); err != nil {
		return err
	}
	for i, m := range h.messages {
		for _, it := range m.items {
			if it.sort == isTools || it.val.Get("type").Str() == "tool_search_output" {
				if err := d.add(it.val.Get("tools"), h.natives[i]); err != nil {
					return err
				}
			}
		}
	}
	if err := d.nested(); err != nil {
		return err
	}
	for _, outer := range []bool{false, true} {
		for i, t := range d.tools {
			if (d.views[i].inside == nil) == outer {
				req.Tools, h.views = append(req.Tools, t), append(h.views, d.views[i])
			}
		}
	}
	return nil
}

// declared collects tools.
type declared struct {
	tools  []middleware.Tool
	views  []view
	at     map[string]int    // where in tools the callable one of a name is
	spaces map[string]string // the namespace of that tool
	spread []space
}

// space is a namespace, read after what stands beside it.
type space struct {
	val    rawjson.Value
	inside *middleware.Native
}

// add reads a list of tools. What an item of the input lists, inside, may be the
// provider's own: what is no tool there is left out of the view.
func (d *declared) add(tools rawjson.Value, inside *middleware.Native) error {
	tools, err := list(tools, "a list of tools")
	if err != nil && inside == nil {
		return err
	}
	for v := range tools.Each() {
		isSpace := v.Get("type").Str() == "namespace"
		if isSpace {
			d.spread = append(d.spread, space{v, inside})
		}
		if inside != nil && (isSpace || v.Get("type").Str() != "function" && v.Get("type").Str() != "custom") {
			continue // what the provider ran lists its own
		}
		if err := d.tool(v, "", inside); err != nil && inside == nil {
			return err
		}
	}
	return nil
}

// nested reads the tools inside the namespaces.
func (d *declared) nested() error {
	containers := map[rawjson.Value]*middleware.Native{}
	for _, t := range d.tools {
		containers[t.Native.Ref.(*tool).val] = t.Native
	}
	for _, s := range d.spread {
		tools, err := list(s.val.Get("tools"), "a list of tools")
		if err != nil && s.inside == nil {
			return err
		}
		inside := s.inside
		if inside == nil {
			inside = containers[s.val]
		}
		for v := range tools.Each() {
			if err := d.tool(v, s.val.Get("name").Str(), inside); err != nil && s.inside == nil {
				return err
			}
		}
	}
	return nil
}

func (d *declared) tool(v rawjson.Value, namespace string, inside *middleware.Native) error {
	t, err := readTool(v)
	if err != nil {
		return err
	}
	if t.Kind != middleware.KindHosted && (inside != nil || namespace != "") {
		if i, ok := d.at[t.Name]; ok {
			if d.spaces[t.Name] != namespace && namespace != "" {
				d.ambiguous(i) // a call names the one or the other
			}
			return nil
		}
	}
	if _, ok := d.at[t.Name]; !ok && t.Kind != middleware.KindHosted {
		d.at[t.Name], d.spaces[t.Name] = len(d.tools), namespace
	}
	d.tools = append(d.tools, t)
	d.views = append(d.views, view{t.Native, inside})
	return nil
}

// ambiguous takes the schema from a tool's view: another one of that name is in
// a namespace, so calls cannot be judged by either.
func (d *declared) ambiguous(i int) {
	d.tools[i].Parameters = nil
	d.tools[i].Native.Ref.(*tool).was.Parameters = nil
}

// readTool reads one tool. One that the provider runs goes by its type, a
// server of tools and a namespace by its label.
func readTool(v rawjson.Value) (middleware.Tool, error) {
	var t middleware.Tool
	if v.Kind() != rawjson.Object {
		return t, codec.Shapef("%s where a tool should be", v.Kind())
	}
	var err error
	if t.Name, err = textOf(v.Get("name"), "the name of a tool"); err != nil {
		return t, err
	}
	if t.Description, err = textOf(v.Get("description"), "a description"); err != nil {
		return t, err
	}
	typ, err := textOf(v.Get("type"), "the type of a tool")
	if err != nil {
		return t, err
	}
	t.Kind = toolKind(v, typ)
	switch {
	case t.Kind == middleware.KindFunction:
		if p := v.Get("parameters"); !absent(p) {
			t.Parameters = json.RawMessage(p.Raw())
		}
		t.Strict = v.Get("strict").Raw() == "true"
	case t.Name == "" && typ == "computer_use_preview":
		t.Name = "computer" // as its calls are named
	case t.Name == "":
		t.Name = codec.FirstText(v.Get("server_label"), v.Get("type"))
	}
	h := &tool{val: v, was: t}
	h.was.Parameters = json.RawMessage(string(t.Parameters))
	t.Native = native(v.Raw(), h)
	return t, nil
}

func toolKind(v rawjson.Value, typ string) middleware.Kind {
	switch typ {
	case "function":
		return middleware.KindFunction
	case "custom":
		return middleware.KindCustom
	case "computer", "computer_use_preview", "local_shell", "apply_patch":
		return middleware.KindBuiltin
	case "shell":
		if env := v.Get("environment").Get("type").Str(); env == "" || env == "local" {
			return middleware.KindBuiltin
		}
	case "tool_search":
		if v.Get("execution").Str() == "client" {
			return middleware.KindBuiltin
		}
	}
	return middleware.KindHosted
}

// handleTool is the handle of a tool, nil if it is not of this dialect.
func handleTool(t middleware.Tool) (*tool, error) {
	return codec.Handle(t.Native, dialect, func(raw string) (*tool, error) {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		again, err := readTool(v)
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*tool), nil
	})
}
