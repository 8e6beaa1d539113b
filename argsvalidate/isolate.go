package argsvalidate

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// errGone is what becomes of a user's function that ended its goroutine.
var errGone = errors.New("it ended its goroutine")

// isolated calls a user's function on a goroutine of its own, so that neither a
// panic nor a hang of it reaches the step: both are an error. A function that
// ignores its context keeps its goroutine until it returns. No function starts
// after the context has ended. A function that timed out is not called again in
// the same judgement, so that a message of a thousand calls does not wait a
// thousand times. The error of a timeout is context.DeadlineExceeded, that of a
// panic a *middleware.PanicError.
func isolated[T any](ctx context.Context, j *judgement, name string, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if ctx.Err() != nil {
		return zero, contextError(ctx)
	}
	if j.late[name] {
		return zero, fmt.Errorf("not called again after a timeout: %w", context.DeadlineExceeded)
	}
	timeout := j.v.o.RuleTimeout
	late := fmt.Errorf("did not return within %v: %w", timeout, context.DeadlineExceeded)
	limited, cancel := context.WithTimeoutCause(ctx, timeout, late)
	defer cancel()
	done := make(chan result[T], 1)
	go call(limited, f, done)
	select {
	case r := <-done:
		return r.value, r.err
	case <-limited.Done():
		if ctx.Err() == nil {
			if j.late == nil {
				j.late = map[string]bool{}
			}
			j.late[name] = true
		}
		return zero, context.Cause(limited)
	}
}

type result[T any] struct {
	value T
	err   error
}

// call reports how f ended.
func call[T any](ctx context.Context, f func(context.Context) (T, error), done chan<- result[T]) {
	r := result[T]{err: errGone}
	defer func() {
		if p := recover(); p != nil {
			r.err = middleware.NewPanicError(p)
		}
		done <- r
	}()
	r.value, r.err = f(ctx)
}

// contextError is the error of a context that is done, its cause beside it.
func contextError(ctx context.Context) error {
	err := context.Cause(ctx)
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
