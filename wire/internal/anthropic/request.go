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
// Only the neutral request is remembered, and no parsed text: an edit, which is rare, reads
// the body again. The zero request belongs to a fresh one.
type request struct {
	is     middleware.Request
	tools  []middleware.Tool // the elements of tools; see changedTools
	groups []int             // the element that each message is of, -1: a block of the system prompt
	prompt []string          // the texts of the blocks of the system prompt

	elements []rawjson.Value   // of messages, for an edit
	known    []middleware.Tool // the first elements of tools, which the root does not have
}

// ReadRequest reads a body. The error wraps ErrShape.
func (Format) ReadRequest(in *codec.Input) (*middleware.Request, error) {
	var h request
	err := in.Borrow(dialect, "messages", func(root rawjson.Value) error {
		h.known = in.Tools(root.Get("tools"))
		err := h.read(root)
		if err == nil {
			in.Keep(root.Get("tools"), nil, readTool)
			in.Keep(root.Get("messages"), mayChangeTools, nil)
		}
		return err
	})
	return new(h.is), err // nothing else of h is kept
}

// read reads the object that a body is.
func (h *request) read(root rawjson.Value) (err error) {
	if root.Get("messages").Kind() != rawjson.Array {
		return codec.Shapef("a request without a list of messages")
	}
	if err := h.readSystem(root); err != nil {
		return err
	}
	n := 0
	for v := range root.Get("messages").Each() {
		ms, err := readMessage(v)
		if err != nil {
			return err
		}
		h.add(n, ms...)
		n++
	}
	codec.NameResults(h.is.Messages)
	if h.tools, err = lens.ReadList(on, root, "tools", readTool); err != nil {
		return err
	}
	h.tools = append(h.known, h.tools...)
	h.is.Tools = changedTools(h.tools, root.Get("messages"))
	return readSettings(root, &h.is)
}

// add adds the messages of one element.
func (h *request) add(group int, messages ...middleware.Message) {
	h.is.Messages = append(h.is.Messages, messages...)
	for range messages {
		h.groups = append(h.groups, group)
	}
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
		m := middleware.Message{Role: middleware.RoleSystem, Native: on.Native(v.Raw())}
		b, err := readBlock(v, m.Role)
		if err != nil {
			return err
		}
		add(&m, b)
		h.add(-1, m)
		h.prompt = append(h.prompt, v.Raw())
	}
	return nil
}

// EncodeRequest writes a request. A fresh request without MaxTokens
// allows 4,096: the wire demands a number.
func (f Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	return on.EncodeRequest(req, f.ReadRequest, edit, fresh)
}

// edit returns the text of doc, which was read as was, with what differs in req.
func edit(doc *rawjson.Doc, was, req *middleware.Request) (string, error) {
	root := doc.Root()
	if req.Model != was.Model && !root.Get("model").Exists() && root.Get("anthropic_version").Exists() {
		return "", codec.Unencodablef("the model is in the path of the request: leave Request.Model empty")
	}
	h := &request{elements: slices.Collect(root.Get("messages").Each())}
	if err := h.read(root); err != nil {
		return "", err
	}
	prompt, messages, tools, err := h.lists(req)
	if err != nil {
		return "", err
	}
	e := on.Edit(root)
	e.Put(lens.Differ(settings(was), settings(req))...)
	if c := container(root.Get("container"), req.Messages); c.Raw != "" {
		e.Put(c)
	}
	switch {
	case slices.Equal(prompt, h.prompt):
	case len(prompt) == 0:
		e.Put(lens.None("system"))
	default:
		putContent(e, root, "system", prompt)
	}
	e.Elements("messages", messages)
	e.Elements("tools", tools)
	if !codec.SameChoice(req, was) || req.NoParallelCalls != was.NoParallelCalls {
		e.Put(choice(was, req)...)
	}
	return e.Apply(doc)
}

// lists returns what req has of lists: the blocks of the system prompt, the messages and the tools.
func (h *request) lists(req *middleware.Request) (prompt, messages, tools []string, err error) {
	if prompt, messages, err = h.messages(req.Messages); err == nil {
		tools, err = h.toolTexts(req.Tools)
	}
	return prompt, messages, tools, err
}

