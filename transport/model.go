package transport

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// attempt is one model call of a step.
type attempt struct {
	exchange *exchange
	n        int
	req      *middleware.Request

	resp          *http.Response     // the provider's response; the step reads its body
	inflate       bool               // the body was compressed, so its headers no longer apply
	raw           []byte             // the bytes of the body that were read, and that stream did not get
	passedBody    io.ReadCloser      // the whole body of a response that is passed on; guarded by exchange.mu
	failure       error              // a *networkError, a *passedError or the provider's *middleware.ModelError; guarded by exchange.mu
	native        *middleware.Native // of the response; guarded by exchange.mu
	stream        wire.Stream
	streaming     sync.Mutex    // held while stream reads, and not while the body is awaited
	awaitsBody    bool          // the body is awaited; guarded by reading
	eventPassed   atomic.Bool   // the chain has passed an event on since show was called last
	begun         bool          // a byte of the body other than white space has arrived; guarded by exchange.mu
	passedThrough bool          // the body was passed on unread, to its end
	bodyErr       error         // at the end of that body, or nil
	err           error         // of the model call; read it after done is closed
	done          chan struct{} // closed when the model call has returned
	cancel        context.CancelCauseFunc
	untie         func() bool // stops the cancellation of the attempt by the chain's context
}

// model is the ModelCall inside the chain.
func model(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	s, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errOutside
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.liveBroke() {
		return nil, errShown
	}
	return s.attempt(ctx, req)
}

// attempt makes one model call.
func (x *exchange) attempt(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	body, err := x.encode(req)
	if err != nil {
		return nil, err
	}
	a := x.newAttempt(req)
	if a == nil {
		return nil, ErrModelCalls
	}
	defer close(a.done)
	// The client reads a passed-on response after the chain has canceled its
	// contexts, so the request has a context of its own.
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a.cancel = cancel
	a.untie = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	start := time.Now()
	resp, err := x.send(ctx, a, own, body)
	a.err = err
	x.mu.Lock()
	x.upstream += time.Since(start)
	x.mu.Unlock()
	if a.passedBody == nil {
		a.untie()
		cancel(nil)
	}
	return resp, err
}

// liveBroke reports whether a response broke off of which the client got a
// part. No other response can replace it, so no further attempt is made.
func (x *exchange) liveBroke() bool {
	x.mu.Lock()
	live, spoken := x.live, x.textSent
	x.mu.Unlock()
	if !spoken {
		return false
	}
	select {
	case <-live.done:
		return live.cutShort() != nil
	default:
		return false
	}
}

// callsUsedUp reports whether MaxModelCalls allows no more attempts. x.mu is held.
func (x *exchange) callsUsedUp() bool {
	most := x.t.options.MaxModelCalls
	return most != middleware.Unlimited && len(x.attempts) >= most
}

// newAttempt returns nil if MaxModelCalls allows no more of them.
func (x *exchange) newAttempt(req *middleware.Request) *attempt {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.callsUsedUp() {
		return nil
	}
	a := &attempt{exchange: x, n: len(x.attempts), req: req, done: make(chan struct{})}
	x.attempts = append(x.attempts, a)
	return a
}

// send sends the request and reads the response.
func (x *exchange) send(ctx context.Context, a *attempt, own context.Context, body []byte) (*middleware.Response, error) {
	resp, err := x.next(x.httpRequest(own, a.req, body))
	if err == nil && resp == nil {
		err = errors.New("transport: neither a response nor an error")
	}
	if err != nil {
		return nil, x.networkFailure(ctx, a, err)
	}
	a.resp = resp
	answer, err := x.read(ctx, a)
	if a.passedBody == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return answer, err
}

// encode writes req with the provider's ids. A request that a middleware built
// itself asks for a stream exactly if the client does.
func (x *exchange) encode(req *middleware.Request) ([]byte, error) {
	if req.Native == nil || req.Native.Dialect != x.codec.Dialect() {
		fresh := *req
		if fresh.Sink = nil; x.streams {
			fresh.Sink = func(middleware.Event) error { return nil }
		}
		req = &fresh
	}
	body, err := x.codec.EncodeRequest(req)
	if err != nil || x.t.ids.empty() {
		return body, err
	}
	return x.codec.RenamePrevious(body, x.t.ids.storedID), nil
}

// clientOf returns middleware.Request.Client: a keyed hash of the client's name, the
// provider's host and the client's credentials. The key is random and belongs to the
// Transport, so the hash does not reveal a credential, and differs between Transports.
func (t *Transport) clientOf(req *http.Request) string {
	mac := hmac.New(sha256.New, t.secret[:])
	write := func(part string) {
		_, _ = io.WriteString(mac, part)
		_, _ = mac.Write([]byte{0})
	}
	write(t.options.Client(req))
	write(req.URL.Host)
	write(req.URL.Query().Get("key"))
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Toolmend-Key"} {
		write(req.Header.Get(name))
	}
	return hex.EncodeToString(mac.Sum(nil))
}

// httpRequest returns a clone of the client's request with another body.
func (x *exchange) httpRequest(ctx context.Context, req *middleware.Request, body []byte) *http.Request {
	changed := !bytes.Equal(body, x.body)
	if !changed {
		body = x.body // an open stream keeps one of them
	}
	out := x.req.Clone(ctx)
	for k, values := range req.Header {
		out.Header[http.CanonicalHeaderKey(k)] = slices.Clone(values)
	}
	x.mu.Lock()
	if x.first == nil {
		x.first = body
	}
	other := !bytes.Equal(x.first, body)
	x.mu.Unlock()
	if other { // an idempotency key belongs to one body
		out.Header.Del("Idempotency-Key")
	}
	if accept := decodableEncodings(out.Header.Values("Accept-Encoding")); accept == "" {
		out.Header.Del("Accept-Encoding")
	} else {
		out.Header.Set("Accept-Encoding", accept)
	}
	if changed {
		for _, k := range digests { // they belong to the client's body
			out.Header.Del(k)
		}
	}
	out.Trailer = nil
	out.Header.Del("Content-Length")
	out.Header.Del("Transfer-Encoding")
	out.TransferEncoding = nil
	out.ContentLength = int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	out.Body, _ = out.GetBody()
	return out
}

// decodableEncodings returns the encodings of an Accept-Encoding that this package can
// decode, or "" if there are none.
func decodableEncodings(accept []string) string {
	var kept []string
	for part := range strings.SplitSeq(strings.Join(accept, ","), ",") {
		name, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "gzip", "x-gzip", "identity":
			kept = append(kept, strings.TrimSpace(part))
		}
	}
	return strings.Join(kept, ", ")
}

// networkFailure returns err as a network error. If the context has ended, it
// also wraps the context's error.
func (x *exchange) networkFailure(ctx context.Context, a *attempt, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return a.fail(&networkError{err, withoutQuery(err.Error(), x.req)})
}
