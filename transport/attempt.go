package transport

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// attempt is one model call of an exchange.
type attempt struct {
	exchange *exchange
	n        int // its index in exchange.attempts
	req      *middleware.Request

	resp          *http.Response     // of the provider
	inflate       bool               // the body was compressed, so its headers no longer apply
	body          countedReader      // decompressed
	raw           []byte             // bytes of the body that were read and not written to stream
	passedBody    io.ReadCloser      // the whole body of a response that is passed on; guarded by exchange.mu
	failure       error              // a *networkError, a *passedError or the provider's *middleware.ModelError; guarded by exchange.mu
	native        *middleware.Native // of the decoded response; guarded by exchange.mu
	stream        wire.Stream
	streaming     sync.Mutex              // locked while stream reads, and not during a Read of the body
	awaitsBody    bool                    // during a Read of the body; guarded by streaming
	eventPassed   atomic.Bool             // the chain has passed an event on since the last call of show
	begun         bool                    // a byte of the body other than white space has arrived; guarded by exchange.mu
	passedThrough bool                    // the body was passed on unread, to its end
	bodyErr       error                   // with which that body ended, or nil
	err           error                   // of the model call; read it after done is closed
	done          chan struct{}           // closed when the model call has returned
	isReask       bool                    // an attempt before this one has a response
	firstByte     *time.Timer             // ends the attempt if no byte of the body arrives; nil means no limit
	own           context.Context         // of the request
	cancel        context.CancelCauseFunc // of own
	untie         func() bool             // ends the cancellation by the chain's context
}

// model is the innermost ModelCall of the chain.
func model(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	x, ok := ctx.Value(exchangeKey{}).(*exchange)
	if !ok {
		return nil, errOutside
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if x.liveBroke() {
		return nil, errShown
	}
	return x.attempt(ctx, req)
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
	if a.n > 0 { // the first body is the client's
		if err := x.hold.add(int64(len(body)), 0, false); err != nil {
			return nil, err
		}
	}
	// The client may read a response that is passed on after the chain has ended, so
	// the request does not have the context of the chain.
	own, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	a.own, a.cancel = own, cancel
	a.untie = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	if limit := x.t.options.ReaskTimeout; limit != Off && a.isReask {
		a.firstByte = time.AfterFunc(limit, func() { cancel(errFirstByte) })
		defer a.firstByte.Stop()
	}
	start := time.Now()
	resp, err := x.send(ctx, a, body)
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

// encode returns the body of req, with the ids under which the provider stores responses. If a
// middleware built req without a Native, req asks for a stream if the client does.
func (x *exchange) encode(req *middleware.Request) ([]byte, error) {
	if req.Native == nil || req.Native.Dialect != x.codec.Dialect() {
		fresh := *req
		if fresh.Sink = nil; x.streams {
			fresh.Sink = func(middleware.Event) error { return nil }
		}
		req = &fresh
	}
	body, err := x.body, error(nil)
	if req.Native != x.request.Native || !wire.Unchanged(req) {
		body, err = x.codec.EncodeRequest(req)
	}
	if err != nil || x.t.ids.empty() {
		return body, err
	}
	return x.codec.RenamePrevious(body, x.t.ids.storedID), nil
}

// newAttempt returns an attempt, or nil if MaxModelCalls allows no more of them.
func (x *exchange) newAttempt(req *middleware.Request) *attempt {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.callsUsedUp() {
		return nil
	}
	a := &attempt{exchange: x, n: len(x.attempts), req: req, isReask: x.answered, done: make(chan struct{})}
	x.attempts = append(x.attempts, a)
	return a
}

// callsUsedUp reports whether MaxModelCalls allows no more attempts. The caller holds x.mu.
func (x *exchange) callsUsedUp() bool {
	most := x.t.options.MaxModelCalls
	return most != middleware.Unlimited && len(x.attempts) >= most
}

// liveBroke reports whether the live response broke off after the client got text of it. No
// other response can replace it then, so there is no further attempt.
func (x *exchange) liveBroke() bool {
	x.mu.Lock()
	live, partSent := x.live, x.partSent
	x.mu.Unlock()
	if !partSent {
		return false
	}
	select {
	case <-live.done:
		return live.cutShort() != nil
	default:
		return false
	}
}

// cutShort returns the error with which the response broke off, or nil. A response whose call
// the provider refused did not break off: the text before the call is complete.
func (a *attempt) cutShort() error {
	if errors.Is(a.err, middleware.ErrInvalidToolCall) {
		return nil
	}
	return a.err
}

// send sends a request with the context of a, and reads the response.
func (x *exchange) send(ctx context.Context, a *attempt, body []byte) (*middleware.Response, error) {
	resp, err := x.next(x.httpRequest(a.own, a.req, body))
	if err == nil && resp == nil {
		err = errors.New("transport: neither a response nor an error")
	}
	if err != nil {
		return nil, x.networkFailure(ctx, a, err)
	}
	a.resp = resp
	if a.firstByte != nil && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body = begunBody{resp.Body, a.firstByte}
	}
	answer, err := x.read(ctx, a)
	if a.passedBody == nil && resp.Body != nil {
		_ = resp.Body.Close()
	}
	return answer, err
}

// begunBody stops a timer at its first byte.
type begunBody struct {
	io.ReadCloser
	timer *time.Timer
}

func (b begunBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.timer.Stop()
	}
	return n, err
}