// messages returns the blocks of the system prompt, and the elements of
// messages. What leads the conversation goes into the prompt, up to the first
// message that does not belong there. Elements of which nothing changed are their
// own bytes, on which the provider's prompt cache depends.
func (h *request) messages(now []middleware.Message) (prompt, elements []string, err error) {
	leads := true
	for _, run := range on.History(h.is.Messages, h.groups, now, joins) {
		m, at := run.Messages[0], run.At[0]
		leads = leads && h.leads(run)
		switch {
		case leads && at >= 0 && codec.SameMessage(h.is.Messages[at], m):
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
	case at >= 0 && h.groups[at] < 0:
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
func fresh(req *middleware.Request) (string, error) {
	prompt, messages, tools, err := new(request).lists(req)
	if err != nil {
		return "", err
	}
	system := lens.None("system")
	if len(prompt) > 0 {
		system.Raw = freshContent(prompt)
	}
	members := append(settings(req), system, lens.Raw("messages", codec.Array(messages)), lens.List("tools", tools), lens.Flag("stream", req.Sink != nil))
	if c, _ := codec.Choice(req); c != (middleware.ToolChoice{}) || req.NoParallelCalls && len(tools) > 0 {
		members = append(members, choice(&middleware.Request{}, req)...)
	}
	params, _ := codec.ParseObject(string(req.Params)) // WithParams returns the error
	return on.WithParams(append(members, container(params.Get("container"), req.Messages)), req.Params)
}

// maxTokens is the limit for the answer if a request has none: the wire demands a number.
const maxTokens = 4096

// readSettings reads the model, the bounds of the answer and the tool choice
// into r:
//
//	"tool_choice": {"type": "auto" or "any" or "none"} or {"type": "tool", "name": …}
//
// The choice may have "disable_parallel_tool_use" too: then the model makes one call at most.
// The model is "" where a cloud has it in the path.
func readSettings(root rawjson.Value, r *middleware.Request) (err error) {
	if r.Model, err = on.Text(root, "model"); err != nil {
		return err
	}
	r.Temperature = codec.Float(root.Get("temperature"))
	r.MaxTokens = int(codec.Int(root.Get("max_tokens")))
	for v := range root.Get("stop_sequences").Each() {
		r.Stop = append(r.Stop, v.Str())
	}
	choice := root.Get("tool_choice")
	r.NoParallelCalls = choice.Get(oneCall).Raw() == "true"
	switch choice.Get("type").Str() {
	case "none":
		r.ToolChoice.Mode = middleware.ToolNone
	case "any":
		r.ToolChoice.Mode = middleware.ToolRequired
	case "tool":
		r.ToolChoice.Name, err = on.Text(choice, "name")
	}
	return err
}

// oneCall is the member of tool_choice that limits a message to one call.
const oneCall = "disable_parallel_tool_use"

// settings projects all but the tool choice.
func settings(r *middleware.Request) []lens.Member {
	n := r.MaxTokens
	if n == 0 {
		n = maxTokens
	}
	return []lens.Member{
		lens.Word("model", r.Model),
		lens.Count("max_tokens", int64(n)),
		lens.Float("temperature", r.Temperature),
		lens.Words("stop_sequences", r.Stop),
	}
}

// choice projects the tool choice of req. Other members stay where they have a meaning.
func choice(was, req *middleware.Request) []lens.Member {
	kind := "auto"
	c, _ := codec.Choice(req)
	switch {
	case c.Name != "":
		kind = "tool"
	case c.Mode == middleware.ToolNone:
		kind = "none"
	case c.Mode == middleware.ToolRequired:
		kind = "any"
	}
	members := []lens.Member{lens.Text("tool_choice/type", kind), lens.Word("tool_choice/name", c.Name)}
	if kind == "none" || req.NoParallelCalls != was.NoParallelCalls {
		members = append(members, lens.Flag("tool_choice/"+oneCall, req.NoParallelCalls && kind != "none"))
	}
	return members
}
