package batch

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Splice returns kept with the arguments of invalid calls replaced by those of
// fixed, and where in kept each call of fixed went. fixed may correct some of
// the invalid calls only. Calls are matched by id and name, else by name in
// order; a call to an unknown tool takes the next one that is left, and its
// name. One that repeats a valid call of kept, which is held, goes nowhere: -1.
// Ids and Native of kept stay, so that every wire format can carry the result
// as an edit of what the model sent first.
//
// It is false, and kept is returned as it is, if kept has no invalid call, or
// fixed has no call at all or one that is none of these. Neither message is changed.
func Splice(kept, fixed middleware.Message, verdicts []middleware.Verdict) (spliced middleware.Message, at []int, ok bool) {
	broken := slices.ContainsFunc(verdicts, func(v middleware.Verdict) bool { return !v.OK() })
	if len(verdicts) != len(kept.ToolCalls) || len(fixed.ToolCalls) == 0 || !broken {
		return kept, nil, false
	}
	m := newMatcher(kept.ToolCalls, verdicts)
	at = make([]int, len(fixed.ToolCalls))
	for n := range at {
		at[n] = unmatched
	}
	for _, match := range []func(middleware.ToolCall) int{m.byID, m.repeated, m.byName, m.byUnknown} {
		for n, c := range fixed.ToolCalls {
			if at[n] == unmatched {
				at[n] = match(c)
			}
		}
	}
	spliced = kept.Clone()
	for n, i := range at {
		if i == unmatched {
			return kept, nil, false
		}
		if i >= 0 {
			spliced.ToolCalls[i].Name = fixed.ToolCalls[n].Name
			spliced.ToolCalls[i].Arguments = fixed.ToolCalls[n].Arguments
		}
	}
	return spliced, at, true
}

// Where a call goes that has no place in the kept message.
const (
	isRepeated = -1
	unmatched  = -2
)

// matcher finds the broken call that another one corrects, each once. Its work
// is linear in the calls.
type matcher struct {
	used    []bool
	ids     map[idAndName][]int // broken calls by id and name, in order
	names   map[string][]int    // by name
	unknown map[struct{}][]int  // those to unknown tools
	held    map[content]bool    // the valid calls
}

type idAndName struct{ id, name string }

type content struct{ name, arguments string }

func newMatcher(kept []middleware.ToolCall, verdicts []middleware.Verdict) *matcher {
	m := &matcher{used: make([]bool, len(kept)), ids: map[idAndName][]int{}, names: map[string][]int{},
		unknown: map[struct{}][]int{}, held: map[content]bool{}}
	for i, c := range kept {
		if verdicts[i].OK() {
			m.held[content{c.Name, c.Arguments}] = true
			continue
		}
		id := idAndName{c.ID, c.Name}
		m.ids[id] = append(m.ids[id], i)
		m.names[c.Name] = append(m.names[c.Name], i)
		if hasCode(verdicts[i], codeUnknownTool) {
			m.unknown[struct{}{}] = append(m.unknown[struct{}{}], i)
		}
	}
	return m
}

// take returns the first call at key that is left.
func take[K comparable](m *matcher, calls map[K][]int, key K) int {
	for queue := calls[key]; len(queue) > 0; {
		i := queue[0]
		queue = queue[1:]
		calls[key] = queue
		if !m.used[i] {
			m.used[i] = true
			return i
		}
	}
	return unmatched
}

func (m *matcher) byID(c middleware.ToolCall) int { return take(m, m.ids, idAndName{c.ID, c.Name}) }

func (m *matcher) repeated(c middleware.ToolCall) int {
	if m.held[content{c.Name, c.Arguments}] {
		return isRepeated
	}
	return unmatched
}

func (m *matcher) byName(c middleware.ToolCall) int { return take(m, m.names, c.Name) }

func (m *matcher) byUnknown(middleware.ToolCall) int { return take(m, m.unknown, struct{}{}) }

// Codes of package argsvalidate.
const (
	codeUnknownTool = "unknown_tool"
	codeTooMany     = "too_many_calls"
)

func hasCode(v middleware.Verdict, code string) bool {
	return slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return i.Code == code })
}

// Lost returns the valid calls of a failed turn that did not come back in the
// next message, told by name: a model that is asked for the whole batch again
// and sends the corrected call only has dropped its siblings. None are lost in
// a message without calls: there the model changed its mind.
func Lost(verdicts []middleware.Verdict, next middleware.Message) []middleware.ToolCall {
	if len(next.ToolCalls) == 0 {
		return nil
	}
	back := map[string]int{}
	for _, c := range next.ToolCalls {
		back[c.Name]++
	}
	for _, v := range verdicts { // the corrected calls take their places first
		if !v.OK() && back[v.Call.Name] > 0 {
			back[v.Call.Name]--
		}
	}
	var lost []middleware.ToolCall
	for _, v := range verdicts {
		if !v.OK() {
			continue
		}
		if back[v.Call.Name] > 0 {
			back[v.Call.Name]--
			continue
		}
		lost = append(lost, v.Call)
	}
	return lost
}
