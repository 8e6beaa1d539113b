package argsvalidate

import (
	"cmp"
	"fmt"
	"slices"

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
		c := j.verdicts[i].Call
		rules := j.v.toolRules(c.Name, true)
		switch why := j.forbidden(c); {
		case why != "":
			j.forbid(i, codeToolChoice, why)
		case len(rules) > 0:
			j.forbid(i, codeToolChoice, rules[0].message)
			j.verdicts[i].Issues[0].Rule = rules[0].name
		case !j.req.NoParallelCalls || c.Kind == middleware.KindBuiltin && !j.tools.find(c.Name, "").declared():
			// no limit, or a call that a provider makes beside others, such as a request for an approval
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

// forbidden returns the rule of the request that forbids to call the tool of c, or "". A list
// of allowed tools does not have the tools that the request only announces, so it decides about
// declared tools only.
func (j *validation) forbidden(c middleware.ToolCall) string {
	switch choice := j.req.ToolChoice; {
	case choice.Name == "" && choice.Mode == middleware.ToolNone:
		return "the request allows no tool call now (tool choice none). Answer without a tool"
	case j.req.AllowedTools == nil:
		return ""
	}
	if p := j.tools.find(c.Name, c.Namespace); !p.declared() || j.req.Allows(*p.tool) {
		return ""
	}
	return "the request allows only calls of these tools now: " + cmp.Or(listNames(j.tools.available()), "none")
}
