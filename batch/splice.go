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
//     FixIDs made are not compared. No ids are compared if fixed uses the id of a
//     valid call of kept for another call: then the model numbers its calls anew
//     in each message.
//  2. The call repeats a valid call of kept, which is held: its index is -1. White
//     space and the order of keys make no difference.
//  3. The call corrects the next invalid call with its name and kind.
//  4. The call corrects the next call to an unknown tool, one of its own kind
//     first.
//  5. The call is new and follows those of kept. If its id is taken, it has no id.
//
// A corrected call has the name and the arguments of the correction, and the
// id and Native of kept. Every wire format can write that as an edit of what
// the model sent first. A correction of another kind is inserted unchanged.
//
// If fixed replaces kept instead of correcting it, Splice returns kept
// unchanged and ok is false. That is so if
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
	if slices.Contains(at, unmatched) && (len(m.held) == 0 || reissued(kept.ToolCalls, verdicts, fixed.ToolCalls)) {
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
// and kind of each call of kept. Any call matches a call to an unknown tool.
func reissued(kept []middleware.ToolCall, verdicts []middleware.Verdict, fixed []middleware.ToolCall) bool {
	n := 0
	for _, c := range fixed {
		if n < len(kept) && (toolOf(c) == toolOf(kept[n]) || hasCode(verdicts[n], codeUnknownTool)) {
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
	used    []bool
	ids     map[idOfTool][]int        // invalid calls by id and tool, in order
	tools   map[tool][]int            // by tool
	unknown map[middleware.Kind][]int // those to unknown tools, by kind
	others  map[struct{}][]int        // all calls to unknown tools
	held    map[content]bool          // the valid calls
	heldIDs map[string]content        // the same calls, by id
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
		unknown: map[middleware.Kind][]int{}, others: map[struct{}][]int{}, held: map[content]bool{}, heldIDs: map[string]content{}}
	for i, c := range kept {
		if verdicts[i].OK() {
			m.held[contentOf(c)] = true
			m.heldIDs[c.ID] = contentOf(c)
			continue
		}
		if !history.IsMadeUp(c.ID) {
			id := idOfTool{c.ID, toolOf(c)}
			m.ids[id] = append(m.ids[id], i)
		}
		m.tools[toolOf(c)] = append(m.tools[toolOf(c)], i)
		if hasCode(verdicts[i], codeUnknownTool) {
			m.unknown[c.Kind] = append(m.unknown[c.Kind], i)
			m.others[struct{}{}] = append(m.others[struct{}{}], i)
		}
	}
	return m
}

// match returns where each call of fixed goes.
func (m *matcher) match(fixed []middleware.ToolCall) []int {
	ways := []func(middleware.ToolCall) int{m.byID, m.repeated, m.byTool, m.byUnknown, m.byOther}
	if slices.ContainsFunc(fixed, m.beginsAnew) {
		ways = ways[1:]
	}
	at := make([]int, len(fixed))
	for n := range at {
		at[n] = unmatched
	}
	for _, way := range ways {
		for n, c := range fixed {
			if at[n] == unmatched {
				at[n] = way(c)
			}
		}
	}
	return at
}

// beginsAnew reports whether c has the id of a valid call and is not that call.
func (m *matcher) beginsAnew(c middleware.ToolCall) bool {
	was, taken := m.heldIDs[c.ID]
	return taken && !history.IsMadeUp(c.ID) && was != contentOf(c)
}

// take returns the first unassigned call of key.
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

func (m *matcher) byID(c middleware.ToolCall) int { return take(m, m.ids, idOfTool{c.ID, toolOf(c)}) }

func (m *matcher) repeated(c middleware.ToolCall) int {
	if m.held[contentOf(c)] {
		return isRepeated
	}
	return unmatched
}

func (m *matcher) byTool(c middleware.ToolCall) int { return take(m, m.tools, toolOf(c)) }

func (m *matcher) byUnknown(c middleware.ToolCall) int { return take(m, m.unknown, c.Kind) }

func (m *matcher) byOther(middleware.ToolCall) int { return take(m, m.others, struct{}{}) }

// Issue codes of package argsvalidate.
const (
	codeUnknownTool = "unknown_tool"
	codeTooMany     = "too_many_calls"
)

func hasCode(v middleware.Verdict, code string) bool {
	return slices.ContainsFunc(v.Issues, func(i middleware.Issue) bool { return i.Code == code })
}

// Lost returns the valid calls of a failed turn that are missing in the next
// message, compared by tool name. A model that is asked for the whole batch,
// and sends only the corrected call, has lost its siblings. If next has no
// calls, Lost returns nil, because the model has then chosen not to call
// tools.
func Lost(verdicts []middleware.Verdict, next middleware.Message) []middleware.ToolCall {
	if len(verdicts) == 0 || len(next.ToolCalls) == 0 {
		return nil
	}
	back := map[string]int{}
	for _, c := range next.ToolCalls {
		back[c.Name]++
	}
	for _, v := range verdicts { // the corrected calls take their names first
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
