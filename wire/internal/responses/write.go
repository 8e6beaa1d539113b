package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// written is one item as it will stand in the body.
type written struct {
	raw  string
	from int // its place among the items of the handle, -1: it was not there
	call *callEdit
	sort sort
}

// callEdit is how a call that was there has changed: every copy gets it.
type callEdit struct{ was, now middleware.ToolCall }

// writer turns messages into items.
type writer struct {
	answer bool   // for an answer: items have ids, and reasoning always stays
	seed   string // of the ids of new messages; "" for those in an answer that has others
}

// member is codec.Member for a text.
func member(key, text string) codec.Member {
	return codec.Member{Key: key, Raw: rawjson.Quote(text)}
}

// assistant returns the items of an assistant's message. What h has stays in
// the order of its items as far as m keeps it; what is new follows the part or
// the call that stands before it.
func (w writer) assistant(m middleware.Message, h *message) ([]written, error) {
	if m.Role != middleware.RoleAssistant {
		return nil, codec.Unencodablef("a %s message where the model's should be", m.Role)
	}
	if h == nil {
		h = &message{}
	}
	if h.same(m) {
		out := make([]written, len(h.items))
		for i, it := range h.items {
			out[i] = written{raw: it.val.Raw(), from: i, sort: it.sort}
		}
		return out, nil
	}
	t := w.turn(m, h)
	for t.part < len(m.Parts) || t.call < len(m.ToolCalls) {
		var err error
		if t.part < len(m.Parts) && (t.call == len(m.ToolCalls) || t.partKeys[t.part] <= t.callKeys[t.call]) {
			err = t.writePart()
		} else {
			err = t.writeCall()
		}
		if err != nil {
			return nil, err
		}
	}
	if !w.answer {
		t.out = withoutOrphans(t.out, h.items)
	}
	return t.out, nil
}

// turn is an assistant's message on its way to items.
type turn struct {
	writer
	m                  middleware.Message
	h                  *message
	part, call         int   // the next ones
	partAt, callAt     []int // the item that each comes from, -1: none
	partKeys, callKeys []int // where it goes
	used               []bool
	out                []written
}

// turn finds out where the parts and calls of m come from.
func (w writer) turn(m middleware.Message, h *message) *turn {
	t := &turn{writer: w, m: m, h: h, used: make([]bool, len(h.items))}
	parts, callsOf := newOrigins(), newOrigins()
	no, partItem, callItem := 0, []int{}, []int{}
	for i, it := range h.items {
		for range it.parts {
			parts.add(h.was.Parts[no].Native, no)
			partItem = append(partItem, i)
			no++
		}
		if it.sort == isCall {
			callsOf.add(h.was.ToolCalls[len(callItem)].Native, len(callItem))
			callItem = append(callItem, i)
		}
	}
	key := -1
	for _, p := range m.Parts {
		at := -1
		if no := parts.take(p.Native); no >= 0 {
			at = partItem[no]
			key = at
		}
		t.partAt, t.partKeys = append(t.partAt, at), append(t.partKeys, key)
	}
	key = len(h.items)
	for _, c := range m.ToolCalls {
		at := -1
		if no := callsOf.take(c.Native); no >= 0 {
			at = callItem[no]
			key = at
		}
		t.callAt, t.callKeys = append(t.callAt, at), append(t.callKeys, key)
	}
	return t
}

// origins finds the place of a Native, stored and read again or not; each place
// is found once.
type origins struct {
	byRef map[*middleware.Native]int
	byRaw map[string][]int
	taken map[int]bool
}

func newOrigins() *origins {
	return &origins{map[*middleware.Native]int{}, map[string][]int{}, map[int]bool{}}
}

func (o *origins) add(n *middleware.Native, at int) {
	o.byRef[n] = at
	o.byRaw[n.Raw] = append(o.byRaw[n.Raw], at)
}

