package history

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// FixIDs replaces m's missing, blank, duplicate and reused call ids by unique
// ones: the n-th call of the conversation gets the id toolmend_n. A call gets
// the same id every time, in the response and in later history, so prompt
// caches stay valid. history is the conversation before m; FixIDs does not
// change it, even if its ids are ambiguous. Other ids stay, and m itself is
// not modified.
func FixIDs(history []middleware.Message, m middleware.Message) middleware.Message {
	if !anyIDBroken(history, m) {
		return m
	}
	place, used := idsOf(history)
	m = m.Clone()
	own := map[string]bool{} // a new id must not equal the valid id of a later call
	for _, c := range m.ToolCalls {
		own[c.ID] = true
	}
	assigned := map[string]bool{}
	for i := range m.ToolCalls {
		place++
		id := m.ToolCalls[i].ID
		if isBlank(id) || used[id] || assigned[id] {
			id = madeUpPrefix + strconv.Itoa(place)
			for n := 2; used[id] || assigned[id] || own[id]; n++ {
				id = madeUpPrefix + strconv.Itoa(place) + "_" + strconv.Itoa(n)
			}
			m.ToolCalls[i].ID = id
		}
		assigned[id] = true
	}
	return m
}

// FixAnswer is FixIDs for m, an answer to req. It reads deferred messages only if one of them may
// have an id of m, or if m has many calls: each is looked for in the whole request.
func FixAnswer(req *middleware.Request, m middleware.Message) middleware.Message {
	few := len(m.ToolCalls) <= pairwise && req.SameDeferred(req)
	if len(m.ToolCalls) == 0 || few && !anyIDBroken(nil, m) && !mayHoldID(req, m.ToolCalls) {
		return m
	}
	return FixIDs(req.Loaded().Messages, m)
}

// mayHoldID reports whether the deferred conversation of req may have the id of a call: its JSON text in some
// spelling, and an id with characters that usual ids do not have may have many. An id by its place is in the
// conversation, and not in its text, if the conversation has as many calls.
func mayHoldID(req *middleware.Request, calls []middleware.ToolCall) bool {
	raw := req.Native.Raw
	places, counted := req.DeferredCalls()
	for _, c := range calls {
		number, isMadeUp := strings.CutPrefix(c.ID, madeUpPrefix)
		n, err := strconv.Atoi(number)
		if isMadeUp && (!counted || err != nil || n <= places) || c.ID == "" || strings.Trim(c.ID, usualID) != "" || contains(raw, c.ID) {
			return true
		}
	}
	return contains(raw, "u00") && escapedUsual.MatchString(raw) // the first is far faster
}

// contains is strings.Contains, and faster for a long text: it looks for the byte of word that the
// text has least, by a sample, and not for the first one.
func contains(text, word string) bool {
	if word == "" || len(word) > 64 || len(word) > len(text) { // a long one could be compared at each byte
		return strings.Contains(text, word)
	}
	sample := text[len(text)/2:][:min(len(text)/2, 4<<10)]
	at, least := 0, len(text)
	for i := range len(word) {
		if n := strings.Count(sample, word[i:i+1]); n < least {
			at, least = i, n
		}
	}
	for from := at; ; from++ {
		i := strings.IndexByte(text[from:], word[at])
		if i < 0 {
			return false
		}
		if from += i; strings.HasPrefix(text[from-at:], word) {
			return true
		}
	}
}

// usualID has the characters of usual ids. A pattern would take longer.
const usualID = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-"

var escapedUsual = regexp.MustCompile(`\\u00(2[dDeE]|3[\daA]|[46][1-9a-fA-F]|[57][\daA]|5[fF])`) // one of its characters as an escape

// NewIDs returns a function that returns the ids of new calls after history. The n-th call
// of the conversation gets the id prefix_n.
func NewIDs(history []middleware.Message, prefix string) func() string {
	place, used := idsOf(history)
	return func() string {
		place++
		id := prefix + "_" + strconv.Itoa(place)
		for n := 2; used[id]; n++ {
			id = prefix + "_" + strconv.Itoa(place) + "_" + strconv.Itoa(n)
		}
		used[id] = true
		return id
	}
}

// idsOf returns the number of calls in history, and the set of their ids.
func idsOf(history []middleware.Message) (calls int, ids map[string]bool) {
	ids = map[string]bool{}
	for _, h := range history {
		calls += len(h.ToolCalls)
		for _, c := range h.ToolCalls {
			ids[c.ID] = true
		}
	}
	return calls, ids
}

// pairwise is the number of calls up to which comparing all pairs is faster than a set.
const pairwise = 8

// anyIDBroken is the fast path for almost every message. It does not allocate
// for a few calls, and its work is linear in the calls of m and of history.
func anyIDBroken(history []middleware.Message, m middleware.Message) bool {
	if len(m.ToolCalls) > pairwise {
		return anyIDOfMany(history, m)
	}
	for i, c := range m.ToolCalls {
		if isBlank(c.ID) || hasID(m.ToolCalls[:i], c.ID) {
			return true
		}
		for j := range history {
			if hasID(history[j].ToolCalls, c.ID) {
				return true
			}
		}
	}
	return false
}

// hasID reports whether one of calls has the id.
func hasID(calls []middleware.ToolCall, id string) bool {
	for i := range calls {
		if calls[i].ID == id {
			return true
		}
	}
	return false
}

// anyIDOfMany is anyIDBroken with a set.
func anyIDOfMany(history []middleware.Message, m middleware.Message) bool {
	own := make(map[string]bool, len(m.ToolCalls))
	for i := range m.ToolCalls {
		id := m.ToolCalls[i].ID
		if isBlank(id) || own[id] {
			return true
		}
		own[id] = true
	}
	for _, h := range history {
		for i := range h.ToolCalls {
			if own[h.ToolCalls[i].ID] {
				return true
			}
		}
	}
	return false
}

// isBlank reports whether s is empty or white space.
func isBlank(id string) bool { return strings.TrimSpace(id) == "" }

const madeUpPrefix = "toolmend_"

// IsMadeUp reports whether FixIDs made id. Such an id numbers the place of a call,
// and does not identify the call.
func IsMadeUp(id string) bool { return strings.HasPrefix(id, madeUpPrefix) }
