package anthropic

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// request is the handle of a request.
type request struct {
	native   middleware.Native
	root     rawjson.Value
	is       middleware.Request // the settings, as decoded
	messages []*message
	tools    []*tool
}

// DecodeRequest is part of wire.Codec.
func (Format) DecodeRequest(body []byte) (*middleware.Request, error) {
	h, err := readRequest(string(body))
	if err != nil {
		return nil, err
	}
	return h.neutral(), nil
}

func readRequest(body string) (*request, error) {
	root, err := codec.ParseObject(body)
	if err != nil {
		return nil, err
	}
	h := &request{root: root}
	h.native = middleware.Native{Dialect: dialect, Raw: body, Ref: h}
	if root.Get("messages").Kind() != rawjson.Array {
		return nil, codec.Shapef("a request without a list of messages")
	}
	r := reader{names: map[string]string{}}
	if err := r.system(root.Get("system")); err != nil {
		return nil, err
	}
	for m := range root.Get("messages").Each() {
		if err := r.message(m); err != nil {
			return nil, err
		}
	}
	h.messages = r.handles
	if err := h.readTools(); err != nil {
		return nil, err
	}
	return h, h.readSettings()
}

func (h *request) readTools() error {
	switch tools := h.root.Get("tools"); tools.Kind() {
	case rawjson.Array:
		for v := range tools.Each() {
			t, err := readTool(v)
			if err != nil {
				return err
			}
			h.tools = append(h.tools, t)
		}
	case rawjson.Invalid, rawjson.Null:
	default:
		return codec.Shapef("%s where the tools should be", tools.Kind())
	}
	return nil
}

func (h *request) readSettings() (err error) {
	if h.is.Model, err = text(h.root, "model"); err != nil {
		return err
	}
	h.is.Temperature = codec.Float(h.root.Get("temperature"))
	h.is.MaxTokens = int(codec.Int(h.root.Get("max_tokens")))
	for v := range h.root.Get("stop_sequences").Each() {
		h.is.Stop = append(h.is.Stop, v.Str())
	}
	choice := h.root.Get("tool_choice")
	switch choice.Get("type").Str() {
	case "none":
		h.is.ToolChoice.Mode = middleware.ToolNone
	case "any":
		h.is.ToolChoice.Mode = middleware.ToolRequired
	case "tool":
		h.is.ToolChoice.Name, err = text(choice, "name")
	}
	return err
}

// neutral returns what h was decoded to, sharing nothing that can be changed.
func (h *request) neutral() *middleware.Request {
	req := h.is.Clone()
	req.Native = &h.native
	req.Messages = make([]middleware.Message, len(h.messages))
	for i, m := range h.messages {
		req.Messages[i] = m.neutral()
	}
	for _, t := range h.tools {
		req.Tools = append(req.Tools, t.neutral())
	}
	return req
}

// EncodeRequest is part of wire.Codec. A fresh request without MaxTokens
// allows 4,096: the wire demands a number.
func (Format) EncodeRequest(req *middleware.Request) ([]byte, error) {
	h, err := codec.Handle(req.Native, dialect, readRequest)
	if err != nil {
		return nil, codec.Unencodablef("a Native that holds no request")
	}
	if h == nil {
		return fresh(req)
	}
	p := codec.NewPatch(h.root)
	for _, change := range []func(*codec.Patch, *middleware.Request) error{h.settings, h.turns, h.toolEdits, h.choice} {
		if err := change(p, req); err != nil {
			return nil, err
		}
	}
	edits, err := p.Edits()
	if err != nil {
		return nil, err
	}
	body, err := codec.Apply(h.native.Raw, edits)
	return []byte(body), err
}

// settings changes what is one member each.
func (h *request) settings(p *codec.Patch, req *middleware.Request) error {
	if req.Model != h.is.Model {
		if !h.root.Get("model").Exists() && h.root.Get("anthropic_version").Exists() {
			return codec.Unencodablef("the model stands in the path of the request")
		}
		p.Set("model", quote(req.Model))
	}
	switch now := req.Temperature; {
	case codec.SameFloat(now, h.is.Temperature):
	case now == nil:
		p.Unset("temperature")
	default:
		p.Set("temperature", codec.Number(*now))
	}
	if req.MaxTokens != h.is.MaxTokens {
		p.Set("max_tokens", codec.Count(tokens(req)))
	}
	if len(req.Stop) == 0 && len(h.is.Stop) > 0 {
		p.Unset("stop_sequences")
	} else if !slices.Equal(req.Stop, h.is.Stop) {
		p.Set("stop_sequences", quoted(req.Stop))
	}
	return nil
}

// tokens returns how many the answer may have.
func tokens(req *middleware.Request) int64 {
	if req.MaxTokens == 0 {
		return maxTokens
	}
	return int64(req.MaxTokens)
}

// turns changes the system prompt and the messages.
func (h *request) turns(p *codec.Patch, req *middleware.Request) error {
	if h.sameTurns(req.Messages) {
		return nil
	}
	ts, err := turns(req.Messages, h.messages)
	if err != nil {
		return err
	}
	if slices.EqualFunc(ts, h.messages, turn.still) { // as it was stored
		return nil
	}
	n := lead(ts)
	if err := h.system(p, ts[:n]); err != nil {
		return err
	}
	messages, err := messagesOf(ts[n:])
	if err != nil {
		return err
	}
	old, err := codec.Only(h.root, "messages")
	p.Add(codec.Splice(old, messages), err)
	return nil
}

// sameTurns is the answer for most requests, without allocating.
func (h *request) sameTurns(ms []middleware.Message) bool {
	return slices.EqualFunc(ms, h.messages, func(m middleware.Message, was *message) bool {
		return m.Native == &was.native && was.unchanged(m)
	})
}

func (h *request) system(p *codec.Patch, ts []turn) error {
	was := slices.IndexFunc(h.messages, func(m *message) bool { return m.group != nil })
	if was < 0 {
		was = len(h.messages)
	}
	if slices.EqualFunc(ts, h.messages[:was], turn.still) {
		return nil
	}
	contents, err := systemOf(ts)
	if err != nil {
		return err
	}
	if len(contents) == 0 {
		p.Unset("system")
		return nil
	}
	putContent(p, h.root, "system", contents)
	return nil
}

// systemOf returns the blocks of the top-level system prompt.
func systemOf(ts []turn) ([]string, error) {
	var out []string
	for _, t := range ts {
		c, err := t.contents()
		if err != nil {
			return nil, err
		}
		out = append(out, c...)
	}
	return out, nil
}

// toolEdits changes the tools.
func (h *request) toolEdits(p *codec.Patch, req *middleware.Request) error {
	if slices.EqualFunc(req.Tools, h.tools, func(t middleware.Tool, was *tool) bool {
		return known(t.Native, &was.native) == &was.native && was.unchanged(t)
	}) {
		return nil
	}
	tools, err := toolsOf(req.Tools, h.tools)
	if err != nil {
		return err
	}
	old, err := codec.Only(h.root, "tools")
	switch {
	case err != nil:
		return err
	case old.Kind() == rawjson.Array:
		p.Add(codec.Splice(old, tools), nil)
	case len(tools) > 0:
		p.Set("tools", codec.Array(tools))
	}
	return nil
}

// choice changes tool_choice. Its other members, such as
// disable_parallel_tool_use, stay where they have a meaning.
func (h *request) choice(p *codec.Patch, req *middleware.Request) error {
	if req.ToolChoice == h.is.ToolChoice {
		return nil
	}
	kind := choiceKind(req)
	if kind == "" {
		kind = "auto"
	}
	members := []member{kv("type", quote(kind)), kv("name", "")}
	if req.ToolChoice.Name != "" {
		members[1] = kv("name", quote(req.ToolChoice.Name))
	}
	if kind == "none" {
		members = append(members, kv("disable_parallel_tool_use", ""))
	}
	old, err := codec.Only(h.root, "tool_choice")
	switch {
	case err != nil:
		return err
	case old.Kind() == rawjson.Object:
		p.Add(codec.SetAll(old, members...))
	default:
		p.Set("tool_choice", codec.Object(members...))
	}
	return nil
}

// choiceKind is the wire's word for the tool choice, "" for its default.
func choiceKind(req *middleware.Request) string {
	switch {
	case req.ToolChoice.Name != "":
		return "tool"
	case req.ToolChoice.Mode == middleware.ToolNone:
		return "none"
	case req.ToolChoice.Mode == middleware.ToolRequired:
		return "any"
	}
	return ""
}
