package agentloop

import (
	"errors"

	"github.com/toolmend/toolmend/tracing"
)

// TraceTools returns a ToolMiddleware that makes one span for each tool that
// runs, "execute_tool {tool}", after the GenAI conventions. Arguments and
// results are recorded with Options.Content only. A tool that suspends itself
// has not failed. For one span around a run see tracing.NewAgent.
//
// Position: outermost, so that the attempts of RetryTools are in one span;
// inside of it, each has its own.
func TraceTools(o tracing.Options) ToolMiddleware {
	trace := tracing.NewTool(o, func(r Result, err error) tracing.ToolOutcome {
		if errors.As(err, new(*suspendError)) {
			err = nil
		}
		return tracing.ToolOutcome{Text: r.Text, IsError: r.IsError, Err: err}
	})
	return func(next ToolFunc) ToolFunc { return trace(next) }
}
