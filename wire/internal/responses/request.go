package responses

import (
	"slices"

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
// The zero request is that behind a fresh one.
type request struct {
	is    *middleware.Request
	turns []turn // of each message
	tools []tool // of each tool of is
}

// DecodeRequest reads the body of a request. What is remembered of it is the neutral
// request, and no parsed text: an edit, which is rare, reads the body again.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	return on.Request(body, readRequest)
}

// readRequest reads a body. The error wraps ErrShape.
func readRequest(body string) (*middleware.Request, error) {
	h := request{is: &middleware.Request{}}
	return h.is, codec.Borrow(body, h.read)
}

// read reads the object that a body is.
func (h *request) read(root rawjson.Value) error {
	if err := readSettings(root, h.is); err != nil {
		return err
	}
	if err := h.readInput(root); err != nil {
		return err
	}
	nameResults(h.turns)
	h.is.Messages = slices.Grow(h.is.Messages, len(h.turns))
	for _, t := range h.turns {
		h.is.Messages = append(h.is.Messages, t.message)
	}
	return h.readTools(root)
}

// readInput reads instructions and input: the items of the model that stand
// together are one message, every other one is a message of its own.
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

// nameResults gives the tool messages the name of the call that they answer,
// which the wire does not repeat.
func nameResults(turns []turn) {
	names := map[string]string{}
	for i := range turns {
		m := &turns[i].message
		for _, c := range m.ToolCalls {
			names[c.ID] = c.Name
		}
		if m.Role == middleware.RoleTool {
			m.ToolName = names[m.ToolCallID]
		}
	}
}

// EncodeRequest writes the body of a request.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	if len(req.Stop) > 0 {
		return nil, codec.Unencodablef("this format has no stop sequences")
	}
	return on.EncodeRequest(req, readRequest, edit, fresh)
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
	if req.ToolChoice != was.ToolChoice && (req.ToolChoice != middleware.ToolChoice{} || on.Get(root, "tool_choice").Exists()) {
		edit.Put(choiceMember(root.Get("tool_choice"), req))
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
	entries := make([]lens.Entry, len(h.turns))
	for i, t := range h.turns {
		entries[i] = lens.Entry{Message: t.message, Group: i}
	}
	runs := on.History(entries, messages, nil)
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
	runs, first := on.History(nil, req.Messages, nil), lens.None("instructions")
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
	if req.ToolChoice != (middleware.ToolChoice{}) {
		choice = choiceMember(rawjson.Value{}, req)
	}
	return on.WithParams([]lens.Member{all[0], first, lens.Raw("input", codec.Array(items)), lens.List("tools", tools), choice,
		all[1], all[2], lens.Flag("stream", req.Sink != nil)}, req.Params)
}
