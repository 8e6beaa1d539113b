// Package transport puts a chain of middlewares inside an HTTP client, an SDK
// or a proxy that exists already:
//
//	client := openai.NewClient(option.WithMiddleware(
//		transport.Hook(argsvalidate.New(argsvalidate.Options{}))))
//
// A model call is recognised by its path and its body, in any of the formats of
// package wire, and goes through the chain. The client sees one call and one
// answer, however often the chain asked. Everything else passes untouched, byte
// for byte. So does a model call whose body cannot be changed: one that is
// compressed, has more than MaxBody bytes or, but for a Handler, is signed or
// digested. The answer to such a call is marked as unchecked.
//
// # Answers
//
// An answer that the chain accepts unchanged comes as the provider sent it,
// with its status and headers. One that it changed is an edit of that, and its
// usage is the sum over all attempts. A middleware may also answer by itself,
// with a message that it wrote or a response that it kept, of whatever format:
// it is written in the client's format, streamed if the client asked for a
// stream. A provider does not know the id of such an answer: a client of
// OpenAI Responses cannot go on from it by previous_response_id.
//
// Text of a streamed answer goes out as it comes; from the first event of a
// tool call on, and at the end, bytes wait until the chain has decided. Then
// the rest follows or, after a re-ask, the later answer as a continuation of
// what was shown. A middleware that holds text back from the request's Sink,
// or changes it there, holds it back from the client as well; one that changes
// text only in the response needs Options.Hold.
//
// # Keep-alive
//
// A client that asked for a stream does not wait in silence. Once the provider
// has answered with a good status, the format's keep-alive follows every
// Options.KeepAlive without bytes for the client: while a call is held, while a
// middleware waits or asks again, and while the provider itself is silent. It
// is a ping for Anthropic, response.in_progress or keepalive for Responses (later
// events are renumbered), a chunk without content for chat completions (a comment
// before the first chunk), an empty event for Gemini and a line without text for
// Ollama. What opens the answer goes out before it. From
// then on the status is 200, and every later error is an event of the stream.
// Answers that are no stream wait in silence.
//
// # One identity
//
// After a re-ask the whole stream has the id of the bytes that the client was
// given first. In Responses a later request may name that id, in
// previous_response_id or in its path: the Transport remembers the last 4,096
// such ids of stored answers and sends the id of the accepted answer. The
// memory is the process's own. Through another one the provider goes on from
// the answer that was rejected; for OpenAI that is an error 400, because the
// rejected call has no output. Options.Hold together with NoKeepAlive avoids it.
//
// # Unreadable answers
//
// An answer is unreadable if its codec cannot say which calls it holds, or if
// its encoding or its size cannot be read. If the request offered tools, and one
// of the format's words for calls occurs in the answer or the answer cannot be
// searched, the client gets [ErrUnreadable]: what leaves the transport was
// validated. Any other unreadable answer is passed on and marked. The answer has
// to be read to its end for that. Options.PassUnreadable passes all of them on.
// A request that cannot be read and offers tools is refused likewise.
//
// # Errors
//
//   - A status from 400 on that the provider sent comes as it was sent, in the
//     middle of a re-ask too, if the chain returns its error. The status of
//     another provider, as of a fallback, keeps its number.
//   - Network errors, and the end of the request's context, are Go errors. They
//     are returned unchanged.
//   - Every other error of the chain is a response with status 400 and an error
//     in the format's own form, which SDKs and agents do not retry. The header
//     X-Toolmend-Error has its code, and so has the error object where the
//     format has a place for it: the ErrorType() string of the first error in
//     the tree that has the method, else middleware_error. The codes of this
//     module are invalid_tool_call, invalid_answer, unreadable_answer,
//     unreadable_request, rule_failed, budget and panic.
//   - The message is what the error's method ClientMessage() string returns. If
//     it has none, the message is the error's text, but for clients of a
//     [Handler], who may not be the authors of the chain.
//   - [Cause] and, for streams and clients that hide the response, [Watch] give
//     the error itself.
//   - In a stream that has begun, the format's failure event follows, and the
//     body ends properly behind it; the code is in the trailer X-Toolmend-Error.
//     The event of Chat Completions has the status 400 in place of the code,
//     because agents end their turn at that number only.
//     After a network error the body's Read returns that error instead. Such an
//     answer does not go on with that of a retry: its text would be in it one
//     and a half times.
//   - A panic of a middleware is passed on. It becomes a [*Panic] in a stream
//     that has begun, and for clients of a [Handler].
//
// # Status
//
// The header X-Toolmend-Status of an answer with calls is valid, invalid (at
// least one call is) or unchecked (at least one call was not validated, none is
// known to be invalid). An answer that was passed on unread is unchecked. On
// streams it is a trailer. An answer without calls has the header if package
// answer is in the chain: its text is valid or invalid. A stream of server-sent
// events that is invalid ends with a comment, ": toolmend status=invalid",
// unless the format is Gemini's, whose clients refuse comments. [Call.Status]
// says the same. Headers and trailers of these names that an upstream sends are
// removed: from the answers to model calls, and from all answers of a
// [Handler].
//
// # Position
//
// In an SDK's chain of hooks: after those that rewrite the request, so that
// nothing changes it behind this one's back, and before one that signs it. In
// anthropic-sdk-go this is WithMiddleware before bedrock.WithConfig.
package transport

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Options set up a Transport. The zero value works.
type Options struct {
	// Codecs are the formats that are recognised; nil: all of package wire.
	Codecs []wire.Codec
	// Hold holds every streamed answer until the chain has decided.
	Hold bool
	// KeepAlive is how long a client that asked for a stream hears nothing. After
	// that the format's keep-alive is sent, again and again, from the moment when
	// the provider's first good headers are in until the answer ends. A keep-alive
	// commits the status 200. 0 means 8 s, NoKeepAlive sends none, other negative
	// values are an error.
	KeepAlive time.Duration
	// MaxModelCalls bounds the model calls for one request of the client. A retry
	// of the client is a new request: an SDK that makes three tries may cause three
	// times as many model calls. When the provider's error uses up the last call,
	// the answer has the header X-Should-Retry: false, which OpenAI's and
	// Anthropic's SDKs obey. 0 means 10, middleware.Unlimited sets no bound, and
	// other negative values are an error.
	MaxModelCalls int
	// MaxBody is how many bytes of a request or an answer are read. A bigger
	// request passes untouched, a bigger answer counts as unreadable. 0 means
	// 64 MiB; more than that, or less than 0, is an error.
	MaxBody int64
	// CleanHistory says what happens to tool calls in the history whose
	// arguments are no JSON object: CleanOnRefusal (0), CleanAlways, CleanNever.
	CleanHistory CleanHistory
	// PassUnreadable passes on what cannot be read although it may hold a tool
	// call that nobody validated: answers to requests that offered tools, and
	// requests that offer some. Without it the client gets an error. What is
	// passed on is marked with X-Toolmend-Status: unchecked.
	PassUnreadable bool
}

