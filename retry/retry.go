// Package retry repeats a model call that failed in transit, and falls back to
// other models.
//
// [New] is a middleware: it asks the same model again after a wait. [Fallback]
// is a model: it asks the next one at once. Both leave every attempt, failed
// ones included, in the step's ledger (middleware.ReportOf), and both void what
// a failed attempt had shown to the request's sink before they ask again.
//
// The answer of a model is not judged here: an invalid tool call is
// argsvalidate's.
package retry

import (
	"context"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/middleware"
)

// Options say which failures are repeated, how often and how far apart. The
// zero value makes at most 4 attempts at a call that fails with a Transient
// error, first about 0.5 s apart.
type Options struct {
	// MaxAttempts is the number of model calls, first one included: 0 means 4,
	// 1 never repeats.
	MaxAttempts int
	// MinDelay is the wait after the first attempt, before jitter; each later
	// one is 1.5 times longer. 0 means 0.5 s, or MaxDelay if that is shorter.
	MinDelay time.Duration
	// MaxDelay bounds the wait before jitter. 0 means 30 s, or MinDelay if that
	// is longer. It does not bound what a provider asks for.
	MaxDelay time.Duration
	// MaxElapsed bounds the step, from its first attempt on: a wait that would
	// cross it is not begun. It does not cut an attempt that is under way; a
	// deadline of the context does. 0: no limit besides the context.
	MaxElapsed time.Duration
	// If says which errors are repeated; nil means Transient. It is not asked
	// about the end of the caller's context or an error of the request's sink,
	// which are never repeated. One that panics says no. It may be called from
	// any number of goroutines.
	If func(error) bool
}

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New panics with it.
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
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 4
	}
	if o.MinDelay == 0 {
		o.MinDelay = 500 * time.Millisecond
		if o.MaxDelay > 0 {
			o.MinDelay = min(o.MinDelay, o.MaxDelay)
		}
	}
	if o.MaxDelay == 0 {
		o.MaxDelay = max(30*time.Second, o.MinDelay)
	}
	if o.If == nil {
		o.If = Transient
	}
	return o
}

// New returns the middleware that repeats a failed model call. It panics if
// o.Validate fails.
//
// Waits grow exponentially with a jitter of ±50 %. A provider's Retry-After
// (middleware.ModelError) is the least that is waited, even past MaxDelay. A
// wait that would cross MaxElapsed or the context's deadline is not begun; nor,
// where neither is set, is one that the provider asked for and that is longer
// than ten minutes (or MaxDelay, if that is more): the step ends at once.
//
// An error that is not repeated is returned as it is, after the first attempt
// or a later one. When no more attempts are made at one that would be, the
// error is an *Error with the reason and the last failure. It is one too when
// the context ends, before, during or between attempts. ReportOf finds the
// ledger in each of them.
//
// A panic of next is passed on. The middleware is safe for concurrent use; each
// step has a backoff of its own.
//
// Position: inside argsvalidate, so that each re-ask gets its own attempts;
// outside it, a failed re-ask would repeat the whole step. Outside
// tracing.NewAttempt and an inner budget, which then see each attempt. Two of
// them multiply their attempts.
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
			s := newStep(req, o.If)
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
