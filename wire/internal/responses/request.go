package responses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// request is a body as it was read:
//
//	{"model": …, "instructions": text, "input": text or [item, …], "tools": [tool, …], "tool_choice": …,
//	 "temperature": …, "max_output_tokens": …, "previous_response_id": …, "store": …, "stream": …, …}
//
// The zero request belongs to a fresh one.
type request struct {
	is    *middleware.Request
	turns []turn            // of each message
	tools []tool            // of each tool of is
	known []middleware.Tool // the first elements of the member tools, which the root does not have
}

// ReadRequest reads a body. Only the neutral request is remembered, and no parsed text: an edit,
// which is rare, reads the body again. The error wraps ErrShape.
func (Format) ReadRequest(in *codec.Input) (*middleware.Request, error) {
	h := request{is: &middleware.Request{}}
	return h.is, in.Borrow(dialect, "input", func(root rawjson.Value) error {
		h.known = in.Tools(root.Get("tools"))
		err := h.read(root)
		if err == nil {
			in.Keep(root.Get("tools"), isNamespace, readTool)
			in.Keep(root.Get("input"), declaresTools, nil)
		}
		return err
	})
}

// read reads the object that a body is.
func (h *request) read(root rawjson.Value) error {
	if err := readSettings(root, h.is); err != nil {
		return err
	}
	if err := h.readInput(root); err != nil {
		return err
	}
	h.is.Messages = slices.Grow(h.is.Messages, len(h.turns))
	for _, t := range h.turns {
		h.is.Messages = append(h.is.Messages, t.message)
	}
	codec.NameResults(h.is.Messages)
	for i, m := range h.is.Messages {
		h.turns[i].message.ToolName = m.ToolName
	}
	return h.readTools(root)
}

// readInput reads instructions and input: neighbouring items of the model are one message,
// every other item is a message of its own.
func (h *request) readInput(root rawjson.Value) error {
	instructions, err := on.Kind(root, "instructions", rawjson.String)
	if err != nil {
		return err
	}
	if instructions.Exists() {
		h.turns = append(h.turns, readInstructions(instructions))
	}
	if input := root.Get("input"); input.Kind() == rawjson.String {
		t, err := readBareInput(input)
		h.turns = append(h.turns, t)
		return err
	}
	input, err := on.Kind(root, "input", rawjson.Array)
	if err != nil {
		return err
	}
	items, err := newItems(input)
	for len(items) > 0 && err == nil {
		n := 1
		for items[0].ofAssistant() && n < len(items) && items[n].ofAssistant() {
			n++
		}
		var t turn
		t, err = readItems(items[:n])
		h.turns, items = append(h.turns, t), items[n:]
	}
	return err
}

// EncodeRequest writes the body of a request.
func (f Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if len(req.Stop) > 0 {
		return nil, codec.Unencodablef("this format has no stop sequences")
	}
	return on.EncodeRequest(req, f.ReadRequest, edit, fresh)
}

// edit returns the body with what differs in req. Members that the body does not
// have yet come at its end, in the order in which they are put here.
func edit(doc *rawjson.Doc, was, req *middleware.Request) (string, error) {
	h := request{is: &middleware.Request{}}
	if err := h.read(doc.Root()); err != nil {
		return "", err
	}
	root := doc.Root()
	edit := on.Edit(root)
	edit.Put(lens.Differ(settings(was), settings(req))...)
	if !codec.SameChoice(req, was) && (!codec.SameChoice(req, &middleware.Request{}) || on.Get(root, "tool_choice").Exists()) {
		old := root.Get("tool_choice")
		if !slices.Equal(req.AllowedTools, was.AllowedTools) {
			old = rawjson.Value{} // the list is written anew
		}
		edit.Put(choiceMember(old, req))
	}
	tools, err := h.toolTexts(req)
	if err != nil {
		return "", err
	}
	edit.Elements("tools", tools)
	if err := h.editInput(edit, root, req); err != nil {
		return "", err
	}
	return edit.Apply(doc)
}