// maxBody is what the codecs read at most.
const maxBody = 64 << 20

// Validate returns what is wrong with the options. New panics with it.
func (o Options) Validate() error {
	switch {
	case o.KeepAlive < 0 && o.KeepAlive != NoKeepAlive:
		return fmt.Errorf("transport: Options.KeepAlive: must not be negative, unless it is NoKeepAlive, got %s", o.KeepAlive)
	case o.MaxModelCalls < 0 && o.MaxModelCalls != middleware.Unlimited:
		return fmt.Errorf("transport: Options.MaxModelCalls: must not be negative, unless it is middleware.Unlimited, got %d", o.MaxModelCalls)
	case o.MaxBody < 0 || o.MaxBody > maxBody:
		return fmt.Errorf("transport: Options.MaxBody: must be 0 to %d, got %d", maxBody, o.MaxBody)
	case o.CleanHistory > CleanNever:
		return fmt.Errorf("transport: Options.CleanHistory: must be one of the constants, got %d", o.CleanHistory)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.KeepAlive == 0 {
		o.KeepAlive = keepAlive
	}
	if o.Codecs == nil {
		o.Codecs = wire.Codecs()
	}
	if o.MaxModelCalls == 0 {
		o.MaxModelCalls = 10
	}
	if o.MaxBody == 0 {
		o.MaxBody = maxBody
	}
	return o
}

// Transport sends model calls through a chain of middlewares. It serves any
// number of goroutines, clients and providers at once.
type Transport struct {
	options Options
	call    middleware.ModelCall // the chain, applied once
	ids     ids
}

// New returns a Transport with Chain(mws...) in it. It panics with the error of
// o.Validate.
//
// In the chain the request's Header is empty, although the client's own headers
// are sent; what a middleware puts there takes the place of the client's of that
// name. Its Sink is set if the answer may be a stream. A response without a
// Native is written as a change of the last answer that came from next; without
// one it is an answer of the chain's own.
func New(o Options, mws ...middleware.Middleware) *Transport {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	return &Transport{options: o.withDefaults(), call: middleware.Chain(mws...)(model)}
}

// Hook sends one request through the chain, and calls next for each model call
// with a clone of it: the same URL and headers, another body. The method value
// is what option.WithMiddleware of OpenAI's and Anthropic's SDKs takes.
func (t *Transport) Hook(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return t.do(req, next)
}

// RoundTripper returns the Transport on top of base, http.DefaultTransport if
// that is nil: for clients that take an *http.Client.
func (t *Transport) RoundTripper(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &roundTripper{t, base}
}

type roundTripper struct {
	t    *Transport
	base http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.t.do(req, r.base.RoundTrip)
}

// CloseIdleConnections lets http.Client reach the method of the base.
func (r *roundTripper) CloseIdleConnections() {
	if c, ok := r.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Hook is New(Options{}, mws...).Hook.
func Hook(mws ...middleware.Middleware) func(*http.Request, func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return New(Options{}, mws...).Hook
}

// RoundTripper is New(Options{}, mws...).RoundTripper(base).
func RoundTripper(base http.RoundTripper, mws ...middleware.Middleware) http.RoundTripper {
	return New(Options{}, mws...).RoundTripper(base)
}

// Handler is New(Options{}, mws...).Handler(upstream).
func Handler(upstream *url.URL, mws ...middleware.Middleware) http.Handler {
	return New(Options{}, mws...).Handler(upstream)
}

// Cause returns the chain's error behind a response that the Transport made of
// it, and nil for any other. It is found in the context of resp.Request, so
// that a client may replace the body and the headers.
func Cause(resp *http.Response) error {
	if resp == nil || resp.Request == nil {
		return nil
	}
	err, _ := resp.Request.Context().Value(causeKey{}).(error)
	return err
}

type causeKey struct{}

func withCause(req *http.Request, err error) *http.Request {
	return req.WithContext(context.WithValue(req.Context(), causeKey{}, err))
}
