// Package middleware defines model calls and their middlewares: the request,
// the response, and the functions that wrap a call.
//
// A [ModelCall] is any function that sends one request to a model. A
// [Middleware] wraps one ModelCall in another, and [Chain] composes several:
//
//	call := middleware.Chain(trace, validate, retry)(model)
//
// which behaves as trace(validate(retry(model))): trace sees a request first
// and its outcome last.
//
// # Rules that every middleware keeps
//
//   - The response is non-nil exactly when the error is nil.
//   - A middleware does not modify the caller's request, its slices or its
//     messages: [Request.Clone], [Request.With] and [Request.WithSystem] return
//     copies.
//   - A middleware calls next zero, one or many times, with the context that it
//     got or a child of it. If it calls next more than once, it does so through a
//     [Tally], which records every attempt, all usage and every error.
//   - A middleware is safe for concurrent use.
//
// Package middlewaretest checks a middleware against these rules.
//
// # JSON
//
// Every value of this package can be stored with [encoding/json], except for
// functions and handles (Sink, Decode). The error of an attempt keeps its
// text and loses its type. Text from a provider may hold bytes that are not
// valid UTF-8. Ids, names, arguments and the text of a Native keep such bytes,
// in the form {"base64": "…"}. In other text encoding/json replaces them by
// U+FFFD.
package middleware

import "context"

// Unlimited turns a limit off, in the options whose doc names it. Every other
// negative number in options is an error.
const Unlimited = -1

// ModelCall sends one request to a model. The response is non-nil exactly when
// the error is nil. A ModelCall does not modify req.
//
// A broken ModelCall may return neither. A middleware that reads the response
// calls next through [Tally.Call], which returns [ErrNoResponse] in that case,
// or checks for nil.
type ModelCall func(ctx context.Context, req *Request) (*Response, error)

// Middleware wraps a ModelCall in another. It is called once, when the stack
// is built. The ModelCall that it returns is called once for each request,
// from any number of goroutines.
type Middleware func(next ModelCall) ModelCall
