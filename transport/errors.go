package transport

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// ErrModelCalls is the error of a model call that Options.MaxModelCalls does
// not allow any more. Its code is budget.
var ErrModelCalls error = &ownError{"budget", "transport: the model calls of this request are used up"}

// errGone is the error of a chain that did not return.
var errGone error = &ownError{"panic", "transport: a middleware panicked, or ended its goroutine"}

// errShown is the error of a model call behind an answer that broke off after
// a part of it was shown.
var errShown = &ownError{"middleware_error", "transport: an answer that was shown in part broke off: another one has no place behind it"}

// errOther is the error of a chain that asked twice at once, and did not take
// the answer that the client was being shown.
var errOther = &ownError{"middleware_error", "transport: the chain took another answer than the one that was shown: such a chain needs Options.Hold"}

// errOutside is the error of a chain that gave its model another context.
var errOutside = &ownError{"middleware_error", "transport: the model was called without the context of the step"}

// ownError is an error of this package. Its text is for every client.
type ownError struct{ code, text string }

func (e *ownError) Error() string         { return e.text }
func (e *ownError) ErrorType() string     { return e.code }
func (e *ownError) ClientMessage() string { return e.text }

// Panic is the error of a streamed request whose middleware, or codec, panicked
// after the client was given the first bytes of the answer, or in a goroutine of
// the Transport. Call.Err returns it, and the stream ends with the format's
// failure event. An earlier panic of a middleware goes on in the goroutine of
// the caller of Hook.
type Panic struct {
	Value any    // of the panic
	Stack []byte // of the goroutine that panicked
}

// Error says no more of Value than its type.
func (p *Panic) Error() string { return fmt.Sprintf("transport: a middleware panicked: %T", p.Value) }

// ErrorType returns panic.
func (p *Panic) ErrorType() string { return "panic" }

// ClientMessage is the text for clients: it does not name the type of Value.
func (p *Panic) ClientMessage() string { return "a middleware panicked" }

// Unwrap returns Value if it is an error.
func (p *Panic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// lineError is a failure between here and the provider. Its text is without
// the query of the address, where a key may stand.
type lineError struct {
	attempt *attempt
	err     error
	text    string
}

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }

// foreignError stands for an answer that is not of the format: the client gets
// it as it is.
type foreignError struct {
	attempt *attempt
	err     error
}

func (e *foreignError) Error() string { return "transport: passed on: " + e.err.Error() }
func (e *foreignError) Unwrap() error { return e.err }

// withoutQuery takes the query of req's address out of text.
func withoutQuery(text string, req *http.Request) string {
	if q := req.URL.RawQuery; q != "" {
		text = strings.ReplaceAll(text, q, "…")
	}
	return text
}

// failed returns the latest attempt of the step whose failure is in err's
// tree, nil if there is none, and that failure.
func (s *step) failed(err error) (last *attempt, failure error) {
	each(err, func(e error) {
		var a *attempt
		switch e := e.(type) {
		case *lineError:
			a = e.attempt
		case *foreignError:
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

// refusedBy returns the attempt whose answer was read as e.
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

// each calls f for err and all that it wraps.
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
