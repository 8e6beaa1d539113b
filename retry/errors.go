package retry

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// ErrExhausted is the reason when every attempt that is allowed was made, or
// every model of a Fallback was asked.
var ErrExhausted = errors.New("retry: attempts exhausted")

// ErrElapsed is the reason when a wait would have crossed Options.MaxElapsed,
// or the provider asked for a wait that is too long.
var ErrElapsed = errors.New("retry: out of time")

// Error says why no more attempts were made, and what the last one said.
// errors.Is and errors.As find both.
type Error struct {
	// Attempts is how often this layer asked; 0 if the context had ended
	// before.
	Attempts int
	// Reason is or wraps ErrExhausted, ErrElapsed, or the error of the context
	// together with its cause; context.DeadlineExceeded also when a wait was
	// not begun because it would have crossed the deadline. It is the error of
	// the request's sink if that failed and the model hid it.
	Reason error
	// Last is the last failure. That of an attempt cut by the context stands
	// here only if there was none before it. From a Fallback it holds the
	// failure of every model. Nil: there was no attempt.
	Last error
}

// Error names the reason, the number of attempts and the last failure.
func (e *Error) Error() string {
	s := "retry: no reason given"
	if e.Reason != nil {
		s = e.Reason.Error()
		if !strings.HasPrefix(s, "retry: ") {
			s = "retry: " + s
		}
	}
	s += fmt.Sprintf(" (attempts: %d)", e.Attempts)
	if e.Last != nil {
		s += ": " + e.Last.Error()
	}
	return s
}

// Unwrap returns Reason and Last, without nils.
func (e *Error) Unwrap() []error {
	errs := make([]error, 0, 2)
	for _, err := range []error{e.Reason, e.Last} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// contextError returns the error of a context that has ended, and its cause
// where that says more.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// failures are the errors of several models, in the order asked.
type failures []error

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }
