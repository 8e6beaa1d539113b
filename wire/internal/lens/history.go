package lens

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Align returns, for each text of now, the index of the same text in old. Each
// index is taken once; -1 means that old has no such text left. "" is not a text.
//
// Equal texts are told apart by what stands beside them. A text that both have
// once is an anchor; equal neighbours of what has its place follow it on both
// sides, then those at both ends; what is left is taken in order. So a history
// that was cut at its front finds the right ones of several equal results.
// Source: P. Heckel, A technique for isolating differences between files, 1978.
func Align(old, now []string) []int {
	at := make([]int, len(now))
	if len(now) >= len(old) && slices.Equal(old, now[:len(old)]) && !slices.Contains(old, "") {
		for i := range at { // nothing but new texts at the end
			at[i] = i
			if i >= len(old) {
				at[i] = -1
			}
		}
		return at
	}
	a := aligner{old: old, now: now, at: at, used: make([]bool, len(old)), places: make(map[string][]int, len(old))}
	for i, text := range old {
		a.places[text] = append(a.places[text], i)
	}
	times := map[string]int{}
	for i, text := range now {
		at[i] = -1
		if text != "" && len(a.places[text]) > 0 {
			a.known = append(a.known, i)
			times[text]++
		}
	}
	for _, i := range a.known {
		if p := a.places[now[i]]; len(p) == 1 && times[now[i]] == 1 {
			a.pair(i, p[0])
		}
	}
	a.follow(len(old), -1) // no end to begin from
	a.follow(-1, len(old))
	for _, i := range a.known {
		for at[i] < 0 && len(a.places[now[i]]) > 0 {
			a.pair(i, a.places[now[i]][0])
			a.places[now[i]] = a.places[now[i]][1:]
		}
	}
	return at
}

type aligner struct {
	old, now []string
	at       []int
	used     []bool
	places   map[string][]int // of each text in old
	known    []int            // the texts of now that old has
}

func (a *aligner) pair(i, place int) {
	if a.at[i] < 0 && place >= 0 && place < len(a.old) && !a.used[place] && a.old[place] == a.now[i] {
		a.at[i], a.used[place] = place, true
	}
}

// follow gives places to texts whose neighbour has one: first to those in front
// of it, as histories are cut at their front more than anywhere else. before is
// the place in front of the first text, behind that after the last one.
func (a *aligner) follow(before, after int) {
	for _, i := range slices.Backward(a.known) {
		a.pair(i, after-1)
		after = a.at[i]
	}
	for _, i := range a.known {
		a.pair(i, before+1)
		if before = a.at[i]; before < 0 {
			before = len(a.old)
		}
	}
}

// Item is a part or a call in its place.
type Item struct {
	Second bool // a call
	I      int  // index among its kind
	Was    int  // its old place, -1 for none
}

// Order returns the parts of m and, as Second, its calls in the order in which
// they go into a list that has elements, JSON texts, now. What is new stands behind what it
// follows among its kind, and what was moved too. At the head, new parts stand in front of
// all, new calls at from: math.MaxInt for behind all parts. Of one place, calls go first.
func (l Lens) Order(m middleware.Message, elements []string, from int) []Item {
	at := Align(elements, append(texts(l, m.Parts, func(p middleware.Part) *middleware.Native { return p.Native }),
		texts(l, m.ToolCalls, func(c middleware.ToolCall) *middleware.Native { return c.Native })...))
	parts, calls := at[:len(m.Parts)], at[len(m.Parts):]
	a, b := places(parts, -1), places(calls, from)
	var out []Item
	for i, j := 0, 0; i < len(a) || j < len(b); {
		if j == len(b) || i < len(a) && a[i] < b[j] {
			out = append(out, Item{false, i, parts[i]})
			i++
		} else {
			out = append(out, Item{true, j, calls[j]})
			j++
		}
	}
	return out
}

// places returns at with the place of what it follows for each that has none or a lower one.
func places(at []int, last int) []int {
	out := make([]int, len(at))
	for i, n := range at {
		if n < 0 || n < last && i > 0 {
			n = last
		}
		out[i], last = n, n
	}
	return out
}

// texts returns the texts of items, "" for one that is not of this dialect.
func texts[T any](l Lens, items []T, native func(T) *middleware.Native) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = l.Raw(native(item))
	}
	return out
}

// Arrange returns what part and call write of the parts and calls of m, in the order in
// which they go into a list that has elements, JSON texts, now. at is the index of the
// element that it was, -1 for none. What is written as "" is left out. A new call follows
// the call before it; the first one stands at from: math.MaxInt for behind all parts.
func (l Lens) Arrange(m middleware.Message, elements []string, from int,
	part func(p middleware.Part, at int) (string, error), call func(c middleware.ToolCall, at int) (string, error)) (out []string, err error) {
	for _, it := range l.Order(m, elements, from) {
		text := ""
		if it.Second {
			text, err = call(m.ToolCalls[it.I], it.Was)
		} else {
			text, err = part(m.Parts[it.I], it.Was)
		}
		if err != nil {
			return nil, err
		}
		if text != "" {
			out = append(out, text)
		}
	}
	return out, nil
}

// Entry is a message that was decoded, and the index of the element of the wire
// that it came from, -1 for none. Several messages in a row may come from one
// element.
type Entry struct {
	Message middleware.Message
	Group   int
}

// Run is messages that make one element of the wire.
type Run struct {
	Messages []middleware.Message
	At       []int // the entries that they were, -1 for new ones
	Group    int   // the element to edit; -1: a fresh one
	Same     bool  // the element holds just these messages, unchanged
}

// History sorts the messages of a request into the elements of the wire. What
// came out of one element and stands together still goes into it again;
// neighbours that came out of two elements stay in two; for all others, joins
// says whether m goes into the element that was begun. Without joins, each goes
// into one of its own.
//
// A message is found again by the text of its Native, whatever was changed in
// it, in memory or in storage in between.
func (l Lens) History(old []Entry, now []middleware.Message, joins func(begun []middleware.Message, m middleware.Message) bool) []Run {
	have := texts(l, old, func(e Entry) *middleware.Native { return e.Message.Native })
	h := history{old: old, now: now, at: Align(have, texts(l, now, func(m middleware.Message) *middleware.Native { return m.Native }))}
	out := make([]Run, 0, len(now))
	for i := 0; i < len(now); {
		from, g := i, h.group(i)
		for i++; i < len(now); i++ {
			next := h.group(i)
			apart := next >= 0 && h.at[i-1] >= 0 && h.at[i] == h.at[i-1]+1 // as they came
			if next != g && apart || (next != g || g < 0) && (joins == nil || !joins(now[from:i], now[i])) {
				break
			}
			if g < 0 {
				g = next
			}
		}
		out = append(out, Run{now[from:i], h.at[from:i], g, h.same(from, i, g)})
	}
	return out
}

type history struct {
	old []Entry
	now []middleware.Message
	at  []int
}

// group returns the element that message i came from. A message with another
// role than then belongs to none.
func (h history) group(i int) int {
	if h.at[i] < 0 || h.old[h.at[i]].Message.Role != h.now[i].Role {
		return -1
	}
	return h.old[h.at[i]].Group
}

// same reports whether the messages from up to to are all that element g holds.
func (h history) same(from, to, g int) bool {
	if g < 0 || h.holds(h.at[from]-1, g) || h.holds(h.at[to-1]+1, g) {
		return false
	}
	for k := from; k < to; k++ {
		if h.group(k) != g || k > from && h.at[k] != h.at[k-1]+1 || !codec.SameMessage(h.old[h.at[k]].Message, h.now[k]) {
			return false
		}
	}
	return true
}

// holds reports whether entry i is one of element g.
func (h history) holds(i, g int) bool { return i >= 0 && i < len(h.old) && h.old[i].Group == g }
