// Package transport puts a chain of middlewares inside an existing HTTP
// client, SDK or proxy:
//
//	client := openai.NewClient(option.WithMiddleware(
//		transport.Hook(toolmend.Stack(toolmend.Options{}))))
//
// The chain has the middlewares that Hook, RoundTripper, Handler or New is given, and no others.
// toolmend.Stack has them all in their order; a chain of your own may be
// argsvalidate.New(argsvalidate.Options{}) alone.
//
// A request is a model call if its path and its body are those of a format in
// package wire. It goes through the chain. The client sees one call and one
// response, however often the chain calls the model. Other requests pass
// through unchanged, byte for byte. If such a request offers tools, its response is
// marked as unchecked; Options.RejectUnknownPaths refuses it. Model calls whose body
// cannot be read or must not be modified pass through unchanged too: bodies in an
// encoding without a Decoder, bodies of more than MaxBody bytes, and signed or digested
// bodies. Their responses are marked as unchecked. A Handler validates signed and digested
// requests too, and refuses requests that it cannot read.
//
// # Answers
//
// A response without words for calls that the chain accepts unchanged is
// returned as the provider sent it. Package wire writes every other response
// from what was decoded and validated, so all clients read the same calls. The
// status and the headers stay. The usage is the usage of the attempt which the response came
// from, because clients derive the size of their context from it. Of a response that was
// joined from several attempts it is the last one's. [Call.Report] has the sum.
//
// A middleware may also respond itself, with a message that it wrote or a response that it
// stored, in any format. Such a response is written in the client's format, and as a stream if
// the client asked for one. The provider does not know its id, so a client of OpenAI Responses cannot
// continue from it by previous_response_id.
//
// The text of a streamed response is sent as it arrives, and so are the events of tools that
// the provider runs. The response begins with the first of either. If the request offers
// tools, reasoning waits for what follows it: it is sent with text, and held
// with a call. From the first event of a tool call on, and at the end, bytes are
// held until the chain has returned. Then the rest follows. After a re-ask the later
// response follows, as a continuation of the bytes that the client already has. A middleware
// that holds back or changes text in the request's Sink does so for the client
// as well. A middleware that changes text only in the response needs
// Options.Hold.
//
// # Keep-alive
//
// A client that asked for a stream does not wait in silence. Once the provider
// has responded with a good status, the format's keep-alive is sent each time
// the client has received no bytes for Options.KeepAlive: while a call is
// held, while a middleware waits or re-asks, and while the provider is silent.
// The keep-alive of Anthropic is a ping. That of Responses is
// response.in_progress or keepalive (later events are renumbered). That of
// chat completions is a chunk without content, or a comment before the first
// chunk. Gemini gets an empty event, and Ollama a line without text.
//
// The opening events of the response are sent before the first keep-alive.
// From then on the status is 200, and every later error is an event of the
// stream. Responses that are not streams have no keep-alive.
//
// # One identity
//
// After a re-ask the whole stream has the id of the bytes that the client got
// first. In Responses a later request may use that id, in previous_response_id
// or in its path: the Transport remembers the last 4,096 such ids of stored
// responses and sends the id of the accepted response instead. Other processes
// do not share this memory. In another process the provider continues from the
// rejected response; OpenAI then returns an error 400, because the rejected
// call has no output. Options.Hold together with KeepAlive: Off avoids this.
//
// # Unreadable answers
//
// A response is unreadable if its codec cannot tell which calls it holds, or
// if its encoding or its size is not supported. The client gets
// [ErrUnreadable] if the request offered tools and the response may hold a
// call: one of the format's words for calls occurs in it, or it cannot be
// searched. So every call that leaves the transport was validated. Any other
// unreadable response is passed on and marked. If it came in answer to a re-ask, the client
// gets the last response or the error of the chain in its place. The transport must read the
// response to its end for that. Options.PassUnreadable passes all unreadable
// responses on. A request that cannot be read and offers tools is refused in
// the same way.
//
// # Errors
//
//   - A provider's error response (a status from 400 on) is returned as it was sent,
//     also in the middle of a re-ask, if the chain returns its error. An error of
//     another provider, such as a fallback, keeps its status.
//   - Network errors and context errors are returned unchanged, as Go errors.
//   - Every other error of the chain is a response with status 400 and an error
//     in the format's own form, which SDKs and agents do not retry. The header
//     X-Toolmend-Error has its code, and so has the error object if the format has
//     a place for it. The code is the ErrorType() string of the first error in the
//     tree that has this method, else middleware_error. The codes of this module
//     are invalid_tool_call, invalid_answer, unreadable_answer,
//     unreadable_request, rule_failed, budget and panic.
//   - The message is the result of the error's method ClientMessage() string.
//     Without that method it is the error's text. Clients of a [Handler] do not get
//     that text, because they may not be the authors of the chain.
//   - [Cause] returns the error itself. For streams, and for clients that hide the
//     response, [Watch] does.
//   - In a stream that has begun, the format's failure event follows, and the body
//     then ends properly. The trailer X-Toolmend-Error has the code. The event of
//     Chat Completions has the status 400 in place of the code, because only that
//     number makes agents end their turn.
//   - After a network error in a stream, the body's Read returns that error. If only a re-ask
//     failed so, and the client's own stream is complete, the failure event follows. A
//     partly streamed response is not continued with a retried one, because the
//     client would see part of the text twice.
//   - A panic of a middleware is passed on. It becomes a [*Panic] in a stream that
//     has begun, and for clients of a [Handler].
//
// # Status
//
// The header X-Toolmend-Status of a response with calls is valid, invalid (at
// least one call is invalid) or unchecked (at least one call was not
// validated, and none is known to be invalid). A response that was passed on
// unread is unchecked. In a stream that began before the verdict the status is a
// trailer. A response without
// calls has a status if package answer is in the chain: its text is valid or
// invalid. An invalid stream of server-sent events ends with the comment ":
// toolmend status=invalid", except in Gemini's format, whose clients reject
// comments. [Call.Status] returns the same status. Headers and trailers of
// these names that an upstream sends are removed from the responses to model
// calls, and from all responses of a [Handler].
//
// # Position
//
// In an SDK's chain of hooks, put this hook after those that rewrite the
// request, so that the chain sees the final request, and before a hook that
// signs it. In anthropic-sdk-go this means WithMiddleware before
// bedrock.WithConfig.
package transport

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// Options configure a Transport. The zero value works.
type Options struct {
	// Codecs are the formats to recognise; nil means all of package wire.
	Codecs []wire.Codec
	// Hold holds every streamed response until the chain has returned.
	Hold bool
	// KeepAlive is the longest silence for a client that asked for a stream.
	// After each such silence the format's keep-alive is sent, from the
	// provider's first good headers until the response ends. A keep-alive
	// commits the status 200. 0 means 8 s; Off turns keep-alives off;
	// other negative values are an error.
	KeepAlive time.Duration
	// ReaskTimeout is how long a further model call may take until the first byte of its
	// body, if the exchange already has a response of the model. Then the call fails as a
	// network timeout, and argsvalidate does with the last response what its OnExhausted
	// selects. A body that has begun is not limited. A response that is not a stream often
	// begins when the model has finished it: allow more time for a slow model. 0 means
	// 60 s; Off means no limit; other negative values are an error.
	ReaskTimeout time.Duration
	// MaxModelCalls limits the model calls for one request of the client. A retry
	// of the client is a new request: an SDK that makes three attempts may cause
	// three times as many model calls. If the last of several calls that were
	// allowed ends in the provider's error, the response has the header X-Should-Retry: false, which
	// the SDKs of OpenAI and Anthropic obey. 0 means 10; middleware.Unlimited means
	// no limit; other negative values are an error.
	MaxModelCalls int
	// MaxBody is the largest request or response in bytes that is read. A
	// larger request passes through unchanged; a larger response counts as
	// unreadable. 0 means 64 MiB; a larger value or a negative one is an
	// error.
	MaxBody int64
	// Figures adds headers to the responses that the chain returned:
	// X-Toolmend-Attempts, the model calls that were made; X-Toolmend-Repaired,
	// the repaired calls of the response; X-Toolmend-Rescued, the calls that
	// package rescue read from its text, if any; X-Toolmend-Healed, the rules of package
	// heal by which a refused request was changed, if any; X-Toolmend-Usage, the tokens of all
	// model calls if there was more than one; and X-Toolmend-Overhead-Ms, the time
	// that was not spent on model calls. In streams they are trailers.
	Figures bool
	// IDs remembers the ids of re-asked streams; see "One identity" in the
	// documentation of the package. Several Transports may share one. nil means
	// one of its own.
	IDs *IDs
	// Memory limits the memory of all messages that are read at one time. Several Transports
	// may share one. nil means one of its own.
	Memory *Memory
	// Requests decodes the requests, and remembers what they began with. Several Transports may share
	// one. nil means one of its own.
	Requests *wire.Requests
	// DeferMessages reads the messages of a request only if a middleware needs them. Set it if every
	// middleware of the chain is one of this module: they use middleware.Request.Loaded. To
	// any other middleware a request would seem to have no messages, and so does [Call.Request].
	DeferMessages bool
	// Decoders decompress the bodies of model calls, by the Content-Encoding in
	// lower case. The provider gets such a body decompressed. A Handler refuses
	// bodies that it cannot read, unless PassUnreadable is set; everywhere else
	// they bypass the chain.
	Decoders map[string]Decoder
	// Client returns the name of the client that sent a request. It goes into
	// middleware.Request.Client, as the credentials of the request do. Set it if something
	// in front of the Transport identifies the clients and removes their credentials. nil
	// means that the credentials identify them.
	Client func(*http.Request) string
	// Base sends the requests of a Handler. It must not follow redirects. nil
	// means http.DefaultTransport.
	Base http.RoundTripper
	// PassUnreadable passes on messages that cannot be read although they may
	// hold a tool call: responses to requests that offered tools, and requests
	// that offer tools. They are marked with X-Toolmend-Status: unchecked.
	// Without PassUnreadable the client gets an error.
	PassUnreadable bool
	// RejectUnknownPaths refuses POST requests that offer tools on a path that belongs to
	// none of the formats. Without it the response is passed on, and has
	// X-Toolmend-Status: unchecked. Compressed bodies are not searched for tools.
	RejectUnknownPaths bool
}