// editInput edits instructions and input. The leading system message goes back
// into instructions only if it came from there; any other one is an item.
func (h *request) editInput(edit *lens.Edit, root rawjson.Value, req *middleware.Request) error {
	messages := req.Messages
	runs := on.History(h.is.Messages, nil, messages, nil)
	if len(h.turns) > 0 && h.turns[0].place == asInstructions {
		if len(runs) == 0 || runs[0].At[0] != 0 {
			edit.Put(lens.None("instructions"))
		} else {
			text, ok := instructions(messages[0])
			if !ok {
				return codec.Unencodablef("instructions that are no text")
			}
			if was := h.turns[0].message.Text(); was != text {
				edit.Put(lens.Text("instructions", text))
			}
			runs = runs[1:]
		}
	}
	in := &input{messages: messages, provider: readProvider(root), turns: h.turns}
	items, err := in.items(runs)
	if err != nil {
		return err
	}
	old, err := on.Only(root, "input")
	single, isSingle := in.single(runs)
	switch {
	case err != nil:
		return err
	case isSingle && old.Kind() == rawjson.String:
		if single != old.Str() {
			edit.Put(lens.Text("input", single))
		}
	case old.Exists() && old.Kind() != rawjson.Array:
		edit.Put(lens.Raw("input", codec.Array(items)))
	default:
		edit.Elements("input", items)
	}
	return nil
}

// fresh writes a request that is not of this format. A leading system message of
// text becomes the instructions, and Params win over all of it.
func fresh(req *middleware.Request) (string, error) {
	in := &input{messages: req.Messages}
	params, err := codec.ParseObject(string(req.Params))
	if err != nil && len(req.Params) > 0 {
		return "", codec.Unencodablef("Params are no JSON object")
	}
	in.provider = readProvider(params)
	runs, first := on.History(nil, nil, req.Messages, nil), lens.None("instructions")
	if len(req.Messages) > 0 {
		if text, ok := instructions(req.Messages[0]); ok {
			runs, first = runs[1:], lens.Text("instructions", text)
		}
	}
	items, err := in.items(runs)
	if err != nil {
		return "", err
	}
	tools, err := new(request).toolTexts(req)
	if err != nil {
		return "", err
	}
	all, choice := settings(req), lens.None("tool_choice")
	if !codec.SameChoice(req, &middleware.Request{}) {
		choice = choiceMember(rawjson.Value{}, req)
	}
	return on.WithParams([]lens.Member{all[0], first, lens.Raw("input", codec.Array(items)), lens.List("tools", tools), choice,
		all[1], all[2], all[3], lens.Flag("stream", req.Sink != nil)}, req.Params)
}

// input turns the messages of a request into the items of its input.
type input struct {
	provider
	messages []middleware.Message
	turns    []turn                         // that the request had
	calls    map[string]middleware.ToolCall // the last one of each id; see called
}

// items returns the items of runs. A message that the request had is found by its
// place there, any other one by the text of its Native. A conversation that the provider holds
// has all up to the last answer: the items of the input too, and an answer that a middleware
// echoes in other words.
func (in *input) items(runs []lens.Run) ([]string, error) {
	var out []string
	had := func(r lens.Run) bool { return r.At[0] >= 0 }
	for i, run := range runs {
		m := run.Messages[0]
		var t *turn
		var err error
		if at := run.At[0]; at >= 0 {
			t = &in.turns[at]
		} else if t, err = again(m); err != nil {
			return nil, err
		}
		raws, err := in.message(m, t)
		if err != nil {
			return nil, err
		}
		echoed := t != nil && t.answer || had(runs[0]) && !slices.ContainsFunc(runs[i:], had)
		if in.held && m.Role == middleware.RoleAssistant && echoed {
			out, raws = nil, nil
		}
		out = append(out, raws...)
	}
	return out, nil
}

// single returns the text of the one message that was the whole input, and still
// can be. As soon as there is a second message, the input becomes a list.
func (in *input) single(runs []lens.Run) (string, bool) {
	if len(runs) != 1 || runs[0].At[0] < 0 || in.turns[runs[0].At[0]].place != asInput {
		return "", false
	}
	m := runs[0].Messages[0]
	return m.Text(), m.Role == middleware.RoleUser && len(m.Parts) == 1 && m.Parts[0].Kind == middleware.PartText
}

