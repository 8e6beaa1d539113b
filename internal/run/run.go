// Package run calls functions of the user's with a time limit.
package run

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// ErrGone is the error of a function that ended its goroutine.
var ErrGone = errors.New("it ended its goroutine")

// Timeout is the error of a function that did not return in time. It wraps
// context.DeadlineExceeded.
type Timeout struct {
	After time.Duration
}

// Error names the time that the function had.
func (t *Timeout) Error() string {
	return fmt.Sprintf("did not return within %v: %v", t.After, context.DeadlineExceeded)
}

// Unwrap returns context.DeadlineExceeded.
func (t *Timeout) Unwrap() error { return context.DeadlineExceeded }

// Isolated calls f on a goroutine of its own, so that neither a panic nor a hang
// of it reaches the caller. It returns what f returns; a *middleware.PanicError
// if f panicked; a *Timeout if f did not return within timeout; or ErrGone if f
// ended its goroutine. A timeout of 0 means no limit.
//
// f gets a child of ctx that ends with the timeout. If f ignores it, f keeps
// its goroutine until it returns. If ctx ends before f returns, the error is
// ContextError(ctx). If ctx or the timeout ends before f begins, f is not called.
func Isolated[T any](ctx context.Context, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if ctx.Err() != nil {
		return zero, ContextError(ctx)
	}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	if timeout > 0 {
		limited, cancel = context.WithTimeoutCause(limited, timeout, &Timeout{After: timeout})
		defer cancel()
	}
	done := make(chan result[T], 1)
	var claimed atomic.Bool // by f, which begins, or by the context that ended before it
	go func() {
		if claimed.CompareAndSwap(false, true) {
			call(limited, f, done)
		}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-limited.Done():
	}
	claimed.Store(true)
	select {
	case r := <-done: // it was back just in time
		return r.value, r.err
	default:
	}
	if ctx.Err() != nil {
		return zero, ContextError(ctx)
	}
	return zero, context.Cause(limited)
}

type result[T any] struct {
	value T
	err   error
}

// call reports how f ended.
func call[T any](ctx context.Context, f func(context.Context) (T, error), done chan<- result[T]) {
	r := result[T]{err: ErrGone}
	defer func() {
		if p := recover(); p != nil {
			r = result[T]{err: middleware.NewPanicError(p)}
		}
		done <- r
	}()
	r.value, r.err = f(ctx)
}

// ContextError returns the error of a context that has ended, together with its cause.
func ContextError(ctx context.Context) error {
	err := context.Cause(ctx)
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return err
}
