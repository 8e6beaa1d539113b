package transport

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// fault is an error of the chain in the form that the client gets.
type fault struct {
	status  int
	code    string
	message string
	own     bool // it did not come from a provider
}

// ownCode returns the code of an error that did not come from a provider.
func (f fault) ownCode() string {
	if !f.own {
		return ""
	}
	return f.code
}

// fault returns the client's form of err. The status of any provider's error
// is kept. Every other error gets the status 400, because no client retries a
// 400.
func (s *step) fault(err error) fault {
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
		return fault{status, e.Code, s.clean(message), false}
	}
	f := fault{http.StatusBadRequest, codeOf(err), "", true}
	var told interface{ ClientMessage() string }
	switch {
	case errors.Is(err, middleware.ErrInvalidToolCall):
		f.code, f.message = "invalid_tool_call", refusedCall
	case errors.As(err, &told):
		f.message = told.ClientMessage()
	case isProxied(s.req): // the users of such a client did not write the chain
		f.message = "a middleware refused the answer"
	default:
		f.message = err.Error()
	}
	f.message = s.clean(f.message)
	return f
}

const refusedCall = "the provider refused the model's tool call"

// codeOf returns the code of an error of the chain: the ErrorType of the first
// error in its tree that has one.
func codeOf(err error) string {
	var typed interface{ ErrorType() string }
	if errors.As(err, &typed) {
		return typed.ErrorType()
	}
	return "middleware_error"
}

// raised returns the response for an error of the chain.
func (s *step) raised(err error) *http.Response {
	f := s.fault(err)
	r := newResponse(withCause(s.req, err), f.status, "application/json")
	if f.own {
		r.Header.Set("X-Should-Retry", "false")
		r.Header.Set(errorHeader, f.code)
	}
	r.Header.Set("Content-Length", "0")
	setBody(r, encodeError(s.codec, f.status, f.code, f.message), false)
	return r
}

// failure returns the events that end a stream with an error, and the code for
// the trailer. The events follow the bytes that were taken from stream. If
// stream is that of attempt a, which ended with err, failure returns the
// provider's own event without a code.
func (s *step) failure(stream wire.Stream, a *attempt, err error) (events []byte, code string) {
	if a != nil && a.stream == stream { // another response has another id and other numbers
		if own := stream.Failure(); own != nil {
			return stream.Passed(own), ""
		}
	}
	f := s.fault(err)
	if events = stream.Fail(f.status, f.code, f.message); len(events) == 0 { // a response that is not a stream came after a keep-alive
		events = s.codec.NewStream(nil, nil).Fail(f.status, f.code, f.message)
	}
	return events, f.ownCode()
}

// clean shortens text for the client and removes the query of the URL, which
// may hold a key.
func (s *step) clean(text string) string { return clip(withoutQuery(text, s.req), 1000) }

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
