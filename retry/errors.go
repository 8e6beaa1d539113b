package retry

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrExhausted is the reason when all MaxAttempts attempts were made, or all
// models of a Fallback were called.
var ErrExhausted = errors.New("retry: attempts exhausted")

// ErrElapsed is the reason when the next wait would exceed Options.MaxElapsed,
// or when the provider asks for a wait that is too long.
var ErrElapsed = errors.New("retry: out of time")

// Error reports why retry made no further attempt, and the last failure.
// errors.Is and errors.As find both.
type Error struct {
	// Attempts is the number of attempts that this middleware made. It is 0 if
	// the context had ended before the first one.
	Attempts int
	// Reason is or wraps ErrExhausted, ErrElapsed, or the context's error and
	// its cause. It is context.DeadlineExceeded if the next wait would exceed
	// the context's deadline. If the request's sink failed and the model did
	// not return the sink's error, Reason is that error.
	Reason error
	// Last is the last failure. A failure caused by a context that ended
	// counts only if there was no earlier one. The Last of a Fallback holds
	// the failures of all models. It is nil if no attempt was made.
	Last error

	repeated bool // of New, which repeats one call; not of Fallback
}

// Error returns the reason, the number of attempts and the last failure.
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

// GaveUp reports whether a middleware of New gave up on err, at any depth of wrapping. It
// is false for a Fallback, which calls each of its models once.
func GaveUp(err error) bool {
	return anyError(err, func(err error) bool { e, ok := err.(*Error); return ok && e.repeated })
}

// Unwrap returns Reason and Last, without nils.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Reason, e.Last}, func(err error) bool { return err == nil })
}

// failures holds the errors of several models, in the order of their calls.
type failures []error

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }
