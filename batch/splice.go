package batch

import (
	"slices"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Splice returns kept with its invalid calls corrected by the calls of fixed.
// at[i] is the index of the i-th call of fixed in the result. fixed need not
// correct all of the invalid calls. Splice modifies neither message.
//
// For each call of fixed, the first of these rules that applies decides:
//
//  1. The call corrects the invalid call with its id, name and kind. Ids that
//     Toolmend made are not compared. No ids are compared if fixed uses the id of a
//     valid call of kept for another call: then the model numbers its calls anew
//     in each message.
//  2. The call repeats a valid call of kept: its index is -1. White space and the
//     order of keys make no difference.
//  3. The call corrects the next invalid call with its name and kind.
//  4. The call corrects the next call to an unknown tool, one of its own kind
//     first.
//  5. The call is new and is appended. If a call of kept has its id, it gets an empty id.
//
// A corrected call has the name and the arguments of the correction, and the
// id and Native of the call in kept, so that every wire format can write it as an edit
// of the first message. A correction of another kind is inserted unchanged.
//
// If fixed replaces kept instead of correcting it, Splice returns kept and ok is
// false. This is so if
//
//   - kept has no invalid call, or fixed has no call;
//   - there are new calls, and kept has no valid call;
//   - there are new calls, and fixed has the calls of kept again, by name and in
//     order: the model sent the whole batch again.
func Splice(kept, fixed middleware.Message, verdicts []middleware.Verdict) (spliced middleware.Message, at []int, ok bool) {
	broken := slices.ContainsFunc(verdicts, func(v middleware.Verdict) bool { return !v.OK() })
	if len(verdicts) != len(kept.ToolCalls) || len(fixed.ToolCalls) == 0 || !broken {
		return kept, nil, false
	}
	m := newMatcher(kept.ToolCalls, verdicts)
	at = m.match(fixed.ToolCalls)
	if slices.Contains(at, unmatched) && (len(m.valid) == 0 || reissued(kept.ToolCalls, verdicts, fixed.ToolCalls)) {
		return kept, nil, false
	}
	spliced = kept.Clone()
	for n, c := range fixed.ToolCalls {
		switch i := at[n]; {
		case i == isRepeated:
		case i >= 0 && kept.ToolCalls[i].Kind == c.Kind:
			spliced.ToolCalls[i].Name, spliced.ToolCalls[i].Arguments = c.Name, c.Arguments
		default:
			if slices.ContainsFunc(kept.ToolCalls, func(k middleware.ToolCall) bool { return k.ID == c.ID }) {
				c.ID = ""
			}
			if i == unmatched {
				i = len(spliced.ToolCalls)
				spliced.ToolCalls = append(spliced.ToolCalls, c)
			}
			at[n], spliced.ToolCalls[i] = i, c
		}
	}
	return spliced, at, true
}

// reissued reports whether fixed has, in the same order, a call with the name
// and kind of each call of kept. Any call matches a call to an unknown tool, and to a tool
// that may not be called.
func reissued(kept []middleware.ToolCall, verdicts []middleware.Verdict, fixed []middleware.ToolCall) bool {
	n := 0
	for _, c := range fixed {
		if n < len(kept) && (toolOf(c) == toolOf(kept[n]) || hasCode(verdicts[n], codeUnknownTool) || hasCode(verdicts[n], codeToolChoice)) {
			n++
		}
	}
	return n == len(kept)
}

// Indexes for a call that has no place in the kept message.
const (
	isRepeated = -1
	unmatched  = -2
)

// matcher assigns each correction to an invalid call, each call once. Its work
// is linear in the calls.
type matcher struct {
	used       []bool
	ids        map[idOfTool][]int        // invalid calls by id and tool, in order
	tools      map[tool][]int            // invalid calls by tool
	unknown    map[middleware.Kind][]int // calls to unknown tools, by kind
	anyUnknown map[struct{}][]int        // calls to unknown tools
	valid      map[content]bool          // valid calls
	validIDs   map[string]content        // valid calls by id
}

type tool struct {
	kind middleware.Kind
	name string
}

type idOfTool struct {
	id string
	tool
}

type content struct {
	tool
	arguments string
}

func toolOf(c middleware.ToolCall) tool { return tool{c.Kind, c.Name} }

func contentOf(c middleware.ToolCall) content {
	if c.Kind == middleware.KindFunction {
		return content{toolOf(c), rawjson.Canonical(c.Arguments)}
	}
	return content{toolOf(c), c.Arguments}
}

func newMatcher(kept []middleware.ToolCall, verdicts []middleware.Verdict) *matcher {
	m := &matcher{used: make([]bool, len(kept)), ids: map[idOfTool][]int{}, tools: map[tool][]int{},
		unknown: map[middleware.Kind][]int{}, anyUnknown: map[struct{}][]int{}, valid: map[content]bool{}, validIDs: map[string]content{}}
	for i, c := range kept {
		if verdicts[i].OK() {
			m.valid[contentOf(c)] = true
			m.validIDs[c.ID] = contentOf(c)
			continue
		}
		if !history.IsMadeUp(c.ID) {
			id := idOfTool{c.ID, toolOf(c)}
			m.ids[id] = append(m.ids[id], i)
		}
		m.tools[toolOf(c)] = append(m.tools[toolOf(c)], i)
		if hasCode(verdicts[i], codeUnknownTool) {
			m.unknown[c.Kind] = append(m.unknown[c.Kind], i)
			m.anyUnknown[struct{}{}] = append(m.anyUnknown[struct{}{}], i)
		}
	}
	return m
}

// match returns the index in the result for each call of fixed.
func (m *matcher) match(fixed []middleware.ToolCall) []int {
	rules := []func(middleware.ToolCall) int{m.byID, m.repeated, m.byTool, m.byUnknown, m.byAnyUnknown}
	if slices.ContainsFunc(fixed, m.reusesID) {
		rules = rules[1:]
	}
	at := make([]int, len(fixed))
	for n := range at {
		at[n] = unmatched
	}
	for _, rule := range rules {
		for n, c := range fixed {
			if at[n] == unmatched {
				at[n] = rule(c)
			}
		}
	}
	return at
}

// reusesID reports whether c has the id of a valid call and is not that call.
func (m *matcher) reusesID(c middleware.ToolCall) bool {
	was, taken := m.validIDs[c.ID]
	return taken && !history.IsMadeUp(c.ID) && was != contentOf(c)
}

// nextUnassigned returns the first unassigned call of key.
func nextUnassigned[K comparable](m *matcher, calls map[K][]int, key K) int {
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

func (m *matcher) byID(c middleware.ToolCall) int {
	return nextUnassigned(m, m.ids, idOfTool{c.ID, toolOf(c)})
}

func (m *matcher) repeated(c middleware.ToolCall) int {
	if m.valid[contentOf(c)] {
		return isRepeated
	}
	return unmatched
}

func (m *matcher) byTool(c middleware.ToolCall) int { return nextUnassigned(m, m.tools, toolOf(c)) }

func (m *matcher) byUnknown(c middleware.ToolCall) int { return nextUnassigned(m, m.unknown, c.Kind) }

func (m *matcher) byAnyUnknown(middleware.ToolCall) int {
	return nextUnassigned(m, m.anyUnknown, struct{}{})
}

// Issue codes of package argsvalidate.
const (
	codeUnknownTool = "unknown_tool"
	codeTooMany     = "too_many_calls"
	codeToolChoice  = "tool_choice"
	codeParallel    = "parallel_calls"
)

func hasCode(v middleware.Verdict, code string) bool {
	return slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return i.Code == code })
}

// Lost returns the valid calls of a failed message that are missing in the next message,
// compared by tool name. A model that is asked for all calls, and sends only the corrected
// one, has lost the valid ones. If next has no calls, Lost returns nil, because the model
// has then chosen not to call tools.
func Lost(verdicts []middleware.Verdict, next middleware.Message) []middleware.ToolCall {
	if len(verdicts) == 0 || len(next.ToolCalls) == 0 {
		return nil
	}
	left := map[string]int{}
	for _, c := range next.ToolCalls {
		left[c.Name]++
	}
	for _, v := range verdicts { // the corrected calls take their names first
		if !v.OK() && left[v.Call.Name] > 0 {
			left[v.Call.Name]--
		}
	}
	var lost []middleware.ToolCall
	for _, v := range verdicts {
		if !v.OK() {
			continue
		}
		if left[v.Call.Name] > 0 {
			left[v.Call.Name]--
			continue
		}
		lost = append(lost, v.Call)
	}
	return lost
}
