package middlewaretest

import (
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// calls writes the calls of one answer. It may change resp's finish reason.
func (f *Faulty) calls(req *middleware.Request, tools []middleware.Tool, resp *middleware.Response) []middleware.ToolCall {
	plan := f.plan(req, tools)
	var calls []middleware.ToolCall
	for i, tool := range plan {
		root := arguments(f.rng, tool.Parameters)
		for _, fault := range valueFaults {
			if f.draws(fault) && f.breakValue(fault, root) {
				f.injected[fault]++
			}
		}
		f.ids++
		c := middleware.ToolCall{ID: fmt.Sprintf("call_%d", f.ids), Name: tool.Name, Arguments: root.String()}
		for _, fault := range textFaults {
			if !f.draws(fault) || fault == FaultTruncated && i < len(plan)-1 {
				continue
			}
			if text, ok := f.breakText(fault, root); ok {
				f.injected[fault]++
				c.Arguments = text
				if fault == FaultTruncated {
					resp.FinishReason = middleware.FinishLength
				}
				break
			}
		}
		f.breakName(&c, tools)
		f.breakID(&c, calls, req.Messages)
		calls = append(calls, c)
	}
	if resp.FinishReason != middleware.FinishLength && f.due(FaultRepeatedCall) {
		c := calls[len(calls)-1]
		f.ids++
		c.ID = fmt.Sprintf("call_%d", f.ids)
		calls = append(calls, c)
	}
	return calls
}

// plan chooses the tools to call: those of the turn that failed, else any.
func (f *Faulty) plan(req *middleware.Request, tools []middleware.Tool) []middleware.Tool {
	calls, failed := lastTurn(req.Messages)
	some := len(failed) > 0 && len(failed) < len(calls)
	lose := f.draws(FaultLostSibling) && some
	if lose {
		f.injected[FaultLostSibling]++
	}
	var plan []middleware.Tool
	if len(failed) > 0 {
		for _, c := range calls {
			if lose && !failed[c.ID] {
				continue
			}
			tool := tools[f.rng.IntN(len(tools))]
			for _, t := range tools {
				if t.Name == c.Name {
					tool = t
				}
			}
			plan = append(plan, tool)
		}
	}
	if len(plan) > 0 {
		return plan
	}
	for range 1 + f.rng.IntN(f.o.Calls) {
		plan = append(plan, tools[f.rng.IntN(len(tools))])
	}
	return plan
}

// breakName puts at most one fault into the call's name, and none that makes it
// the name of another tool.
func (f *Faulty) breakName(c *middleware.ToolCall, tools []middleware.Tool) {
	for _, fault := range nameFaults {
		if !f.draws(fault) {
			continue
		}
		name := map[Fault]string{
			FaultInventedName: "search_the_web", FaultControlToken: c.Name + "<|channel|>commentary", FaultPrefixedName: "functions." + c.Name,
			FaultNameCase: otherCase(c.Name),
		}[fault]
		for _, t := range tools {
			if t.Name == name {
				name = c.Name // it is a tool after all: no fault
			}
		}
		if name != c.Name {
			f.injected[fault]++
			c.Name = name
			return
		}
	}
}

// otherCase returns s in capital letters, or in small ones if it is in capital
// letters already. A name without letters stays.
func otherCase(s string) string {
	if upper := strings.ToUpper(s); upper != s {
		return upper
	}
	return strings.ToLower(s)
}

// breakID puts at most one fault into the call's id. before are the calls of the
// same answer, history the messages of the request: the places where an id can
// be taken from a second time.
func (f *Faulty) breakID(c *middleware.ToolCall, before []middleware.ToolCall, history []middleware.Message) {
	var earlier []string
	for _, m := range history {
		for _, e := range m.ToolCalls {
			earlier = append(earlier, e.ID)
		}
	}
	for _, fault := range idFaults {
		if !f.draws(fault) {
			continue
		}
		switch {
		case fault == FaultMissingID:
			c.ID = ""
		case fault == FaultBlankID:
			c.ID = " \t"
		case fault == FaultDuplicateID && len(before) > 0:
			c.ID = before[f.rng.IntN(len(before))].ID
		case fault == FaultReusedID && len(earlier) > 0:
			c.ID = earlier[f.rng.IntN(len(earlier))]
		default:
			continue
		}
		f.injected[fault]++
		return
	}
}

// callable returns the tools that an answer may call.
func callable(req *middleware.Request) []middleware.Tool {
	var out []middleware.Tool
	c := req.ToolChoice
	for _, t := range req.Tools {
		if t.Kind == middleware.KindFunction && (c.Name == t.Name || c.Name == "" && c.Mode != middleware.ToolNone) {
			out = append(out, t)
		}
	}
	return out
}

// answered counts the good tool messages after the last user message.
func answered(ms []middleware.Message) int {
	n := 0
	for i := len(ms) - 1; i >= 0 && ms[i].Role != middleware.RoleUser; i-- {
		if ms[i].Role == middleware.RoleTool && !ms[i].IsError {
			n++
		}
	}
	return n
}

// lastTurn returns the calls that the messages at the end answer, and the ids
// of those that failed.
func lastTurn(ms []middleware.Message) ([]middleware.ToolCall, map[string]bool) {
	failed := map[string]bool{}
	i := len(ms) - 1
	for ; i >= 0 && ms[i].Role == middleware.RoleTool; i-- {
		if ms[i].IsError {
			failed[ms[i].ToolCallID] = true
		}
	}
	if i < 0 || len(failed) == 0 {
		return nil, nil
	}
	return ms[i].ToolCalls, failed
}