// Off turns Options.KeepAlive and Options.ReaskTimeout off.
const Off time.Duration = -1

// keepAlive is the default of Options.KeepAlive. The shortest idle timeouts of
// clients and proxies are ten seconds.
const keepAlive = 8 * time.Second

// reaskTimeout is the default of Options.ReaskTimeout.
const reaskTimeout = time.Minute

// Decoder returns a reader of the decompressed bytes of r.
type Decoder func(r io.Reader) (io.Reader, error)

// maxBody is the largest body that the codecs read.
const maxBody = 64 << 20

// Validate returns the first invalid field as an error, or nil. New panics
// with the same error.
func (o Options) Validate() error {
	switch {
	case o.KeepAlive < 0 && o.KeepAlive != Off:
		return fmt.Errorf("transport: Options.KeepAlive: must not be negative, unless it is Off, got %s", o.KeepAlive)
	case o.ReaskTimeout < 0 && o.ReaskTimeout != Off:
		return fmt.Errorf("transport: Options.ReaskTimeout: must not be negative, unless it is Off, got %s", o.ReaskTimeout)
	case o.MaxModelCalls < 0 && o.MaxModelCalls != middleware.Unlimited:
		return fmt.Errorf("transport: Options.MaxModelCalls: must not be negative, unless it is middleware.Unlimited, got %d", o.MaxModelCalls)
	case o.MaxBody < 0 || o.MaxBody > maxBody:
		return fmt.Errorf("transport: Options.MaxBody: must be 0 to %d, got %d", maxBody, o.MaxBody)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.KeepAlive == 0 {
		o.KeepAlive = keepAlive
	}
	if o.ReaskTimeout == 0 {
		o.ReaskTimeout = reaskTimeout
	}
	if o.Codecs == nil {
		o.Codecs = wire.Codecs()
	}
	if o.IDs == nil {
		o.IDs = &IDs{}
	}
	if o.Memory == nil {
		o.Memory = &Memory{}
	}
	if o.Requests == nil {
		o.Requests = &wire.Requests{}
	}
	if o.Client == nil {
		o.Client = func(*http.Request) string { return "" }
	}
	if o.Base == nil {
		o.Base = http.DefaultTransport
	}
	if o.MaxModelCalls == 0 {
		o.MaxModelCalls = 10
	}
	if o.MaxBody == 0 {
		o.MaxBody = maxBody
	}
	return o
}

// Transport sends model calls through a chain of middlewares. It is safe for
// concurrent use, also by several clients and for several providers.
type Transport struct {
	options Options
	call    middleware.ModelCall // the chain, applied once
	ids     *IDs
	secret  [32]byte // the key of clientOf
}

// New returns a Transport that uses Chain(mws...). It panics with the error of
// o.Validate.
//
// In the chain the request's Header is empty, although the client's own
// headers are sent. A header that a middleware sets replaces the client's
// header of that name. Request.Sink is set if the response may be a stream. A
// response of the chain without a Native is written as a change of the last
// response that came from next. If there was none, it is written as a response
// of the chain's own.
func New(o Options, mws ...middleware.Middleware) *Transport {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	o = o.withDefaults()
	t := &Transport{options: o, ids: o.IDs, call: middleware.Chain(mws...)(model)}
	_, _ = rand.Read(t.secret[:]) // it never fails
	return t
}

// Hook sends one request through the chain. It calls next for each model call,
// with a clone of the request that has the same URL and headers and another
// body. Pass the method value to option.WithMiddleware of the SDKs of OpenAI
// and Anthropic.
func (t *Transport) Hook(req *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	return t.roundTrip(req, next, nil)
}

// RoundTripper returns an http.RoundTripper that sends model calls through the
// chain, for clients that accept an *http.Client. base nil means
// http.DefaultTransport. A model call that is redirected with status 301, 302 or 303
// is an error. One with which the client follows a 307 or 308 is validated, in the format
// of the first request.
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

// RoundTrip sends a model call through the chain, and every other request to the base.
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	return r.t.roundTrip(req, r.base.RoundTrip, nil)
}

// CloseIdleConnections calls the method of the base, for http.Client.
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

// Cause returns the error of the chain if the Transport made resp from one,
// else nil. It reads the context of resp.Request, so the client may replace
// the body and the headers.
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