// message returns the items of one message, which was t; nil: it is not of this
// format. A message of the client is one item, one of the model any number.
func (in *input) message(m middleware.Message, t *turn) ([]string, error) {
	switch {
	case t != nil && t.place == asInstructions && codec.SameMessage(t.message, m):
		return []string{on.Object(lens.Text("role", string(m.Role)), lens.Raw("content", m.Native.Raw))}, nil
	case t != nil && (t.place == asInstructions || t.place == asInput && t.message.Role != m.Role):
		t = nil
	case t != nil && t.message.Role != m.Role:
		return nil, codec.Unencodablef("a message that changed its role")
	}
	if m.Role == middleware.RoleAssistant {
		return in.turn(m, t)
	}
	if len(m.ToolCalls) > 0 {
		return nil, codec.Unencodablef("calls in a %s message", m.Role)
	}
	var raw string
	var err error
	switch {
	case t == nil || len(t.items) != 1:
		raw, err = in.fresh(m)
	case codec.SameMessage(t.message, m):
		raw = t.items[0].val.Raw()
	case m.Role == middleware.RoleTool:
		raw, err = in.result(m, t.message, t.items[0].val)
	case t.items[0].sort != isMessage:
		err = codec.Unencodablef("a change of an item that holds no text")
	default:
		raw, err = withContent(t.items[0].val, "content", m.Parts, "input_text")
	}
	return []string{raw}, err
}

// turn writes the model's own message. If the provider holds the conversation, the message of
// an answer is not written. Reasoning that the provider neither kept nor gave away is left
// out, because it would look for it in vain.
func (in *input) turn(m middleware.Message, t *turn) ([]string, error) {
	echoed := t != nil && t.answer
	if echoed && in.held {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for i, was := range t.message.ToolCalls {
			if i == len(m.ToolCalls) {
				break
			}
			m.ToolCalls[i].Name = was.Name // package batch echoes rubbish in a form that any provider takes
			if m.ToolCalls[i].Arguments == "{}" {
				m.ToolCalls[i].Arguments = was.Arguments
			}
		}
		if !codec.SameMessage(t.message, m) {
			return nil, codec.Unencodablef("a change of a turn that the provider holds")
		}
		return nil, nil
	}
	out, err := t.write(m, "")
	var raws []string
	for _, o := range out {
		gone := false
		if echoed && o.from >= 0 {
			it := t.items[o.from]
			gone = it.odd || (!in.stored || t.lost) && o.sort == isReasoning && isReference(it.val)
		}
		if !gone {
			raws = append(raws, o.raw)
		}
	}
	return raws, err
}

// withoutOrphans leaves out reasoning whose call was taken out: the provider
// refuses it without the item that followed it.
func withoutOrphans(out []written, items []item) []written {
	keep := make([]bool, len(out))
	for i := len(out) - 1; i >= 0; i-- {
		at := out[i].from
		switch {
		case out[i].sort != isReasoning || at < 0 || at+1 == len(items):
			keep[i] = true
		case i+1 == len(out):
		case out[i+1].sort == isReasoning:
			keep[i] = out[i+1].from == at+1 && keep[i+1]
		default:
			keep[i] = true
		}
	}
	i := -1
	return slices.DeleteFunc(out, func(written) bool { i++; return !keep[i] })
}

// isReference reports whether a reasoning item is only its id and a
// summary: the provider has the rest. One with encrypted_content, which a client asks
// for, or with its content, as servers of open models write it, holds all of it.
func isReference(v rawjson.Value) bool {
	return v.Get("encrypted_content").Str() == "" && v.Get("content").Len() == 0
}

// result edits v, which answers a call. The format has no mark of failure and no
// name there; outputs that are objects belong to tools of the provider's making.
func (in *input) result(m, was middleware.Message, v rawjson.Value) (string, error) {
	switch {
	case m.IsError != was.IsError:
		return "", codec.Unencodablef("an error mark on a result")
	case m.ToolName != was.ToolName && m.ToolName != in.called(m.ToolCallID).Name:
		return "", codec.Unencodablef("a name for a result")
	}
	raw := v.Raw()
	if m.ToolCallID != was.ToolCallID {
		_, key := answeredID(v)
		var err error
		if raw, err = on.Set(v, lens.Text(key, m.ToolCallID)); err != nil {
			return "", err
		}
	}
	was.ToolCallID, was.ToolName = m.ToolCallID, m.ToolName
	if codec.SameMessage(was, m) {
		return raw, nil
	}
	if typ := v.Get("type").Str(); v.Get("output").Kind() == rawjson.Object || typ == "tool_search_output" || typ == "mcp_approval_response" {
		return "", codec.Unencodablef("another result for a call of kind %s", middleware.KindBuiltin)
	}
	v, err := codec.ParseObject(raw)
	if err != nil {
		return "", err
	}
	return withContent(v, "output", m.Parts, "input_text")
}

// called returns the last call of that id, the zero call without one. A fresh result needs its
// kind, which gives the type of the item.
func (in *input) called(id string) middleware.ToolCall {
	if in.calls == nil {
		in.calls = map[string]middleware.ToolCall{}
		for _, m := range in.messages {
			for _, c := range m.ToolCalls {
				in.calls[c.ID] = c
			}
		}
	}
	return in.calls[id]
}

// fresh writes a message of the client from its neutral fields. An error result is not marked:
// its text has to tell. The result of a built-in call has a form of its own, which neutral
// fields do not hold: a screenshot, the outcome of a patch.
func (in *input) fresh(m middleware.Message) (string, error) {
	switch m.Role {
	case middleware.RoleTool:
		typ := "function_call_output"
		switch in.called(m.ToolCallID).Kind {
		case middleware.KindCustom:
			typ = "custom_tool_call_output"
		case middleware.KindBuiltin:
			return "", codec.Unencodablef("a result for a call of kind %s", middleware.KindBuiltin)
		}
		out, err := freshContent(m.Parts)
		return on.Object(lens.Text("type", typ), lens.Text("call_id", m.ToolCallID), lens.Raw("output", out)), err
	case middleware.RoleSystem, middleware.RoleUser:
	default:
		return "", codec.Unencodablef("a message of role %q", m.Role)
	}
	if len(m.Parts) == 1 && on.Raw(m.Parts[0].Native) != "" && !isBlock(m.Parts[0]) {
		return partText(m.Parts[0], "") // an item that is the whole message
	}
	content, err := freshContent(m.Parts)
	return on.Object(lens.Text("role", string(m.Role)), lens.Raw("content", content)), err
}

// instructions returns what a leading system message is as instructions, which
// hold text only.
func instructions(m middleware.Message) (string, bool) {
	isText := func(p middleware.Part) bool { return p.Kind == middleware.PartText }
	only := !slices.ContainsFunc(m.Parts, func(p middleware.Part) bool { return !isText(p) })
	return m.Text(), only && m.Role == middleware.RoleSystem && len(m.ToolCalls) == 0
}

// readSettings reads the model, the figures and the tool choice into r.
func readSettings(root rawjson.Value, r *middleware.Request) (err error) {
	in := on.Reader()
	r.Model = in.Text(root, "model")
	r.Temperature = codec.Float(in.Kind(root, "temperature", rawjson.Number))
	r.MaxTokens = int(codec.Int(in.Kind(root, "max_output_tokens", rawjson.Number)))
	if on.Get(root, "conversation").Kind() != rawjson.String {
		in.Kind(root, "conversation", rawjson.Object)
	}
	r.NoParallelCalls = on.Get(root, "parallel_tool_calls").Raw() == "false"
	r.ToolChoice, r.AllowedTools, err = readChoice(on.Get(root, "tool_choice"))
	return cmp.Or(in.Err, err)
}

