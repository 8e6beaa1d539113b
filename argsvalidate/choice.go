package argsvalidate

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// enforceChoice adds an issue to each call that the request forbids: a call of a tool that
// may not be called now, a further call where one is allowed, and all calls if none of them is
// to the tool that must be called. Such a call has no other issues: correcting its arguments
// would not help.
func (j *validation) enforceChoice() {
	first := true
	for i := range j.calls {
		switch why := j.forbidden(i); {
		case why != "":
			j.forbid(i, codeToolChoice, why)
		case !j.req.NoParallelCalls || !j.counts(i):
		case first:
			first = false
		default:
			j.forbid(i, codeParallel, "the request allows one tool call in a message. Send one call now, and the others in later messages, if they are still needed")
		}
	}
	only := j.req.ToolChoice.Name
	if only == "" || !j.tools.find(only, "").declared() ||
		slices.ContainsFunc(j.kept, func(c middleware.ToolCall) bool { return c.Name == only }) ||
		slices.ContainsFunc(j.verdicts, func(v middleware.Verdict) bool { return v.Call.Name == only || !validated(v.Call.Kind) }) {
		return
	}
	for i := range j.calls {
		if j.verdicts[i].OK() {
			j.forbid(i, codeToolChoice, fmt.Sprintf("the tool %s must be called now, and this is a call to another tool", text.Label(only)))
		}
	}
}

// forbid makes the i-th call invalid, as it was sent.
func (j *validation) forbid(i int, code, message string) {
	v := &j.verdicts[i]
	v.Call, v.Changes, v.Issues = j.calls[i], nil, issue(code, "", message)
}

// forbidden returns the rule of the request that forbids to call the tool of the i-th call, or
// "". A tool that the request only announces is not in a list of allowed tools, so that list
// decides about declared tools only.
func (j *validation) forbidden(i int) string {
	if c := j.req.ToolChoice; c.Name == "" && c.Mode == middleware.ToolNone {
		return "the request allows no tool call now (tool choice none). Answer without a tool"
	}
	if p := j.planOf(i); !p.declared() || j.req.Allows(*p.tool) {
		return ""
	}
	if names := j.tools.available(); len(names) > 0 {
		return "the request allows only calls of these tools now: " + listNames(names)
	}
	return "the request allows no call of a tool now. Answer without a tool"
}

// counts reports whether the i-th call is one of those that Request.NoParallelCalls limits:
// not one that a provider makes beside them, such as a request for an approval.
func (j *validation) counts(i int) bool {
	return j.calls[i].Kind != middleware.KindBuiltin || j.planOf(i).declared()
}

// planOf returns the plan of the i-th call, of any kind.
func (j *validation) planOf(i int) toolPlan {
	if p := j.plans[i]; p.declared() {
		return p
	}
	return j.tools.find(j.verdicts[i].Call.Name, j.verdicts[i].Call.Namespace)
}

// onlyCountFaults reports whether all invalid calls are further calls where one is allowed.
// The step re-asks for that once: many servers ignore the limit.
func (s *validateStep) onlyCountFaults() bool {
	for v := range s.invalid() {
		if firstCode(v.Issues) != codeParallel {
			return false
		}
	}
	return true
}

// batchPolicy returns Options.Batch. A message that may have one call has no siblings to keep.
func (v *Validator) batchPolicy(req *middleware.Request) batch.Policy {
	if req.NoParallelCalls {
		return batch.ReissueAll
	}
	return v.o.Batch
}
