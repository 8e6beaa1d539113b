package middleware

import (
	"context"
	"slices"
)

// Chain returns one middleware: Chain(a, b, c)(call) behaves as a(b(c(call))).
// Nil entries are skipped. An empty chain returns the call unchanged. Nesting
// equals flattening: Chain(a, Chain(b, c)) behaves as Chain(a, b, c). A later
// change of the slice mws does not change the chain.
//
// The returned middleware panics when it is applied to a nil ModelCall.
func Chain(mws ...Middleware) Middleware {
	layers := slices.DeleteFunc(slices.Clone(mws), func(mw Middleware) bool { return mw == nil })
	return func(call ModelCall) ModelCall {
		if call == nil {
			panic("middleware: Chain: the model call is nil")
		}
		for _, mw := range slices.Backward(layers) {
			call = mw(call)
		}
		return call
	}
}

// When applies mw to the requests that match. Other requests skip mw. A nil mw
// changes nothing. When panics if match is nil.
func When(match func(*Request) bool, mw Middleware) Middleware {
	if match == nil {
		panic("middleware: When: match is nil")
	}
	return func(next ModelCall) ModelCall {
		if mw == nil {
			return next
		}
		wrapped := mw(next)
		return func(ctx context.Context, req *Request) (*Response, error) {
			if match(req) {
				return wrapped(ctx, req)
			}
			return next(ctx, req)
		}
	}
}