func (o *origins) take(n *middleware.Native) int {
	if n == nil || n.Dialect != dialect {
		return -1
	}
	if at, ok := o.byRef[n]; ok && !o.taken[at] {
		o.taken[at] = true
		return at
	}
	if n.Ref != nil {
		return -1 // of another message, even if it is equal
	}
	for len(o.byRaw[n.Raw]) > 0 {
		at := o.byRaw[n.Raw][0]
		o.byRaw[n.Raw] = o.byRaw[n.Raw][1:]
		if !o.taken[at] {
			o.taken[at] = true
			return at
		}
	}
	return -1
}

// writePart writes the next part, together with those that stand in the same
// message item.
func (t *turn) writePart() error {
	from, first := t.part, t.partAt[t.part]
	p, err := handlePart(t.m.Parts[from])
	switch {
	case err != nil:
		return err
	case p == nil && t.m.Parts[from].Kind == middleware.PartReasoning:
		t.part++ // no provider takes another's reasoning
		return nil
	case p != nil && p.item:
		t.part++
		return t.writeItem(p, t.m.Parts[from], first)
	}
	for t.part < len(t.m.Parts) && t.partAt[t.part] == first {
		if t.part > from && first < 0 && !t.isBlock(t.part) {
			break
		}
		t.part++
	}
	if first >= 0 && !t.used[first] {
		t.used[first] = true
		return t.editItem(first, from)
	}
	raws, err := blocks(t.m.Parts[from:t.part], "output_text")
	if err != nil {
		return err
	}
	t.out = append(t.out, written{raw: t.freshMessage(raws), from: -1, sort: isMessage})
	return nil
}

// isBlock reports whether part i is to stand inside of a message item.
func (t *turn) isBlock(i int) bool {
	p, err := handlePart(t.m.Parts[i])
	return err == nil && (p == nil && t.m.Parts[i].Kind != middleware.PartReasoning || p != nil && !p.item)
}

// writeItem writes a part that is an item of its own.
func (t *turn) writeItem(p *part, now middleware.Part, at int) error {
	raw, err := p.rewrite(now)
	if err != nil {
		return err
	}
	it, err := answerItem(p.val)
	if err != nil {
		return err
	}
	if at >= 0 {
		t.used[at] = true
	}
	t.out = append(t.out, written{raw: raw, from: at, sort: it.sort})
	return nil
}

// editItem writes a message item that was there, with the parts from on.
func (t *turn) editItem(at, from int) error {
	it := t.h.items[at]
	out := written{from: at, sort: isMessage}
	raw, err := withContent(it.val, "content", t.m.Parts[from:t.part], "output_text")
	out.raw = raw
	t.out = append(t.out, out)
	return err
}

// writeCall writes the next call.
func (t *turn) writeCall() error {
	c, at := t.m.ToolCalls[t.call], t.callAt[t.call]
	t.call++
	h, err := handleCall(c)
	if err != nil {
		return err
	}
	if h == nil {
		raw, err := t.freshCall(c)
		t.out = append(t.out, written{raw: raw, from: -1, sort: isCall})
		return err
	}
	out, val := written{from: at, sort: isCall}, h.val
	if at >= 0 {
		t.used[at] = true
		val = t.h.items[at].val
	}
	if !codec.SameCall(h.was, c) {
		out.call = &callEdit{h.was, c}
	}
	out.raw, err = out.call.rewrite(val)
	if err == nil && t.answer && at < 0 {
		out.raw, err = withID(out.raw, c)
	}
	t.out = append(t.out, out)
	return err
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
	kept := out[:0]
	for i, o := range out {
		if keep[i] {
			kept = append(kept, o)
		}
	}
	return kept
}

// texts returns the items alone.
func texts(out []written) []string {
	raws := make([]string, len(out))
	for i, o := range out {
		raws[i] = o.raw
	}
	return raws
}

// idOf returns an item's id for a call or a message that had none.
func idOf(prefix, seed string) string {
	return prefix + strings.TrimPrefix(strings.TrimPrefix(seed, "call"), "_")
}
