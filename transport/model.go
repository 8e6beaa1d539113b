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
	step *step
	n    int
	req  *middleware.Request

	resp    *http.Response     // the provider's response; the step reads its body
	inflate bool               // the body was compressed, so its headers no longer apply
	raw     []byte             // the bytes of the body that were read, and that stream did not get
	rest    io.ReadCloser      // the whole body of a response that is passed on; guarded by step.mu
	failure error              // a *networkError, a *passedError or the provider's *middleware.ModelError; guarded by step.mu
	native  *middleware.Native // of the response; guarded by step.mu
	stream  wire.Stream
	reading sync.Mutex    // held while stream reads, and not while the body is awaited
	idle    bool          // the body is awaited; guarded by reading
	passed  atomic.Bool   // the chain has passed an event on since show was called last
	begun   bool          // a byte of the body other than white space has arrived; guarded by step.mu
	through bool          // the body was passed on unread, to its end
	bodyErr error         // at the end of that body, or nil
	err     error         // of the model call; read it after done is closed
	done    chan struct{} // closed when the model call has returned
	cancel  context.CancelCauseFunc
	untie   func() bool // stops the cancellation of the attempt by the chain's context
}

// model is the ModelCall inside the chain.
func model(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	s, ok := ctx.Value(stepKey{}).(*step)
	if !ok {
		return nil, errOutside
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.brokeLive() {
		return nil, errShown
	}
	return s.attempt(ctx, req)
}

// attempt makes one model call.
func (s *step) attempt(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	body, err := s.encode(req)
	if err != nil {
		return nil, err
	}
	a := s.newAttempt(req)
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
	resp, err := s.send(ctx, a, own, body)
	a.err = err
	s.mu.Lock()
	s.upstream += time.Since(start)
	s.mu.Unlock()
	if a.rest == nil {
		a.untie()
		cancel(nil)
	}
	return resp, err
}

// brokeLive reports whether a response broke off of which the client got a
// part. No other response can replace it, so no further attempt is made.
func (s *step) brokeLive() bool {
	s.mu.Lock()
	live, spoken := s.live, s.spoken
	s.mu.Unlock()
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

// usedUp reports whether MaxModelCalls allows no more attempts. s.mu is held.
func (s *step) usedUp() bool {
	most := s.t.options.MaxModelCalls
	return most != middleware.Unlimited && len(s.attempts) >= most
}

// newAttempt returns nil if MaxModelCalls allows no more of them.
func (s *step) newAttempt(req *middleware.Request) *attempt {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.usedUp() {
		return nil
	}
	a := &attempt{step: s, n: len(s.attempts), req: req, done: make(chan struct{})}
	s.attempts = append(s.attempts, a)
	return a
}

// send sends the request and reads the response.
func (s *step) send(ctx context.Context, a *attempt, own context.Context, body []byte) (*middleware.Response, error) {
	resp, err := s.next(s.outgoing(own, a.req, body))
	if err == nil && resp == nil {
		err = errors.New("transport: neither a response nor an error")
	}
	if err != nil {
		return nil, s.networkFailure(ctx, a, err)
	}
	a.resp = resp
	answer, err := s.read(ctx, a)
	if a.rest == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return answer, err
}

// encode writes req with the provider's ids. A request that a middleware built
// itself asks for a stream exactly if the client does.
func (s *step) encode(req *middleware.Request) ([]byte, error) {
	if req.Native == nil || req.Native.Dialect != s.codec.Dialect() {
		fresh := *req
		if fresh.Sink = nil; s.streams {
			fresh.Sink = func(middleware.Event) error { return nil }
		}
		req = &fresh
	}
	body, err := s.codec.EncodeRequest(req)
	if err != nil || s.t.ids.empty() {
		return body, err
	}
	return s.codec.RenamePrevious(body, s.t.ids.of), nil
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

// outgoing returns a clone of the client's request with another body.
func (s *step) outgoing(ctx context.Context, req *middleware.Request, body []byte) *http.Request {
	changed := !bytes.Equal(body, s.body)
	if !changed {
		body = s.body // an open stream keeps one of them
	}
	out := s.req.Clone(ctx)
	for k, values := range req.Header {
		out.Header[http.CanonicalHeaderKey(k)] = slices.Clone(values)
	}
	s.mu.Lock()
	if s.first == nil {
		s.first = body
	}
	other := !bytes.Equal(s.first, body)
	s.mu.Unlock()
	if other { // an idempotency key belongs to one body
		out.Header.Del("Idempotency-Key")
	}
	if accept := readable(out.Header.Values("Accept-Encoding")); accept == "" {
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

// readable returns the encodings of an Accept-Encoding that this package can
// decode, or "" if there are none.
func readable(accept []string) string {
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
func (s *step) networkFailure(ctx context.Context, a *attempt, err error) error {
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return a.fails(&networkError{err, withoutQuery(err.Error(), s.req)})
}
