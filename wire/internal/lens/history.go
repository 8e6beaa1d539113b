package lens

import (
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

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
	h := history{old: old, now: now, at: l.aligned(old, now)}
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

func (l Lens) aligned(old []Entry, now []middleware.Message) []int {
	have, want := make([]string, len(old)), make([]string, len(now))
	for i, e := range old {
		have[i] = l.Raw(e.Message.Native)
	}
	for i, m := range now {
		want[i] = l.Raw(m.Native)
	}
	return Align(have, want)
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
