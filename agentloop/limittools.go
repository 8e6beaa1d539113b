package agentloop

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// LimitTools returns a ToolMiddleware that lets at most n calls to one tool run
// at once, over all runs of the Agent: for what cannot take more, such as a
// database. The others wait for their turn, as long as their context allows.
// Options.Parallel limits the tools of one run. It panics if n is less than 1.
//
// Position: Tool.Timeout covers the wait. Inside RetryTools a place is given
// back between attempts.
func LimitTools(n int) ToolMiddleware {
	if n < 1 {
		panic(fmt.Sprintf("agentloop: LimitTools: n must be at least 1, got %d", n))
	}
	return func(next ToolFunc) ToolFunc {
		places := make(chan struct{}, n)
		return func(ctx context.Context, call middleware.ToolCall) (Result, error) {
			select {
			case places <- struct{}{}:
				defer func() { <-places }()
				return next(ctx, call)
			case <-ctx.Done():
				return Result{}, ctx.Err()
			}
		}
	}
}
