package anthropic

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// item is a part or a call in its place among the blocks of a message.
type item struct {
	part *middleware.Part
	call *middleware.ToolCall
	b    *block // nil: no Native of this dialect
}

// arranged merges m's parts and calls: what was decoded at own is in the order
// that it had there, and calls stand behind the parts otherwise.
func arranged(m middleware.Message, own *home) ([]item, error) {
	parts := make([]item, len(m.Parts))
	for i := range m.Parts {
		b, err := blockOf(m.Parts[i].Native, false)
		if err != nil {
			return nil, err
		}
		parts[i] = item{part: &m.Parts[i], b: b}
	}
	out := make([]item, 0, len(parts)+len(m.ToolCalls))
	next := 0
	for i := range m.ToolCalls {
		c := &m.ToolCalls[i]
		b, err := blockOf(c.Native, true)
		if err != nil {
			return nil, err
		}
		from := next
		for next < len(parts) && !(b.of(own) && parts[next].b.of(own) && parts[next].b.at > b.at) {
			next++
		}
		out = append(append(out, parts[from:next]...), item{call: c, b: b})
	}
	return append(out, parts[next:]...), nil
}

// of reports whether b was decoded at h.
func (b *block) of(h *home) bool { return b != nil && h != nil && b.home == h }

// history returns it as it stands in a request. It is not ok for reasoning of
// another provider, which only that one takes, and for a block that no provider
// takes.
func (it item) history() (raw string, ok bool, err error) {
	switch {
	case it.call != nil && it.b != nil:
		raw, err = it.b.withCall(*it.call, true)
	case it.call != nil:
		raw, err = freshCall(*it.call, true)
	case it.b != nil && it.b.odd, it.b == nil && it.part.Kind == middleware.PartReasoning:
		return "", false, nil
	case it.b != nil:
		raw, err = it.b.withPart(*it.part)
	default:
		raw, err = freshPart(*it.part)
	}
	return raw, err == nil, err
}

// answered returns it as it stands in an answer.
func (it item) answered() (string, error) {
	var raw string
	var err error
	switch {
	case it.call != nil && it.b != nil:
		raw, err = it.b.withCall(*it.call, false)
	case it.call != nil:
		raw, err = freshCall(*it.call, false)
	case it.b != nil && it.b.odd && codec.SamePart(*it.part, it.b.part):
		return it.b.native.Raw, nil
	case it.b != nil:
		raw, err = it.b.withPart(*it.part)
	default:
		raw, err = freshPart(*it.part)
	}
	return asBlock(raw), err
}

// intact reports whether it is what it was decoded to.
func (it item) intact() bool {
	switch {
	case it.b == nil:
		return false
	case it.call != nil:
		return codec.SameCall(*it.call, it.b.call)
	}
	return codec.SamePart(*it.part, it.b.part)
}
