package batch

import "github.com/toolmend/toolmend/middleware"

// Splice returns kept with the arguments of its invalid calls replaced by
// those of fixed, and where in kept each call of fixed went. Calls are matched
// by name, in order; a call to an unknown tool takes the next one that is
// left, and its name. Ids and Native of kept stay, so that every wire format
// can carry the result as an edit of what the model sent first.
//
// It is false, and kept is returned as it is, unless fixed holds exactly the
// calls that were invalid. Neither message is changed.
func Splice(kept, fixed middleware.Message, verdicts []middleware.Verdict) (spliced middleware.Message, at []int, ok bool) {
	var broken []int
	for i, v := range verdicts {
		if !v.OK() {
			broken = append(broken, i)
		}
	}
	if len(verdicts) != len(kept.ToolCalls) || len(broken) == 0 || len(fixed.ToolCalls) != len(broken) {
		return kept, nil, false
	}
	at = make([]int, len(fixed.ToolCalls))
	used := map[int]bool{}
	var rest []int
	for n, c := range fixed.ToolCalls {
		at[n] = -1
		for _, i := range broken {
			if !used[i] && kept.ToolCalls[i].Name == c.Name {
				at[n], used[i] = i, true
				break
			}
		}
		if at[n] < 0 {
			rest = append(rest, n)
		}
	}
	for _, n := range rest {
		for _, i := range broken {
			if !used[i] && unknown(verdicts[i]) {
				at[n], used[i] = i, true
				break
			}
		}
		if at[n] < 0 {
			return kept, nil, false
		}
	}
	spliced = kept.Clone()
	for n, i := range at {
		spliced.ToolCalls[i].Name = fixed.ToolCalls[n].Name
		spliced.ToolCalls[i].Arguments = fixed.ToolCalls[n].Arguments
	}
	return spliced, at, true
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