// httpRequest returns a clone of the client's request with the header of req and with body.
func (x *exchange) httpRequest(ctx context.Context, req *middleware.Request, body []byte) *http.Request {
	changed := !bytes.Equal(body, x.body)
	if !changed {
		body = x.body // so that an open stream keeps one copy
	}
	out := x.req.Clone(ctx)
	for k, values := range req.Header {
		out.Header[http.CanonicalHeaderKey(k)] = slices.Clone(values)
	}
	x.mu.Lock()
	if x.first == nil {
		x.first = body
	}
	isOther := !bytes.Equal(x.first, body)
	x.mu.Unlock()
	if isOther { // an idempotency key belongs to one body
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

// decodableEncodings returns the encodings of an Accept-Encoding that this package can decode,
// or "".
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

// networkFailure ends a with err as a network error, which also wraps the error of ctx.
func (x *exchange) networkFailure(ctx context.Context, a *attempt, err error) error {
	if errors.Is(err, ErrMemory) {
		return err
	}
	if context.Cause(a.own) == errFirstByte {
		err = errFirstByte
	}
	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return a.fail(&networkError{err, withoutQuery(err.Error(), x.req)})
}

// read reads the response of an attempt.
func (x *exchange) read(ctx context.Context, a *attempt) (*middleware.Response, error) {
	if isError(a.resp.StatusCode) {
		return nil, x.readRefusal(ctx, a)
	}
	if err := x.redirectError(a.resp); err != nil {
		return nil, err
	}
	if why := emptyReason(a.resp); why != "" {
		return nil, a.passOn(errors.New(why))
	}
	a.body = countedReader{Reader: a.resp.Body, hold: x.hold}
	body := io.Reader(&a.body)
	if why := x.unsupported(a.resp); why != nil {
		return nil, x.unreadable(ctx, a, body, why)
	}
	if encoding(a.resp) == "gzip" {
		z, err := gzip.NewReader(a.resp.Body)
		if err != nil {
			return nil, x.networkFailure(ctx, a, err)
		}
		a.body.Reader, a.inflate = z, true
	}
	if a.resp.StatusCode >= 300 { // the Go SDKs of OpenAI and Anthropic take every status below 400 for an answer
		return nil, x.unreadable(ctx, a, body, errors.New("status "+http.StatusText(a.resp.StatusCode)))
	}
	return x.readAnswer(ctx, a, body)
}

// redirectError returns the error for a redirect that would lead a model call past the
// Transport, or nil. A Handler refuses every redirect, because its client would follow it. For
// other clients, 307 and 308 pass: net/http sends the model call through the Transport again.
func (x *exchange) redirectError(resp *http.Response) error {
	location := resp.Header.Get("Location")
	switch code := resp.StatusCode; {
	case location == "":
		return nil
	case code == http.StatusTemporaryRedirect || code == http.StatusPermanentRedirect:
		if !isProxied(x.req) {
			return nil
		}
	case code < http.StatusMovedPermanently || code > http.StatusSeeOther:
		return nil
	}
	host := "an address that cannot be read"
	if to, err := x.req.URL.Parse(location); err == nil {
		host = fmt.Sprintf("%q", clip(to.Host, 255))
	}
	return &ownError{"redirect", fmt.Sprintf("transport: the provider redirects model calls to %s (status %d), where their answers would not be validated; set the upstream, or the base URL of the client, to the address that answers", host, resp.StatusCode)}
}

// readRefusal reads a response with an error status.
func (x *exchange) readRefusal(ctx context.Context, a *attempt) error {
	if a.resp.Body != nil {
		raw, err := io.ReadAll(io.LimitReader(&countedReader{Reader: a.resp.Body, hold: x.hold}, x.t.options.MaxBody+1))
		if err != nil {
			return x.networkFailure(ctx, a, err)
		}
		a.raw = raw
		if int64(len(raw)) > x.t.options.MaxBody {
			return a.passOn(errors.New("an error of more than MaxBody"))
		}
	}
	return a.fail(x.codec.DecodeError(a.resp.StatusCode, a.resp.Header, decompressed(a.resp, a.raw)))
}

// decompressed returns the body of an error without its compression, at most 1 MiB of it.
func decompressed(resp *http.Response, raw []byte) []byte {
	if encoding(resp) != "gzip" {
		return raw
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return raw
	}
	b, _ := io.ReadAll(io.LimitReader(z, 1<<20))
	return b
}

// readAnswer decodes a response with the codec, and shows the client the safe part of it.
func (x *exchange) readAnswer(ctx context.Context, a *attempt, body io.Reader) (*middleware.Response, error) {
	sink := a.req.Sink
	if x.ready != nil {
		x.events.reset()
		sink = x.events.track(sink)
	}
	a.stream = x.codec.NewStream(a.req, sink)
	x.startKeepAlive(a)
	buf := proxy.NewBuffer(a.resp.ContentLength)
	defer buf.Free()
	left := x.t.options.MaxBody
	var grace *time.Timer // ends the request after endGrace
	a.streaming.Lock()
	defer a.streaming.Unlock()
	x.reading.Store(a)
	for {
		n, readErr := x.readMore(a, body, buf.Bytes())
		p := buf.Bytes()[:n]
		if left -= int64(n); left < 0 {
			a.raw = bytes.Clone(p)
			return nil, x.unreadable(ctx, a, body, fmt.Errorf("%w: more than MaxBody", wire.ErrShape))
		}
		if n > 0 {
			if _, err := a.stream.Write(p); err != nil {
				if !errors.Is(err, wire.ErrShape) {
					return nil, err // the error of the sink
				}
				_, _ = a.stream.Close() // a later response may continue the bytes that the client got
				return nil, x.unreadable(ctx, a, body, err)
			}
			if s, ok := a.stream.(interface{ Open() int }); ok && s.Open() < n {
				x.hold.parsed(p[n-s.Open():])
			}
			x.noteBegun(a, p)
			x.show(a, buf.IsFull(n) || a.stream.Ended())
		}
		if grace == nil && a.stream.Ended() {
			grace = time.AfterFunc(endGrace, func() { a.cancel(nil) })
			defer grace.Stop()
		}
		if readErr == nil {
			readErr = ctx.Err() // a body need not report that the context ended
		}
		if readErr != nil {
			return x.closeAnswer(ctx, a, body, readErr)
		}
		buf.Next(n)
	}
}

// endGrace is how long a server may keep the connection open after the end of its stream. A
// connection can be reused only if it was read to its end. SDKs do not wait at all.
const endGrace = time.Second

// readMore reads from the body. Events that the chain passes on during the Read are shown. The
// caller holds a.streaming.
func (x *exchange) readMore(a *attempt, body io.Reader, buf []byte) (int, error) {
	a.awaitsBody = true
	a.streaming.Unlock()
	defer func() {
		a.streaming.Lock()
		a.awaitsBody = false
	}()
	x.showPassed(a)
	return body.Read(buf)
}

// noteBegun records that the body of a has begun. White space alone does not count: a stream or
// one object may follow it.
func (x *exchange) noteBegun(a *attempt, p []byte) {
	if a.begun || len(bytes.TrimLeft(p, " \t\r\n")) == 0 {
		return
	}
	x.mu.Lock()
	a.begun = true
	x.mu.Unlock()
}

// closeAnswer returns the decoded response. A network error after its end is ignored. One between
// the finish reason and the mark at the end of a stream is too: the client gets a whole stream.
func (x *exchange) closeAnswer(ctx context.Context, a *attempt, body io.Reader, readErr error) (*middleware.Response, error) {
	if errors.Is(readErr, ErrMemory) {
		return nil, readErr
	}
	if s, ok := a.stream.(interface{ BrokeOff() }); ok && readErr != io.EOF && !a.stream.Ended() {
		s.BrokeOff()
	}
	resp, err := a.stream.Close()
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	var refusal *middleware.ModelError
	switch {
	case err == nil:
		x.mu.Lock()
		a.native, x.answered = resp.Native, true
		x.mu.Unlock()
		return resp, nil
	case errors.As(err, &refusal) && refusal.Response != nil:
		x.mu.Lock()
		a.native, x.answered = refusal.Response.Native, true
		x.mu.Unlock()
		return nil, err
	case errors.As(err, &refusal):
		a.fail(refusal)
		return nil, err
	case readErr != io.EOF:
		return nil, x.networkFailure(ctx, a, readErr)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, x.networkFailure(ctx, a, err)
	}
	if !errors.Is(err, wire.ErrShape) {
		return nil, err
	}
	return nil, x.unreadable(ctx, a, body, err)
}

// receivedText returns the bytes of the body that were read.
func (a *attempt) receivedText() string {
	switch {
	case a.stream == nil:
		return string(a.raw)
	case len(a.raw) == 0:
		return a.stream.Text()
	}
	return a.stream.Text() + string(a.raw)
}

// unsent returns the bytes of a stream that were read and that the client did not get.
func (a *attempt) unsent() []byte { return []byte(a.stream.Pending() + string(a.raw)) }

// passOn ends a with the error for a response that the client gets unchanged, from its first
// byte. The client's context then cancels the response.
func (a *attempt) passOn(err error) error {
	a.exchange.mu.Lock()
	if a.exchange.latest == a {
		a.exchange.latest = nil
	}
	a.exchange.mu.Unlock()
	a.untie()
	stop := context.AfterFunc(a.exchange.req.Context(), func() { a.cancel(context.Cause(a.exchange.req.Context())) })
	body := a.resp.Body
	if body == nil {
		body = http.NoBody
	}
	rest := io.Reader(body)
	if text := a.receivedText(); text != "" {
		rest = io.MultiReader(strings.NewReader(text), body)
	}
	whole := readCloser{rest, closer(func() error {
		stop()
		a.cancel(nil)
		return body.Close()
	})}
	a.exchange.mu.Lock()
	a.passedBody = whole
	closed := a.exchange.closed
	a.exchange.mu.Unlock()
	if closed {
		_ = whole.Close()
	}
	return a.fail(&passedError{err})
}

type closer func() error

func (c closer) Close() error { return c() }

// fail records and returns the error with which a ended.
func (a *attempt) fail(err error) error {
	a.exchange.mu.Lock()
	defer a.exchange.mu.Unlock()
	a.failure = err
	return err
}
