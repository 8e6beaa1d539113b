package anthropic

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// request is a body as it was read:
//
//	{"model": …, "max_tokens": 1024, "system": text or [block, …], "messages": [{"role": …, "content": …}, …],
//	 "tools": [tool, …], "tool_choice": {…}, "temperature": …, "stop_sequences": […], "stream": …}
//
// Nothing in it changes after reading. The zero request is that behind a fresh one.
type request struct {
	doc      *rawjson.Doc
	is       middleware.Request
	entries  []lens.Entry    // first the blocks of the system prompt, which are of no element
	elements []rawjson.Value // of messages
	prompt   []string        // the texts of the blocks of the system prompt
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	h, err := readRequest(string(body))
	if err != nil {
		return nil, err
	}
	req := h.is.Clone()
	req.Native = on.Remember(h.doc.Text(), h)
	return req, nil
}

// readRequest reads a body. The error wraps ErrShape.
func readRequest(body string) (*request, error) {
	doc, err := codec.Parse(body)
	if err != nil {
		return nil, err
	}
	h, root := &request{doc: doc}, doc.Root()
	if root.Get("messages").Kind() != rawjson.Array {
		return nil, codec.Shapef("a request without a list of messages")
	}
	if err := h.readSystem(root); err != nil {
		return nil, err
	}
	names := map[string]string{}
	for v := range root.Get("messages").Each() {
		ms, err := readMessage(v, names)
		if err != nil {
			return nil, err
		}
		for _, m := range ms {
			h.entries = append(h.entries, lens.Entry{Message: m, Group: len(h.elements)})
		}
		h.elements = append(h.elements, v)
	}
	for _, e := range h.entries {
		h.is.Messages = append(h.is.Messages, e.Message)
	}
	if h.is.Tools, err = lens.ReadList(on, root, "tools", readTool); err != nil {
		return nil, err
	}
	return h, readSettings(root, &h.is)
}

// readSystem reads the system prompt: a message for each block.
func (h *request) readSystem(root rawjson.Value) error {
	blocks, err := contentOf(root, "system")
	if err != nil {
		return err
	}
	for _, v := range blocks {
		if v.Str() == "" && v.Kind() == rawjson.String {
			continue
		}
		m, err := readPrompt(v)
		if err != nil {
			return err
		}
		h.entries = append(h.entries, lens.Entry{Message: m, Group: -1})
		h.prompt = append(h.prompt, v.Raw())
	}
	return nil
}

// EncodeRequest is part of wire.Codec. A fresh request without MaxTokens
// allows 4,096: the wire demands a number.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	h, edited, err := lens.Again(on, req.Native, readRequest)
	if err != nil {
		return nil, err
	}
	if !edited {
		h = &request{}
	} else if codec.SameRequest(&h.is, req) {
		return []byte(req.Native.Raw), nil
	}
	prompt, messages, err := h.messages(req.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := on.Tools(h.is.Tools, req.Tools, toolText)
	if err != nil {
		return nil, err
	}
	if !edited {
		return fresh(req, prompt, messages, tools)
	}
	root := h.doc.Root()
	if req.Model != h.is.Model && !root.Get("model").Exists() && root.Get("anthropic_version").Exists() {
		return nil, codec.Unencodablef("the model stands in the path of the request")
	}
	e := on.Edit(root)
	e.Put(lens.Differ(settings(&h.is), settings(req))...)
	switch {
	case slices.Equal(prompt, h.prompt):
	case len(prompt) == 0:
		e.Put(lens.None("system"))
	default:
		putContent(e, root, "system", prompt)
	}
	e.Elements("messages", messages)
	e.Elements("tools", tools)
	if req.ToolChoice != h.is.ToolChoice {
		e.Put(choice(req.ToolChoice)...)
	}
	body, err := e.Apply(h.doc)
	return []byte(body), err
}

// messages returns the blocks of the system prompt, and the elements of
// messages. What leads the conversation goes into the prompt, up to the first
// message that does not belong there. Elements of which nothing changed are their
// own bytes, on which the provider's prompt cache depends.
func (h *request) messages(now []middleware.Message) (prompt, elements []string, err error) {
	leads := true
	for _, run := range on.History(h.entries, now, joins) {
		m, at := run.Messages[0], run.At[0]
		leads = leads && h.leads(run)
		switch {
		case leads && at >= 0 && codec.SameMessage(h.entries[at].Message, m):
			prompt = append(prompt, m.Native.Raw)
		case leads:
			_, contents, err := contentsOf(m)
			if err != nil {
				return nil, nil, err
			}
			prompt = append(prompt, contents...)
		case run.Same:
			elements = append(elements, h.elements[run.Group].Raw())
		default:
			text, err := h.element(run)
			if err != nil {
				return nil, nil, err
			}
			if text != "" {
				elements = append(elements, text)
			}
		}
	}
	return prompt, elements, nil
}

// leads reports whether run belongs into the system prompt: a block of it, or a
// system message that is not an element.
func (h *request) leads(run lens.Run) bool {
	m, at := run.Messages[0], run.At[0]
	switch {
	case m.Role != middleware.RoleSystem, run.Group >= 0:
		return false
	case at >= 0 && h.entries[at].Group < 0:
		return true
	}
	v, err := on.Value(m.Native)
	return err == nil && v.Get("role").Str() != string(middleware.RoleSystem)
}

// joins: tool messages in a row are one message of the wire. The provider demands
// all results of a turn in the one message that follows it.
func joins(begun []middleware.Message, m middleware.Message) bool {
	return begun[len(begun)-1].Role == middleware.RoleTool && m.Role == middleware.RoleTool
}

// fresh writes a request that is not of this format. Params win.
func fresh(req *middleware.Request, prompt, messages, tools []string) ([]byte, error) {
	all := settings(req)
	members := append(all[:2:2], lens.None("system"), lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools))
	if len(prompt) > 0 {
		members[2].Raw = freshContent(prompt)
	}
	if req.ToolChoice != (middleware.ToolChoice{}) {
		members = append(members, choice(req.ToolChoice)...)
	}
	members = append(append(members, all[2:]...), lens.Flag("stream", req.Sink != nil))
	body, err := on.WithParams(members, req.Params)
	return []byte(body), err
}