// settings projects the model, which comes first, and the figures. A request
// without a model has it in a prompt that the provider keeps.
func settings(r *middleware.Request) []lens.Member {
	return []lens.Member{
		lens.Word("model", r.Model),
		lens.Float("temperature", r.Temperature),
		lens.Count("max_output_tokens", int64(r.MaxTokens)),
		lens.Off("parallel_tool_calls", !r.NoParallelCalls),
	}
}

// provider is the part of a conversation that the provider keeps, and a request need not or
// must not repeat.
type provider struct {
	stored bool // the answers ("store", true by default): reasoning may go by its id
	held   bool // the conversation itself: neither an answer nor what led to it is sent again
}

// readProvider reads it from a request. Answers are kept unless the request forbids it.
func readProvider(root rawjson.Value) provider {
	return provider{stored: root.Get("store").Raw() != "false", held: on.Get(root, "conversation").Exists()}
}

// readChoice reads tool_choice: a mode, one tool, or a list of tools and a mode:
//
//	"auto" or "required" or "none"
//	{"type": "function", "name": …} or {"type": "web_search"}
//	{"type": "allowed_tools", "mode": …, "tools": […]}
//
// A hosted tool goes by its type, a server of tools by its label. A list with the search for
// tools does not tell which tools it allows.
func readChoice(v rawjson.Value) (c middleware.ToolChoice, allowed []string, err error) {
	switch v.Kind() {
	case rawjson.Invalid:
	case rawjson.String:
		c.Mode = modeOf(v.Str())
	case rawjson.Object:
		if v.Get("type").Str() == "allowed_tools" {
			c.Mode = modeOf(v.Get("mode").Str())
			allowed = codec.AllowedNames(v.Get("tools"), func(v rawjson.Value) string {
				if t, err := readTool(v); err == nil && t.Loads != middleware.LoadsFound {
					return t.Name
				}
				return ""
			})
		} else {
			c.Name = codec.FirstText(v.Get("name"), v.Get("server_label"), v.Get("type"))
		}
	default:
		err = codec.Shapef("%s where tool_choice should be", v.Kind())
	}
	return c, allowed, err
}

// modeOf passes on a word that it does not know.
func modeOf(word string) middleware.ToolMode {
	if word == "auto" {
		return middleware.ToolAuto
	}
	return middleware.ToolMode(strings.Clone(word))
}

// choiceMember projects the tool choice of r. A mode goes into the list of
// allowed tools, if old is one, but for none.
func choiceMember(old rawjson.Value, r *middleware.Request) lens.Member {
	word := "auto"
	c, allowed := codec.Choice(r)
	switch {
	case c.Name != "":
		return lens.Raw("tool_choice", toolChoice(r, c.Name))
	case c.Mode != middleware.ToolAuto:
		word = string(c.Mode)
	}
	if old.Get("type").Str() == "allowed_tools" && c.Mode != middleware.ToolNone {
		return lens.Text("tool_choice/mode", word)
	}
	if allowed != nil {
		tools := lens.TextsOf(allowed, func(name string) string { return toolChoice(r, name) })
		return lens.Raw("tool_choice", on.Object(lens.Text("type", "allowed_tools"), lens.Text("mode", word), lens.List("tools", tools)))
	}
	return lens.Text("tool_choice", word)
}

// toolChoice returns the choice of the tool of that name. Its type is the type of the
// tool; a name without a tool is taken for a function.
func toolChoice(r *middleware.Request, name string) string {
	kind := "function"
	for _, t := range r.Tools {
		if t.Name != name {
			continue
		}
		if t.Kind == middleware.KindCustom {
			kind = "custom"
		}
		if v, err := on.Value(t.Native); err == nil && v.Exists() && t.Kind != middleware.KindFunction && t.Kind != middleware.KindCustom {
			if v.Get("type").Str() == "mcp" {
				return on.Object(lens.Text("type", "mcp"), lens.Text("server_label", name))
			}
			return on.Object(lens.Text("type", v.Get("type").Str()))
		}
		break
	}
	return on.Object(lens.Text("type", kind), lens.Text("name", name))
}
