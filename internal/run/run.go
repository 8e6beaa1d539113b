// Package run calls functions of the user's with a time limit.
package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// errGone is the error of a function that ended its goroutine.
var errGone = errors.New("ended its goroutine")

// Isolated calls f on a goroutine of its own and returns what f returns, or an
// error that starts with name: f panicked, ended its goroutine, or did not
// return within timeout. The error of a timeout wraps
// context.DeadlineExceeded, that of a panic a *middleware.PanicError, whose text
// has only the type of the value: the value may hold what a model wrote.
//
// f gets a child of ctx that ends with the timeout. If f ignores it, f keeps
// its goroutine until it returns. If ctx has ended, or ends before f returns,
// the error is that of ctx with its cause, and f is not called any more.
func Isolated[T any](ctx context.Context, name string, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if ctx.Err() != nil {
		return zero, ContextError(ctx)
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	done := make(chan result[T], 1)
	go call(limited, name, f, done)
	select {
	case r := <-done:
		return r.value, r.err
	case <-limited.Done():
	}
	if ctx.Err() != nil {
		return zero, ContextError(ctx)
	}
	return zero, fmt.Errorf("%s did not return within %v: %w", name, timeout, context.DeadlineExceeded)
}

type result[T any] struct {
	value T
	err   error
}

func call[T any](ctx context.Context, name string, f func(context.Context) (T, error), done chan<- result[T]) {
	r := result[T]{err: fmt.Errorf("%s: %w", name, errGone)}
	defer func() {
		if p := recover(); p != nil {
			r = result[T]{err: fmt.Errorf("%s: %w", name, middleware.NewPanicError(p))}
		}
		done <- r
	}()
	r.value, r.err = f(ctx)
}

// ContextError returns the error of a context that has ended, with its cause
// beside it.
func ContextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("%w: %w", ctx.Err(), cause)
	}
	return cause
}
