// Package retry retries failed model calls, and falls back to other models.
//
// [New] is a middleware that calls the same model again after a wait.
// [Fallback] is a model call that calls the next model at once. Both record
// every attempt in the step's report (middleware.ReportOf). If a failed
// attempt has sent events to the request's sink, both send
// middleware.EventReset before the next attempt.
//
// This package does not validate responses. For invalid tool calls see package
// argsvalidate.
package retry

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Options configure New. The zero value makes at most 4 attempts, about 0.5 s
// apart at first, and retries Transient errors.
type Options struct {
	// MaxAttempts is the number of model calls, the first one included. 0
	// means 4; 1 turns retries off.
	MaxAttempts int
	// MinDelay is the wait after the first attempt, before jitter. Each later
	// wait is 1.5 times longer. 0 means 0.5 s, or MaxDelay if that is shorter.
	MinDelay time.Duration
	// MaxDelay limits the wait before jitter. 0 means 30 s, or MinDelay if
	// that is longer. It does not limit a wait that the provider asks for.
	MaxDelay time.Duration
	// MaxElapsed limits the time of the step, measured from its first attempt.
	// If the next wait would exceed it, the step ends at once. MaxElapsed does
	// not interrupt an attempt that is running; a deadline of the context
	// does. 0 means no limit.
	MaxElapsed time.Duration
	// If reports whether an error is retried; nil means Transient. It is not
	// called for the end of the caller's context or an error of the request's
	// sink: those are never retried. A panic in If counts as false. If must be
	// safe for concurrent use.
	If func(error) bool
}

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New panics with the same error.
func (o Options) Validate() error {
	switch {
	case o.MaxAttempts < 0:
		return fmt.Errorf("retry: MaxAttempts: must not be negative, got %d", o.MaxAttempts)
	case o.MinDelay < 0:
		return fmt.Errorf("retry: MinDelay: must not be negative, got %s", o.MinDelay)
	case o.MaxDelay < 0:
		return fmt.Errorf("retry: MaxDelay: must not be negative, got %s", o.MaxDelay)
	case o.MaxDelay > 0 && o.MaxDelay < o.MinDelay:
		return fmt.Errorf("retry: MaxDelay: must not be less than MinDelay (%s), got %s", o.MinDelay, o.MaxDelay)
	case o.MaxElapsed < 0:
		return fmt.Errorf("retry: MaxElapsed: must not be negative, got %s", o.MaxElapsed)
	}
	return nil
}

func (o Options) withDefaults() Options {
	const minDelay, maxDelay = 500 * time.Millisecond, 30 * time.Second
	o.MaxAttempts = cmp.Or(o.MaxAttempts, 4)
	o.MinDelay = cmp.Or(o.MinDelay, min(minDelay, cmp.Or(o.MaxDelay, minDelay)))
	o.MaxDelay = cmp.Or(o.MaxDelay, max(maxDelay, o.MinDelay))
	if o.If == nil {
		o.If = Transient
	}
	return o
}

// New returns the middleware that retries failed model calls. It panics if
// o.Validate fails.
//
// Waits grow exponentially, with a jitter of ±50%. A provider's Retry-After
// (middleware.ModelError) is the minimum wait, even if it exceeds MaxDelay.
// retry gives up at once if the next wait would exceed MaxElapsed or the
// context's deadline. Without either limit, it gives up if Retry-After is
// longer than ten minutes or MaxDelay, whichever is longer.
//
// An error that If does not accept is returned unchanged, after any attempt.
// If retry gives up on an error that If accepts, the returned error is an
// *Error with the reason and the last failure. The same holds if a limit allows
// no further attempt (middleware.ErrNotSent), and if the context ends before,
// during or between attempts. ReportOf finds the report in each of these errors.
//
// A panic in next is passed on. The middleware is safe for concurrent use.
//
// Position: inside argsvalidate, so that each re-ask gets its own attempts; if
// retry were outside, a failed re-ask would repeat the whole step. Outside
// tracing.NewAttempt and an inner budget, so that they see each attempt. Two
// retry middlewares in one chain multiply their attempts, unless Options.If of the
// outer one asks GaveUp, as toolmend.Stack does.
func New(o Options) middleware.Middleware {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("retry: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			s := newRetryStep(req, o.If, true)
			w := waits{o: o, start: time.Now()}
			for {
				if resp, done, err := s.ask(ctx, next); done {
					return s.tally.Finish(resp, err)
				}
				if s.attempts >= o.MaxAttempts {
					return s.end(ErrExhausted)
				}
				if reason := w.wait(ctx, s.last); reason != nil {
					return s.end(reason)
				}
			}
		}
	}
}
