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

// fault is an error of the chain as the client is told of it.
type fault struct {
	status  int
	code    string
	message string
	own     bool // no provider sent it
}

// ownCode returns the code of an error that no provider sent.
func (f fault) ownCode() string {
	if !f.own {
		return ""
	}
	return f.code
}

// fault returns what the client is told of err. A status that a provider sent
// stays, whichever provider that was; everything else is a 400, which is the
// status that no client repeats.
func (s *step) fault(err error) fault {
	var e *middleware.ModelError
	if errors.As(err, &e) && (e.StatusCode >= http.StatusBadRequest || !errors.Is(e, middleware.ErrInvalidToolCall)) {
		status, message := e.StatusCode, "the provider answered with status "+strconv.Itoa(e.StatusCode)
		if status < http.StatusBadRequest { // an error in an answer with a good status
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
	case isProxied(s.req): // the client's user did not write the chain
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

// failure returns the events that end stream as failed behind the bytes that
// were taken, and the code for the trailer: the provider's own event, without a
// code, if stream is that of attempt a, which ended with err.
func (s *step) failure(stream wire.Stream, a *attempt, err error) (events []byte, code string) {
	if a != nil && a.stream == stream { // another answer has another id, and counts anew
		if own := stream.Failure(); own != nil {
			return stream.Passed(own), ""
		}
	}
	f := s.fault(err)
	if events = stream.Fail(f.status, f.code, f.message); len(events) == 0 { // one object came behind a keep-alive
		events = s.codec.NewStream(nil, nil).Fail(f.status, f.code, f.message)
	}
	return events, f.ownCode()
}

// clean shortens text for the client and takes the query of the address out of
// it, where a key may be.
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
