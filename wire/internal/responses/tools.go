package responses

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// tool is a tool and where it is declared: in tools itself, or inside of a
// namespace of tools or an item of the input.
type tool struct {
	middleware.Tool
	inside string // the text of the namespace or of the message; "": in tools itself
}

// readTools reads the tools of the request. Those that a namespace or an item
// of the input declares come first: the model may call these too, and a tool
// that is added at the end comes last in the body as well. A tool that is
// listed again, as a search for tools does, is read once.
func (h *request) readTools(root rawjson.Value) error {
	n := len(h.known) + root.Get("tools").Len()
	d := declared{tools: make([]tool, 0, n), have: make(map[[2]string]bool, n)}
	for _, t := range h.known {
		d.put(t, "")
	}
	if err := d.add(root, ""); err != nil {
		return err
	}
	for _, t := range h.turns {
		for _, it := range t.items {
			d.item(it, t.message.Native.Raw)
		}
	}
	if err := d.nested(); err != nil {
		return err
	}
	h.tools, h.is.Tools = slices.Grow(h.tools, len(d.tools)), slices.Grow(h.is.Tools, len(d.tools))
	for _, outer := range []bool{false, true} {
		for _, t := range d.tools {
			if (t.inside == "") == outer {
				h.tools, h.is.Tools = append(h.tools, t), append(h.is.Tools, t.Tool)
			}
		}
	}
	return nil
}

// declared collects the tools of a request from all the places that declare some.
type declared struct {
	tools  []tool
	have   map[[2]string]bool // the callable ones, by namespace and name
	spaces []space
}

// space is a namespace, {"type": "namespace", "name": …, "tools": […]}. It is read after the
// other tools.
type space struct {
	val    rawjson.Value
	inside string
}

// add reads the member tools of v. What an item of the input lists, inside, may
// be the provider's own: what is not a tool there is left out.
func (d *declared) add(v rawjson.Value, inside string) error {
	tools, err := on.Kind(v, "tools", rawjson.Array)
	for v := range tools.Each() {
		kind := v.Get("type").Str()
		if isNamespace(v) {
			d.spaces = append(d.spaces, space{v, inside})
		}
		if inside == "" || kind == "function" || kind == "custom" {
			err = cmp.Or(err, d.tool(v, "", inside, inside != ""))
		}
	}
	return err
}

// item reads the tools that an item declares. What it lists is never an error.
func (d *declared) item(it item, inside string) {
	if declaresTools(it.val) {
		_ = d.add(it.val, inside)
	}
}

// nested reads the tools in namespaces.
func (d *declared) nested() error {
	for _, s := range d.spaces {
		in := cmp.Or(s.inside, s.val.Raw())
		tools, err := on.Kind(s.val, "tools", rawjson.Array)
		for v := range tools.Each() {
			err = cmp.Or(err, d.tool(v, s.val.Get("name").Str(), in, s.inside != ""))
		}
		if err != nil && s.inside == "" {
			return err
		}
	}
	return nil
}

// tool adds one tool. What an item lists under a name that was there is the same
// tool, listed again.
func (d *declared) tool(v rawjson.Value, namespace, inside string, listed bool) error {
	t, err := readTool(v)
	if err != nil {
		return err
	}
	if t.Namespace = namespace; !listed || t.Kind == middleware.KindHosted || !d.have[[2]string{namespace, t.Name}] {
		d.put(t, inside)
	}
	return nil
}

// put adds a tool.
func (d *declared) put(t middleware.Tool, inside string) {
	if t.Kind != middleware.KindHosted {
		d.have[[2]string{t.Namespace, t.Name}] = true
	}
	d.tools = append(d.tools, tool{t, inside})
}

// isNamespace reports whether an element of tools has tools of its own.
func isNamespace(v rawjson.Value) bool { return v.Get("type").Str() == "namespace" }

// declaresTools reports whether an item of the input may declare tools.
func declaresTools(v rawjson.Value) bool {
	typ := v.Get("type").Str()
	return typ == "additional_tools" || typ == "tool_search_output"
}

