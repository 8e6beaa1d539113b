package anthropic

import (
	"strconv"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// turn is a message that is to be written.
type turn struct {
	m      middleware.Message
	h      *message // nil: from its neutral fields
	intact bool     // as it was decoded
}

// turns finds the handles of messages. was are those of the request that they
// came from: after storage they are told by their text, in order.
func turns(messages []middleware.Message, was []*message) ([]turn, error) {
	out := make([]turn, len(messages))
	var left map[string][]*message
	for i, m := range messages {
		if n := m.Native; n != nil && n.Ref == nil && n.Dialect == dialect {
			if left == nil {
				left = byText(was)
			}
			if same := left[n.Raw]; len(same) > 0 {
				m.Native, left[n.Raw] = &same[0].native, same[1:]
			}
		}
		h, err := codec.Handle(m.Native, dialect, stored)
		if err != nil {
			return nil, err
		}
		if h != nil {
			if messages[i].Native.Ref == nil {
				m = adopted(m, h.is)
			}
			if h.is.Role != m.Role { // its parts have their own Native still
				h = nil
			}
		}
		out[i] = turn{m, h, h != nil && h.unchanged(m)}
	}
	return out, nil
}

// still reports whether t is what was stood for, unchanged.
func (t turn) still(was *message) bool { return t.intact && t.h == was }

func byText(was []*message) map[string][]*message {
	out := make(map[string][]*message, len(was))
	for _, h := range was {
		out[h.native.Raw] = append(out[h.native.Raw], h)
	}
	return out
}

// lead returns how many of the turns are the top-level system prompt.
func lead(ts []turn) int {
	for i, t := range ts {
		if t.m.Role != middleware.RoleSystem || t.h != nil && t.h.group != nil {
			return i
		}
	}
	return len(ts)
}

// messagesOf returns the messages of the wire.
func messagesOf(ts []turn) ([]string, error) {
	var out []string
	for len(ts) > 0 {
		n := together(ts)
		text, err := messageOf(ts[:n])
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, text)
		}
		ts = ts[n:]
	}
	return out, nil
}

func (t turn) group() *group {
	if t.h == nil || t.h.group == nil || t.h.group.loose {
		return nil
	}
	return t.h.group
}

// together returns how many of the first turns make one message of the wire:
// the shares of a message that stand together still, and tool messages in a
// row, of which fresh ones join whatever message is there.
func together(ts []turn) int {
	g, last := ts[0].group(), -1
	if g != nil {
		last = ts[0].h.at
	}
	for i := 1; i < len(ts); i++ {
		next := ts[i].group()
		switch {
		case g != nil && next == g && ts[i].h.at > last:
		case (g == nil || next == nil) && ts[i-1].m.Role == middleware.RoleTool && ts[i].m.Role == middleware.RoleTool:
		default:
			return i
		}
		if next != nil {
			g, last = next, ts[i].h.at
		}
	}
	return len(ts)
}

// messageOf returns ts as one message of the wire. It is "" for an assistant
// message without content, which the provider refuses.
func messageOf(ts []turn) (string, error) {
	g, whole := envelope(ts)
	if whole {
		return g.raw, nil
	}
	var contents []string
	for _, t := range ts {
		c, err := t.contents()
		if err != nil {
			return "", err
		}
		contents = append(contents, c...)
	}
	role := ts[0].m.Role
	switch role {
	case middleware.RoleTool:
		role = middleware.RoleUser
	case middleware.RoleAssistant:
		if len(contents) == 0 {
			return "", nil
		}
	case middleware.RoleUser, middleware.RoleSystem:
	default:
		return "", codec.Unencodablef("a message of an unknown role")
	}
	if g == nil {
		return codec.Object(kv("role", quote(string(role))), kv("content", contentOf(contents))), nil
	}
	v, err := g.value()
	if err != nil {
		return "", err
	}
	p := codec.NewPatch(v)
	putContent(p, v, "content", contents)
	return p.Text()
}

// envelope returns the message of the wire that holds ts, nil for none, and
// whether it holds just them, unchanged.
func envelope(ts []turn) (g *group, whole bool) {
	if len(ts) == 1 && ts[0].h != nil { // a loose one too
		g = ts[0].h.group
		return g, g != nil && g.shares == 1 && ts[0].intact
	}
	whole = true
	for i, t := range ts {
		if t.group() != nil {
			g = t.group()
		}
		whole = whole && t.intact && t.group() != nil && t.h.at == i
	}
	return g, whole && len(ts) == g.shares
}

// contents returns t's content blocks; a text that may stand alone is a string.
func (t turn) contents() ([]string, error) {
	if t.m.Role != middleware.RoleAssistant && len(t.m.ToolCalls) > 0 {
		return nil, codec.Unencodablef("tool calls that are not the assistant's")
	}
	if t.m.Role != middleware.RoleTool {
		return t.parts()
	}
	result, err := t.result()
	return []string{result}, err
}

// parts returns parts and calls in the order of the wire.
func (t turn) parts() ([]string, error) {
	var own *home
	if t.h != nil {
		own = t.h.home
	}
	items, err := arranged(t.m, own)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, it := range items {
		if it.part != nil && it.part.Kind == middleware.PartText && it.part.Text == "" && !t.keeps(it.b) {
			continue
		}
		raw, ok, err := it.history()
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, raw)
		}
	}
	return out, nil
}

// keeps reports whether an empty text was in the request already: it is the
// client's own.
func (t turn) keeps(b *block) bool {
	return b != nil && t.h != nil && b.home == t.h.home && !t.h.answer && b.part.Text == ""
}

// result returns a tool message as a block.
func (t turn) result() (string, error) {
	h := t.h
	switch {
	case h == nil || h.result == nil:
		return t.freshResult()
	case t.intact:
		return h.result.native.Raw, nil
	}
	p := codec.NewPatch(h.result.v)
	if t.m.ToolCallID != h.is.ToolCallID {
		p.Set("tool_use_id", quote(t.m.ToolCallID))
	}
	if t.m.IsError != h.is.IsError {
		p.Set("is_error", strconv.FormatBool(t.m.IsError))
	}
	if !codec.SameMessage(middleware.Message{Parts: t.m.Parts}, middleware.Message{Parts: h.is.Parts}) {
		contents, err := t.parts()
		if err != nil {
			return "", err
		}
		putContent(p, h.result.v, "content", contents)
	}
	return p.Text()
}
