package batch

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Splice returns kept with its invalid calls corrected by the calls of fixed,
// and where each call of fixed went. fixed may correct some of the invalid calls
// only.
//
// A call corrects the invalid call of its id, name and kind, else the next one of
// its name and kind. Ids that FixIDs made are not compared, and none are if an id
// of fixed is that of a valid call of kept: then the ids begin anew in each
// message. A call to an unknown tool is corrected by the next call that is left,
// if there is one, of its own kind. The corrected call has the name and the
// arguments of the correction, and the id and Native of kept, so that every wire
// format can carry it as an edit of what the model sent first. A correction of
// another kind takes the place as it is.
//
// A call that repeats a valid call of kept, which is held, goes nowhere: -1. White
// space and the order of keys make no difference. The calls that are left are new
// and follow those of kept. One whose id is taken has none then.
//
// Splice is false and returns kept as it is if fixed stands alone: kept has no
// invalid call, or fixed has no call, or there are new calls and kept holds no
// valid call, or there are new calls and the calls of kept have all come back, by
// name and in order: then the whole batch was sent again. Neither message is
// changed.
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
			if hasID(kept.ToolCalls, c.ID) {
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

// reissued reports whether fixed has a call of the name and kind of each call of
// kept, in the same order, and any call for one to an unknown tool.
func reissued(kept []middleware.ToolCall, verdicts []middleware.Verdict, fixed []middleware.ToolCall) bool {
	n := 0
	for _, c := range fixed {
		if n < len(kept) && (toolOf(c) == toolOf(kept[n]) || hasCode(verdicts[n], codeUnknownTool)) {
			n++
		}
	}
	return n == len(kept)
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
	ids     map[idOfTool][]int        // broken calls by id and tool, in order
	tools   map[tool][]int            // by tool
	unknown map[middleware.Kind][]int // those to unknown tools, by kind
	others  map[struct{}][]int        // those to unknown tools
	held    map[content]bool          // the valid calls
	heldIDs map[string]content        // by id
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
		if !madeUp(c.ID) {
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
	return taken && !madeUp(c.ID) && was != contentOf(c)
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
