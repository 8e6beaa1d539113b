package agentloop

import (
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// StopCondition is asked after every step; true ends the run without an error.
// Run may be called again, to go on. It must not change s.
type StopCondition func(s *State) bool

// Once stops after the first step: one model call, whose tools do not run, or,
// where a turn is in hand, its tools.
func Once(*State) bool { return true }

// ToolUsed stops once one of the named tools was called and answered since the
// last user message, whatever came of it. It panics without a name.
func ToolUsed(names ...string) StopCondition {
	if len(names) == 0 {
		panic("agentloop: ToolUsed: no tool is named")
	}
	return answered(names, func(ToolResult) bool { return true })
}

// ToolSucceeded stops once one of the named tools gave a result without error
// since the last user message; without a name any tool will do. A call that a
// person rejected is no success.
func ToolSucceeded(names ...string) StopCondition {
	return answered(names, func(r ToolResult) bool { return !r.IsError && !r.Rejected })
}

// AnyOf stops when one of the conditions holds.
func AnyOf(conditions ...StopCondition) StopCondition {
	conditions = slices.Clone(conditions)
	return func(s *State) bool {
		return slices.ContainsFunc(conditions, func(c StopCondition) bool { return c(s) })
	}
}

// answered holds when a call to one of the tools (none: any) that is good was
// answered since the last user message: what an earlier question brought about
// does not end the run of the next one.
func answered(names []string, good func(ToolResult) bool) StopCondition {
	names = slices.Clone(names)
	return func(s *State) bool {
		ids := map[string]bool{}
		for _, m := range slices.Backward(s.Messages) {
			if m.Role == middleware.RoleUser {
				break
			}
			if m.Role == middleware.RoleTool {
				ids[m.ToolCallID] = true
			}
		}
		for _, r := range slices.Backward(s.Results) {
			if !ids[r.Call.ID] {
				return false
			}
			if (len(names) == 0 || slices.Contains(names, r.Call.Name)) && good(r) {
				return true
			}
		}
		return false
	}
}
