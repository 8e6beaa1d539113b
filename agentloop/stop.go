package agentloop

import "slices"

// StopCondition is asked after every step; true ends the run without an error.
// Run may be called again, to go on. It must not change s.
type StopCondition func(s *State) bool

// Once stops after the first step: one model call, whose tools do not run, or,
// where a turn is in hand, its tools.
func Once(*State) bool { return true }

// ToolUsed stops once one of the named tools was called, whatever came of it.
// It panics without a name.
func ToolUsed(names ...string) StopCondition { return toolStop("ToolUsed", names, false) }

// ToolSucceeded stops once one of the named tools gave a result without error.
// Without a name any tool will do.
func ToolSucceeded(names ...string) StopCondition {
	if len(names) == 0 {
		return func(s *State) bool {
			return slices.ContainsFunc(s.Results, func(r ToolResult) bool { return !r.IsError })
		}
	}
	return toolStop("ToolSucceeded", names, true)
}

func toolStop(who string, names []string, success bool) StopCondition {
	if len(names) == 0 {
		panic("agentloop: " + who + ": no tool is named")
	}
	names = slices.Clone(names)
	return func(s *State) bool {
		return slices.ContainsFunc(s.Results, func(r ToolResult) bool {
			return slices.Contains(names, r.Call.Name) && (!success || !r.IsError)
		})
	}
}

// AnyOf stops when one of the conditions holds.
func AnyOf(conditions ...StopCondition) StopCondition {
	return func(s *State) bool {
		return slices.ContainsFunc(conditions, func(c StopCondition) bool { return c(s) })
	}
}
