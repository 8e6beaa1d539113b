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
	m := matcher{kept: kept.ToolCalls, verdicts: verdicts, used: make([]bool, len(verdicts))}
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

// matcher finds the broken call that another one corrects, each once.
type matcher struct {
	kept     []middleware.ToolCall
	verdicts []middleware.Verdict
	used     []bool
}

// take returns the first broken call that is left and fits.
func (m *matcher) take(fits func(i int) bool) int {
	for i, v := range m.verdicts {
		if !v.OK() && !m.used[i] && fits(i) {
			m.used[i] = true
			return i
		}
	}
	return unmatched
}

func (m *matcher) byID(c middleware.ToolCall) int {
	return m.take(func(i int) bool { return m.kept[i].ID == c.ID && m.kept[i].Name == c.Name })
}

func (m *matcher) repeated(c middleware.ToolCall) int {
	for i, v := range m.verdicts {
		if v.OK() && m.kept[i].Name == c.Name && m.kept[i].Arguments == c.Arguments {
			return isRepeated
		}
	}
	return unmatched
}

func (m *matcher) byName(c middleware.ToolCall) int {
	return m.take(func(i int) bool { return m.kept[i].Name == c.Name })
}

func (m *matcher) byUnknown(middleware.ToolCall) int {
	return m.take(func(i int) bool { return unknown(m.verdicts[i]) })
}

func unknown(v middleware.Verdict) bool {
	for _, i := range v.Issues {
		if i.Code == "unknown_tool" {
			return true
		}
	}
	return false
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
