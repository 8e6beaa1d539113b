// Package middleware is the vocabulary of a model call: what is asked, what
// comes back, and what wraps the call.
//
// A [ModelCall] is any function that asks a model once. A [Middleware] wraps
// one in another, and [Chain] puts several together:
//
//	call := middleware.Chain(trace, validate, retry)(model)
//
// which behaves as trace(validate(retry(model))): trace sees a request first
// and its outcome last.
//
// # Rules that every middleware keeps
//
//   - The response is non-nil exactly when the error is nil.
//   - The caller's request, its slices and its messages are never changed:
//     [Request.Clone], [Request.With] and [Request.WithSystem] return copies.
//   - next is called zero, one or many times, with the context that was given
//     or a child of it. A middleware that calls it more than once does so
//     through a [Tally], so that no attempt, no usage and no error is lost.
//   - One middleware value serves any number of goroutines.
//
// Package middlewaretest checks a middleware against these rules.
//
// # JSON
//
// Every value here can be stored with [encoding/json], except for functions and
// handles (Sink, Decode, Ref). An attempt's error keeps its text, not its type.
// Text from a provider may hold bytes that are not UTF-8: what identifies a call
// (ids, names, arguments, the text of a Native) keeps them, as
// {"base64": "…"}. In other text encoding/json replaces them by U+FFFD, and it
// may change the white space of a schema.
package middleware

import "context"

// Unlimited is the value of a setting that has no bound, where its doc names
// it. Every other negative number in options is an error.
const Unlimited = -1

// ModelCall asks a model once. The response is non-nil exactly when the error
// is nil. It does not change req.
//
// A broken model returns neither. A middleware that reads a response calls next
// through [Tally.Call], which makes that [ErrNoResponse], or looks for nil.
type ModelCall func(ctx context.Context, req *Request) (*Response, error)

// Middleware wraps a ModelCall in another. It is called once, when the stack
// is built; what it returns is called once for each request, from any number
// of goroutines.
type Middleware func(next ModelCall) ModelCall
