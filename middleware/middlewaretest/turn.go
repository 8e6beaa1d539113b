package middlewaretest

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// calls writes the calls of one answer. It may change resp's finish reason.
func (f *Faulty) calls(req *middleware.Request, tools []middleware.Tool, resp *middleware.Response) []middleware.ToolCall {
	plan := f.plan(req, tools)
	var calls []middleware.ToolCall
	for i, tool := range plan {
		root := arguments(f.rng, tool.Parameters)
		for _, e := range valueFaults {
			if f.draws(e.fault) && e.make(f, root) {
				f.injected[e.fault]++
			}
		}
		c := middleware.ToolCall{ID: f.newID(), Name: tool.Name, Arguments: root.String()}
		for _, e := range textFaults {
			if !f.draws(e.fault) || e.fault == truncated && i < len(plan)-1 {
				continue
			}
			if text, ok := e.make(f, root); ok {
				f.injected[e.fault]++
				c.Arguments = text
				if e.fault == truncated {
					resp.FinishReason = middleware.FinishLength
				}
				break
			}
		}
		f.breakName(&c, tools)
		f.breakID(&c, calls, req.Messages)
		calls = append(calls, c)
	}
	if resp.FinishReason != middleware.FinishLength && f.due(repeatedCall) {
		c := calls[len(calls)-1]
		c.ID = f.newID()
		calls = append(calls, c)
	}
	return calls
}

// newID returns an id that no call of this model had before.
func (f *Faulty) newID() string {
	f.ids++
	return fmt.Sprintf("call_%d", f.ids)
}

// plan chooses the tools to call: those of the turn that failed, else any.
func (f *Faulty) plan(req *middleware.Request, tools []middleware.Tool) []middleware.Tool {
	calls, failed := lastTurn(req.Messages)
	some := len(failed) > 0 && len(failed) < len(calls)
	lose := f.draws(lostSibling) && some
	if lose {
		f.injected[lostSibling]++
	}
	var plan []middleware.Tool
	if len(failed) > 0 {
		for _, c := range calls {
			if lose && !failed[c.ID] {
				continue
			}
			any := f.rng.IntN(len(tools)) // drawn in any case, so that a seed means the same
			if i := slices.IndexFunc(tools, func(t middleware.Tool) bool { return t.Name == c.Name }); i >= 0 {
				any = i
			}
			plan = append(plan, tools[any])
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
	for _, e := range nameFaults {
		if !f.draws(e.fault) {
			continue
		}
		name := e.make(c.Name)
		if name == c.Name || slices.ContainsFunc(tools, func(t middleware.Tool) bool { return t.Name == name }) {
			continue // the name of a tool: no fault
		}
		f.injected[e.fault]++
		c.Name = name
		return
	}
}

// breakID puts at most one fault into the call's id. before are the calls of the
// same answer, history the messages of the request.
func (f *Faulty) breakID(c *middleware.ToolCall, before []middleware.ToolCall, history []middleware.Message) {
	var earlier []string
	for _, m := range history {
		earlier = append(earlier, idsOf(m.ToolCalls)...)
	}
	for _, e := range idFaults {
		if !f.draws(e.fault) {
			continue
		}
		if id, ok := e.make(f, idsOf(before), earlier); ok {
			f.injected[e.fault]++
			c.ID = id
			return
		}
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
