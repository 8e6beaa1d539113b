package agentloop

import (
	"context"
	"errors"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// RetryTools returns a ToolMiddleware that runs a tool again when it failed
// with a transient error, by the rules of package retry: Options.If, Transient
// unless set. Never repeated are the errors of Abort and Suspend, a Result with
// IsError, and what comes once the context has ended. When no attempt is left,
// the model is told the last error of the tool. It panics if o.Validate fails.
//
// Only tools that may run twice belong under it; each run has the same
// CallInfo.Key.
//
// Position: Tool.Timeout covers all attempts together. Inside TraceTools, one
// span does too.
func RetryTools(o retry.Options) ToolMiddleware {
	transient := o.If
	if transient == nil {
		transient = retry.Transient
	}
	o.If = func(err error) bool {
		return !errors.As(err, new(*abortError)) && !errors.As(err, new(*suspendError)) && transient(err)
	}
	again := retry.New(o)
	return func(next ToolFunc) ToolFunc {
		return func(ctx context.Context, call middleware.ToolCall) (Result, error) {
			var result Result
			var last error
			_, err := again(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
				if result, last = next(ctx, call); last != nil {
					return nil, last
				}
				return &middleware.Response{}, nil
			})(ctx, &middleware.Request{})
			if err != nil && (ctx.Err() != nil || last == nil) {
				return result, err
			}
			return result, last
		}
	}
}