// readTool reads one tool, such as
//
//	{"type": "function", "name": …, "description": …, "parameters": schema, "strict": true}
//	{"type": "custom", "name": …, "format": …}
//	{"type": "web_search"} or {"type": "mcp", "server_label": …}
//
// The name of a tool that the provider runs is its type, the name of a server of tools or a
// namespace its label. A custom tool has no Parameters: its input is text.
func readTool(v rawjson.Value) (t middleware.Tool, err error) {
	if v.Kind() != rawjson.Object {
		return t, codec.Shapef("%s where a tool should be", v.Kind())
	}
	in := on.Reader()
	t.Name, t.Description = in.Text(v, "name"), in.Text(v, "description")
	typ := in.Text(v, "type")
	t.Kind, t.Native = toolKind(v, typ), on.Native(v.Raw())
	switch typ {
	case "tool_search":
		t.Loads = middleware.LoadsFound
	case "mcp":
		t.Loads = middleware.LoadsToolset
	}
	switch {
	case t.Kind == middleware.KindFunction:
		if p := on.Get(v, "parameters"); p.Exists() {
			t.Parameters = json.RawMessage(p.Raw())
		}
		t.Strict = v.Get("strict").Raw() == "true"
	case t.Name == "" && typ == "computer_use_preview":
		t.Name = "computer" // as its calls are named
	case t.Name == "":
		t.Name = codec.FirstText(v.Get("server_label"), v.Get("type"))
	}
	return t, in.Err
}

// toolKind returns who runs a tool of that type. Some types are run by the provider or by the
// client: v, the tool, decides. A type that is not known is hosted: the client cannot have
// declared it.
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

// toolTexts returns the elements of tools. Tools that something else declares
// cannot be changed as long as that is there.
func (h *request) toolTexts(req *middleware.Request) ([]string, error) {
	here := map[string]bool{}
	now, was := make([]string, len(req.Tools)), make([]string, len(h.tools))
	for i, t := range req.Tools {
		now[i] = on.Raw(t.Native)
		here[now[i]] = true
	}
	for _, m := range req.Messages {
		here[on.Raw(m.Native)] = true
	}
	for i, t := range h.tools {
		was[i] = t.Native.Raw
		if t.inside != "" && here[t.inside] && !here[was[i]] {
			return nil, codec.Unencodablef("a tool was taken out of what declares it")
		}
	}
	var raws []string
	for i, at := range lens.Align(was, now) {
		t, own := req.Tools[i], tool{}
		if at >= 0 {
			own = h.tools[at]
		}
		inside := own.inside != "" && here[own.inside]
		switch {
		case inside && codec.SameTool(own.Tool, t):
			continue
		case inside:
			return nil, codec.Unencodablef("a change of a tool inside of what declares it")
		}
		raw, err := toolText(t)
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}

// toolText returns t: its own text with its changes, or a fresh text. A fresh tool always has
// strict, because its default is true here. The name and the description of a custom tool can
// change; a tool of the provider cannot.
func toolText(t middleware.Tool) (string, error) {
	return lens.Rewrite(on, t.Native, t, codec.SameTool, readTool, toolMembers)
}

// toolMembers projects a tool that the client runs. Parameters that are missing
// are null: the provider demands the member.
func toolMembers(v rawjson.Value, t middleware.Tool) ([]lens.Member, error) {
	m := []lens.Member{lens.Text("type", "function"), lens.Text("name", t.Name), lens.Word("description", t.Description)}
	kind, custom := t.Kind, t.Kind == middleware.KindCustom
	if v.Exists() {
		kind = toolKind(v, v.Get("type").Str())
	}
	switch {
	case kind != t.Kind, v.Exists() && custom && (len(t.Parameters) > 0 || t.Strict):
		return nil, codec.Unencodablef("a change of a tool of kind %s", kind)
	case !custom && kind != middleware.KindFunction:
		return nil, codec.Unencodablef("a tool of kind %s that is not of this format, or was changed", kind)
	case custom:
		m[0] = lens.Text("type", "custom")
		return m, nil
	}
	parameters := "null"
	if len(t.Parameters) > 0 {
		doc, err := codec.Parse(string(t.Parameters))
		if err != nil {
			return nil, codec.Unencodablef("parameters that are no JSON")
		}
		parameters = doc.Root().Raw()
	}
	return append(m, lens.Raw("parameters", parameters), lens.Raw("strict", strconv.FormatBool(t.Strict))), nil
}
