// Package tooltrace traces the tools of an agent loop. It is a package of its own
// so that agentloop does not import OpenTelemetry.
package tooltrace

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

// New returns a ToolMiddleware that records one span for each tool that runs,
// "execute_tool {tool}", as the GenAI conventions define it. It records arguments
// and results only if Options.Content is set. A tool that suspends itself has not
// failed. For one span around a whole run see tracing.NewAgent.
//
// Position: outermost, so that one span covers all attempts of
// agentloop.RetryTools. Inside RetryTools each attempt has its own span.
func New(o tracing.Options) agentloop.ToolMiddleware {
	trace := tracing.NewTool(o, func(r agentloop.Result, err error) tracing.ToolOutcome {
		if errors.Is(err, agentloop.ErrPending) {
			err = nil
		}
		return tracing.ToolOutcome{Text: r.Text, IsError: r.IsError, Err: err}
	})
	return func(next agentloop.ToolFunc) agentloop.ToolFunc {
		return trace(func(ctx context.Context, call middleware.ToolCall) (agentloop.Result, error) {
			if info, ok := agentloop.CallFrom(ctx); ok && info.Description != "" {
				tracing.DescribeTool(ctx, info.Description)
			}
			return next(ctx, call)
		})
	}
}
