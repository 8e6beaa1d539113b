package transport

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// ErrModelCalls is the error of a model call that exceeds
// Options.MaxModelCalls. Its code is budget.
var ErrModelCalls error = &ownError{"budget", "transport: the model calls of this request are used up"}

// errBody is the error for a request body that cannot be read. Only clients of a Handler get it.
var errBody = &ownError{"unreadable_request", "transport: the body of the request is compressed or encoded in a way that cannot be read, incomplete or too large, so that calls could not be validated; send it uncompressed, in UTF-8, or set Options.PassUnreadable, or unreadable = \"pass\" in a gateway"}

// errPath is the error for a request that offers tools on a path of no format.
var errPath = &ownError{"unknown_path", "transport: the request offers tools, and its path is in none of the formats whose calls are validated; to pass it on unvalidated, leave out Options.RejectUnknownPaths, or unusable_schemas = \"reject\" in a gateway"}

// errRequest is the error for a request that no codec can decode, and that may offer tools.
var errRequest = &ownError{"unreadable_request", "transport: the request cannot be read, and offers tools whose calls could not be validated; to pass it on, set Options.PassUnreadable, or unreadable = \"pass\" in a gateway"}

// errGone is the error of an exchange whose chain did not return.
var errGone error = &ownError{"panic", "transport: a middleware panicked, or ended its goroutine"}

// errShown is the error of a further model call after a live response broke off.
var errShown = &ownError{"middleware_error", "transport: a partly streamed answer broke off, so no other answer can follow it"}

// errOther is the error if the chain made two calls concurrently and returned another response
// than the live one.
var errOther = &ownError{"middleware_error", "transport: the chain returned another answer than the streamed one; such a chain needs Options.Hold"}

// errFirstByte is the network error of an attempt that exceeds Options.ReaskTimeout.
var errFirstByte = fmt.Errorf("transport: the provider sent no byte of a further response in time (Options.ReaskTimeout): %w", os.ErrDeadlineExceeded)

// errOutside is the error if the chain called its model with another context.
var errOutside = &ownError{"middleware_error", "transport: the model was called without the context of the step"}

// ownError is an error of this package. Any client may see its text.
type ownError struct{ code, text string }

// Is makes ErrModelCalls match middleware.ErrNotSent.
func (e *ownError) Is(target error) bool {
	return e == ErrModelCalls && target == middleware.ErrNotSent
}

func (e *ownError) Error() string { return e.text }

func (e *ownError) ErrorType() string { return e.code }

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
	err  error
	text string
}

func (e *networkError) Error() string { return e.text }

func (e *networkError) Unwrap() error { return e.err }

// passedError marks a response that is not in the format. The client gets it
// unchanged.
type passedError struct{ err error }

func (e *passedError) Error() string { return "transport: passed on: " + e.err.Error() }

func (e *passedError) Unwrap() error { return e.err }

// failedAttempt returns the latest attempt whose failure err wraps, and that failure, or nil.
func (x *exchange) failedAttempt(err error) (*attempt, error) {
	x.mu.Lock()
	attempts := slices.Clone(x.attempts)
	failures := make([]error, len(attempts))
	for i, a := range attempts {
		failures[i] = a.failure
	}
	x.mu.Unlock() // the errors of a middleware may have methods that call anything
	for i, failure := range slices.Backward(failures) {
		if failure != nil && errors.Is(err, failure) {
			return attempts[i], failure
		}
	}
	return nil, nil
}

// clientError is an error in the form that the client gets.
type clientError struct {
	status  int
	code    string
	message string
	own     bool // not from a provider
}

// ownCode returns the code of an error that did not come from a provider.
func (f clientError) ownCode() string {
	if !f.own {
		return ""
	}
	return f.code
}

// clientErrorOf returns err as the client that sent req gets it. An error of a provider keeps
// its status. Every other error gets the status 400, because no client retries a 400.
func clientErrorOf(req *http.Request, err error) clientError {
	var e *middleware.ModelError
	if errors.As(err, &e) && (e.StatusCode >= http.StatusBadRequest || !errors.Is(e, middleware.ErrInvalidToolCall)) {
		status, message := e.StatusCode, "the provider answered with status "+strconv.Itoa(e.StatusCode)
		if status < http.StatusBadRequest { // an error inside a response with a good status
			status, message = http.StatusBadGateway, "the provider sent an error"
		}
		switch {
		case errors.Is(e, middleware.ErrInvalidToolCall):
			message = refusedCall
		case e.Err != nil:
			message = strings.TrimPrefix(e.Err.Error(), "wire: ")
		}
		return clientError{status, e.Code, forClient(req, message), false}
	}
	f := clientError{http.StatusBadRequest, codeOf(err), "", true}
	var explained interface{ ClientMessage() string }
	switch {
	case errors.As(err, &explained):
		f.message = explained.ClientMessage()
	case errors.Is(err, middleware.ErrInvalidToolCall):
		f.code, f.message = "invalid_tool_call", refusedCall
	case isProxied(req): // the users of such a client did not write the chain
		f.message = "a middleware refused the answer"
	default:
		f.message = err.Error()
	}
	f.message = forClient(req, f.message)
	return f
}

const refusedCall = "the provider refused the model's tool call"

// middlewareError is the code of an error of the chain without a code of its own.
const middlewareError = "middleware_error"

// codeOf returns the code of an error of the chain: the ErrorType of the first error in its tree
// that has one, else middlewareError.
func codeOf(err error) string {
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		return typed.ErrorType()
	}
	return middlewareError
}

// errorResponse returns the response to req for an error, in the format of c.
func errorResponse(req *http.Request, c wire.Codec, err error) *http.Response {
	e := clientErrorOf(req, err)
	r := newResponse(withCause(req, err), e.status, "application/json")
	if e.own {
		r.Header.Set("X-Should-Retry", "false")
	}
	if e.own || errors.Is(err, ErrMemory) { // the client may send that request again
		r.Header.Set(errorHeader, e.code)
	}
	r.Header.Set("Content-Length", "0")
	setBody(r, encodeError(c, e.status, e.code, e.message), false)
	return r
}

// encodeError returns the body of an error in the format of c; nil means an unknown format.
func encodeError(c wire.Codec, status int, code, message string) []byte {
	if c == nil {
		return []byte(`{"error":{"code":` + rawjson.Quote(code) + `,"message":` + rawjson.Quote(message) + `}}`)
	}
	return c.EncodeError(status, code, message)
}

// failureEvents returns the events that end stream with err, and the code for the trailer. If a,
// which ended with err, has sent stream, these are the provider's own events, and code is "".
func (x *exchange) failureEvents(stream wire.Stream, a *attempt, err error) (events []byte, code string) {
	if a != nil && a.stream == stream { // another response has another id and other numbers
		if own := stream.Failure(); own != nil {
			return stream.Passed(own), ""
		}
	}
	e := clientErrorOf(x.req, err)
	if events = stream.Fail(e.status, e.code, e.message); len(events) == 0 { // a response that is not a stream came after a keep-alive
		events = x.codec.NewStream(nil, nil).Fail(e.status, e.code, e.message)
	}
	return events, e.ownCode()
}

// forClient returns text of at most 1,000 bytes without the query of req's URL, which may
// hold a key.
func forClient(req *http.Request, text string) string { return clip(withoutQuery(text, req), 1000) }

// withoutQuery removes the query of req's URL from text.
func withoutQuery(text string, req *http.Request) string {
	if q := req.URL.RawQuery; q != "" {
		text = strings.ReplaceAll(text, q, "…")
	}
	return text
}

// clip cuts text at n bytes, between characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
