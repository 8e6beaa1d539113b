package codec

import (
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

const placePrefix = "toolmend_"

// PlaceID is the id of the n-th call of a conversation, from 1, on a wire that
// gives it none: the same in the answer and in later history.
func PlaceID(n int) string { return placePrefix + strconv.Itoa(n) }

// IsPlaceID reports whether id is one of PlaceID, which is never written to a
// wire that has none.
func IsPlaceID(id string) bool {
	n, ok := strings.CutPrefix(id, placePrefix)
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// Pairing finds the calls that results without an id belong to. The zero
// Pairing is ready; its work is linear in calls and results.
type Pairing struct {
	calls  []middleware.ToolCall
	used   []bool
	first  int // before it all are used
	byID   map[string][]int
	byName map[string][]int
}

// Turn starts the turn of an assistant message with those calls: what was not
// answered before it never will be. Without calls nothing changes.
func (p *Pairing) Turn(calls []middleware.ToolCall) {
	if len(calls) > 0 {
		*p = Pairing{calls: calls, used: make([]bool, len(calls))}
	}
}

// Result returns the index, in the calls of the turn, of the call that a
// result is for: that of the id; without an id the first open one of the name;
// else the first open one. It is -1 if there is none. The call is then closed.
func (p *Pairing) Result(id, name string) int {
	i := p.Find(id, name)
	if i >= 0 {
		p.used[i] = true
	}
	return i
}

// Find is Result for a call that stays open.
func (p *Pairing) Find(id, name string) int {
	if p.byID == nil {
		p.byID, p.byName = map[string][]int{}, map[string][]int{}
		for i, c := range p.calls {
			p.byID[c.ID] = append(p.byID[c.ID], i)
			p.byName[c.Name] = append(p.byName[c.Name], i)
		}
	}
	if id != "" {
		return p.open(p.byID, id)
	}
	if i := p.open(p.byName, name); i >= 0 {
		return i
	}
	for ; p.first < len(p.calls); p.first++ {
		if !p.used[p.first] {
			return p.first
		}
	}
	return -1
}

// open returns the first open call of those under key, -1 for none.
func (p *Pairing) open(by map[string][]int, key string) int {
	for len(by[key]) > 0 {
		if i := by[key][0]; !p.used[i] {
			return i
		}
		by[key] = by[key][1:]
	}
	return -1
}
