package transport

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// ErrModelCalls is the error of a model call that exceeds
// Options.MaxModelCalls. Its code is budget.
var ErrModelCalls error = &ownError{"budget", "transport: the model calls of this request are used up"}

// errGone is the error of a chain that did not return.
var errGone error = &ownError{"panic", "transport: a middleware panicked, or ended its goroutine"}

// errShown is the error of a further model call after a response broke off of
// which the client has received a part.
var errShown = &ownError{"middleware_error", "transport: a partly streamed answer broke off, so no other answer can follow it"}

// errOther is the error if the chain made two calls concurrently and returned
// another response than the one that the client was receiving.
var errOther = &ownError{"middleware_error", "transport: the chain returned another answer than the streamed one; such a chain needs Options.Hold"}

// errOutside is the error if the chain gave its model a context of its own.
var errOutside = &ownError{"middleware_error", "transport: the model was called without the context of the step"}

// ownError is an error of this package. Any client may see its text.
type ownError struct{ code, text string }

func (e *ownError) Error() string         { return e.text }
func (e *ownError) ErrorType() string     { return e.code }
func (e *ownError) ClientMessage() string { return e.text }

// Panic is the error of a streamed request if a middleware or a codec panicked
// after the client got the first bytes of the response, or in a goroutine of
// the Transport. Call.Err returns it, and the stream ends with the format's
// failure event. An earlier panic of a middleware continues in the goroutine
// that called Hook.
type Panic struct {
	Value any    // argument of panic
	Stack []byte // of the goroutine that panicked
}

// Error returns a text with the type of Value only.
func (p *Panic) Error() string { return fmt.Sprintf("transport: a middleware panicked: %T", p.Value) }

// ErrorType returns "panic".
func (p *Panic) ErrorType() string { return "panic" }

// ClientMessage returns the text for clients. It does not contain the type of
// Value.
func (p *Panic) ClientMessage() string { return "a middleware panicked" }

// Unwrap returns Value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// networkError is a network error between the Transport and the provider. Its
// text leaves out the query of the URL, which may hold a key.
type networkError struct {
	attempt *attempt
	err     error
	text    string
}

func (e *networkError) Error() string { return e.text }
func (e *networkError) Unwrap() error { return e.err }

// passedError marks a response that is not in the format. The client gets it
// unchanged.
type passedError struct {
	attempt *attempt
	err     error
}

func (e *passedError) Error() string { return "transport: passed on: " + e.err.Error() }
func (e *passedError) Unwrap() error { return e.err }

// withoutQuery removes the query of req's URL from text.
func withoutQuery(text string, req *http.Request) string {
	if q := req.URL.RawQuery; q != "" {
		text = strings.ReplaceAll(text, q, "…")
	}
	return text
}

// failed returns the latest attempt of the step whose failure is in the tree
// of err, and that failure. It returns nil if there is none.
func (s *step) failed(err error) (last *attempt, failure error) {
	each(err, func(e error) {
		var a *attempt
		switch e := e.(type) {
		case *networkError:
			a = e.attempt
		case *passedError:
			a = e.attempt
		case *middleware.ModelError:
			a = s.refusedBy(e)
		}
		if a != nil && a.step == s && (last == nil || a.n >= last.n) {
			last, failure = a, e
		}
	})
	return last, failure
}

// refusedBy returns the attempt whose response was read as e.
func (s *step) refusedBy(e *middleware.ModelError) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.attempts {
		if a.refusal == e {
			return a
		}
	}
	return nil
}

// each calls f for err and every error that it wraps.
func each(err error, f func(error)) {
	for err != nil {
		f(err)
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			for _, e := range e.Unwrap() {
				each(e, f)
			}
			return
		default:
			return
		}
	}
}
