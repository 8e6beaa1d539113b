package responses

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// input turns the messages of a request into the items of its input.
type input struct {
	req    *middleware.Request
	h      *request // nil: the request is written afresh
	stored bool     // the provider keeps the answers
	held   bool     // the provider keeps the conversation
	byRaw  map[string]*message
	kinds  map[string]middleware.Kind
}

// find returns the handle of a message that was decoded with the request,
// though it may have been stored since.
func (in *input) find(n *middleware.Native) *message {
	if n == nil || n.Dialect != dialect || in.h == nil {
		return nil
	}
	if m, ok := n.Ref.(*message); ok {
		if m.owner == in.h {
			return m
		}
		return nil
	}
	if in.byRaw == nil {
		in.byRaw = make(map[string]*message, len(in.h.messages))
		for i, m := range slices.Backward(in.h.messages) {
			in.byRaw[in.h.natives[i].Raw] = m
		}
	}
	return in.byRaw[n.Raw]
}

// handle returns the handle of a message, nil if it is not of this dialect.
func (in *input) handle(m middleware.Message) (*message, error) {
	if h := in.find(m.Native); h != nil {
		return h, nil
	}
	return handleMessage(m)
}

// items returns the items of one message that does not stand in instructions.
func (in *input) items(m middleware.Message, h *message) ([]string, error) {
	if h != nil && h.place != asItems {
		return in.fromText(m, h)
	}
	if h != nil && h.was.Role != m.Role {
		return nil, codec.Unencodablef("a message that changed its role")
	}
	if m.Role == middleware.RoleAssistant {
		return in.turn(m, h)
	}
	if len(m.ToolCalls) > 0 {
		return nil, codec.Unencodablef("calls in a %s message", m.Role)
	}
	if h == nil || len(h.items) != 1 {
		raw, err := in.fresh(m)
		return []string{raw}, err
	}
	v := h.items[0].val
	if h.same(m) {
		return []string{v.Raw()}, nil
	}
	var raw string
	var err error
	if m.Role == middleware.RoleTool {
		raw, err = in.editOutput(m, h, v)
	} else {
		raw, err = editMessage(m, h, v)
	}
	return []string{raw}, err
}

// fromText writes a message that was instructions or the whole input as an
// item.
func (in *input) fromText(m middleware.Message, h *message) ([]string, error) {
	if h.same(m) {
		p := h.was.Parts[0].Native.Ref.(*part)
		return []string{codec.Object(member("role", string(m.Role)), codec.Member{Key: "content", Raw: p.val.Raw()})}, nil
	}
	m.Native = nil
	return in.items(m, nil)
}

// turn writes the model's own message. One that comes from an answer is not
// written where the provider holds the conversation, as it has it already; and
// reasoning that the provider neither kept nor gave away is left out, as it
// would look for it in vain.
func (in *input) turn(m middleware.Message, h *message) ([]string, error) {
	echoed := h != nil && h.owner == nil
	if echoed && in.held {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for i, was := range h.was.ToolCalls {
			if i == len(m.ToolCalls) {
				break
			}
			m.ToolCalls[i].Name = was.Name // package batch echoes rubbish in a form that any provider takes
			if m.ToolCalls[i].Arguments == "{}" {
				m.ToolCalls[i].Arguments = was.Arguments
			}
		}
		if !h.same(m) {
			return nil, codec.Unencodablef("a change of a turn that the provider holds")
		}
		return nil, nil
	}
	out, err := writer{}.assistant(m, h)
	out = slices.DeleteFunc(out, func(o written) bool { return h != nil && o.from >= 0 && h.items[o.from].odd })
	if err != nil || !echoed || in.stored && !h.unstored {
		return texts(out), err
	}
	kept := out[:0]
	for _, o := range out {
		if o.sort == isReasoning && o.from >= 0 && isReference(h.items[o.from].val) {
			continue
		}
		kept = append(kept, o)
	}
	return texts(kept), nil
}

// isReference reports whether a reasoning item is no more than its id and a
// summary: the provider has the rest.
func isReference(v rawjson.Value) bool {
	return v.Get("encrypted_content").Str() == "" && v.Get("content").Len() == 0
}

func editMessage(m middleware.Message, h *message, v rawjson.Value) (string, error) {
	if h.items[0].sort != isMessage {
		return "", codec.Unencodablef("a change of an item that holds no text")
	}
	return withContent(v, "content", m.Parts, "input_text")
}

func (in *input) editOutput(m middleware.Message, h *message, v rawjson.Value) (string, error) {
	switch {
	case m.IsError != h.was.IsError:
		return "", codec.Unencodablef("an error mark on a result")
	case m.ToolName != h.was.ToolName && m.ToolName != in.nameOf(m.ToolCallID):
		return "", codec.Unencodablef("a name for a result")
	}
	if m.ToolCallID != h.was.ToolCallID {
		_, key := answeredID(v)
		e, err := codec.Set(v, key, rawjson.Quote(m.ToolCallID))
		if err != nil {
			return "", err
		}
		raw, err := codec.Within(v, []rawjson.Edit{e})
		if err != nil {
			return "", err
		}
		if v, err = codec.ParseObject(raw); err != nil {
			return "", err
		}
	}
	if len(m.Parts) == len(h.was.Parts) {
		same := true
		for i, p := range h.was.Parts {
			same = same && samePart(p, m.Parts[i])
		}
		if same {
			return v.Raw(), nil
		}
	}
	if k := v.Get("output").Kind(); k == rawjson.Object || v.Get("type").Str() == "tool_search_output" || v.Get("type").Str() == "mcp_approval_response" {
		return "", codec.Unencodablef("another result for a call of kind %s", middleware.KindBuiltin)
	}
	return withContent(v, "output", m.Parts, "input_text")
}

// nameOf returns the name of the last call of that id.
func (in *input) nameOf(id string) string {
	for i := len(in.req.Messages) - 1; i >= 0; i-- {
		for _, c := range in.req.Messages[i].ToolCalls {
			if c.ID == id {
				return c.Name
			}
		}
	}
	return ""
}

// fresh writes a message of the client from its neutral fields. That a result
// is an error is for its text to say.
func (in *input) fresh(m middleware.Message) (string, error) {
	if m.Role == middleware.RoleTool {
		return in.freshOutput(m)
	}
	if m.Role != middleware.RoleSystem && m.Role != middleware.RoleUser {
		return "", codec.Unencodablef("a message of role %q", m.Role)
	}
	for _, p := range m.Parts {
		if h, err := handlePart(p); err == nil && h != nil && h.item && len(m.Parts) == 1 {
			return h.rewrite(p) // an item that stands for the message
		}
	}
	content, err := freshContent(m.Parts)
	return codec.Object(member("role", string(m.Role)), codec.Member{Key: "content", Raw: content}), err
}

// freshContent writes one text as it is, anything else as a list of blocks.
func freshContent(parts []middleware.Part) (string, error) {
	if len(parts) == 1 && parts[0].Kind == middleware.PartText {
		if h, err := handlePart(parts[0]); err != nil || h == nil || !h.same(parts[0]) || h.val.Kind() == rawjson.String {
			return rawjson.Quote(parts[0].Text), err
		}
	}
	if len(parts) == 0 {
		return `""`, nil
	}
	raws, err := blocks(parts, "input_text")
	return codec.Array(raws), err
}

func (in *input) freshOutput(m middleware.Message) (string, error) {
	if in.kinds == nil {
		in.kinds = map[string]middleware.Kind{}
		for _, m := range in.req.Messages {
			for _, c := range m.ToolCalls {
				in.kinds[c.ID] = c.Kind
			}
		}
	}
	typ := "function_call_output"
	switch in.kinds[m.ToolCallID] {
	case middleware.KindCustom:
		typ = "custom_tool_call_output"
	case middleware.KindBuiltin:
		return "", codec.Unencodablef("a result for a call of kind %s", middleware.KindBuiltin)
	}
	out, err := freshContent(m.Parts)
	return codec.Object(member("type", typ), member("call_id", m.ToolCallID), codec.Member{Key: "output", Raw: out}), err
}

// instructions returns what a leading system message is as instructions, which
// hold text only.
func instructions(m middleware.Message) (string, bool) {
	var b strings.Builder
	for _, p := range m.Parts {
		if p.Kind != middleware.PartText {
			return "", false
		}
		b.WriteString(p.Text)
	}
	return b.String(), m.Role == middleware.RoleSystem && len(m.ToolCalls) == 0
}
