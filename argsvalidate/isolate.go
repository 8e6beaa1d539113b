package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errTimeout is the cause when a user's function is not back in time.
var errTimeout = errors.New("the function did not return within RuleTimeout")

// isolated calls a user's function on a goroutine of its own, so that neither a
// panic nor a hang of it reaches the step: both are an error. A function that
// ignores its context keeps its goroutine until it returns.
func isolated[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- result{err: fmt.Errorf("panic: %v", p)}
			}
		}()
		value, err := f(ctx)
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}
