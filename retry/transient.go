package retry

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/toolmend/toolmend/middleware"
)

// Transient reports whether err is a failure that may not recur if the same
// request is sent again:
//
//   - a *middleware.ModelError with status 408, 409, 425, 429 or 5xx (529
//     included). Without an error status, as in a stream that broke off after
//     its 200, the provider's code decides: overloaded_error, api_error,
//     rate_limit_error and timeout_error (Anthropic), server_error and
//     rate_limit_exceeded (OpenAI), UNAVAILABLE, RESOURCE_EXHAUSTED, INTERNAL,
//     DEADLINE_EXCEEDED and ABORTED (google.rpc.Code)
//   - a network error: a timeout, a connection refused, reset or closed early, a
//     host or network that cannot be reached, a temporary DNS failure, an HTTP/2
//     stream or connection that the server ended
//   - context.DeadlineExceeded. New and Fallback check their own context first, so
//     they pass it only for the timeout of a single attempt.
//
// It is false for context.Canceled, for a rejected request (any other 4xx
// status), for middleware.ErrInvalidToolCall and middleware.ErrInvalidHistory
// with any status, for middleware.ErrNoResponse, for every other error, and
// for nil. It looks through any depth of wrapping.
//
// Sources: docs.anthropic.com/en/api/errors; openai-ruby
// lib/openai/models/responses/response_error.rb; google/rpc/code.proto.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) ||
		errors.Is(err, middleware.ErrInvalidToolCall) || errors.Is(err, middleware.ErrInvalidHistory) ||
		errors.Is(err, middleware.ErrNoResponse) {
		return false
	}
	if e, ok := errors.AsType[*middleware.ModelError](err); ok {
		if e.StatusCode >= 400 {
			// As in the doc comment. net/http would have to be compiled for the names of these.
			return slices.Contains([]int{408, 409, 425, 429}, e.StatusCode) || e.StatusCode >= 500 && e.StatusCode <= 599
		}
		if slices.Contains(transientCodes, e.Code) {
			return true
		}
	}
	return anyError(err, brokenConnection)
}

// Status returns a function that matches a *middleware.ModelError with one of
// these HTTP status codes, for Options.If and Fallback. Without codes it
// matches no error. It is safe for concurrent use.
func Status(codes ...int) func(error) bool {
	codes = slices.Clone(codes)
	return func(err error) bool {
		e, ok := errors.AsType[*middleware.ModelError](err)
		return ok && slices.Contains(codes, e.StatusCode)
	}
}

var transientCodes = []string{
	"overloaded_error", "api_error", "rate_limit_error", "timeout_error",
	"server_error", "rate_limit_exceeded",
	"UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL", "DEADLINE_EXCEEDED", "ABORTED",
}

// brokenErrnos ends with WinSock's numbers for the same errors: on Windows the
// constants above them are made up by Go and never returned by the system.
var brokenErrnos = []syscall.Errno{
	syscall.ECONNREFUSED, syscall.ECONNRESET, syscall.ECONNABORTED, syscall.EPIPE,
	syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ENETDOWN, syscall.ETIMEDOUT,
	10061, 10054, 10053, 10065, 10051, 10050, 10060,
}

// brokenTexts are errors of net/http that have neither an exported variable
// nor an exported type (transport.go and h2_bundle.go, Go 1.26).
var brokenTexts = []string{
	"http: server closed idle connection",
	"http2: client connection lost",
	"http2: server sent GOAWAY and closed the connection",
}

// brokenConnection checks one error of a tree, not the errors that it wraps.
func brokenConnection(err error) bool {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return true
	}
	switch e := err.(type) {
	case syscall.Errno:
		return slices.Contains(brokenErrnos, e)
	case *net.DNSError:
		return e.IsTimeout || e.IsTemporary
	case net.Error:
		if e.Timeout() {
			return true
		}
	case interface{ As(any) bool }:
		return e.As(new(streamError))
	}
	return slices.ContainsFunc(brokenTexts, func(text string) bool { return strings.HasPrefix(err.Error(), text) })
}

// streamError has the fields of net/http's unexported HTTP/2 stream error, so
// that errors.As can fill it (h2_error.go, Go 1.26).
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

// anyError reports whether f holds for err or anything that it wraps.
func anyError(err error, f func(error) bool) bool {
	for err != nil {
		if f(err) {
			return true
		}
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			err = e.Unwrap()
		case interface{ Unwrap() []error }:
			return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return anyError(err, f) })
		default:
			return false
		}
	}
	return false
}
