package transport

import (
	"context"
	"crypto/sha3"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// exchange is one request of a client on its way through the chain, with its response.
type exchange struct {
	t       *Transport
	codec   wire.Codec
	req     *http.Request // of the client; it is not modified
	url     *url.URL      // the URL whose path belongs to the format
	body    []byte        // of req
	request *middleware.Request
	next    next
	client  *proxy.Client // the client of a Handler; nil means that the response is returned
	call    *Call
	hold    *hold
	tools   bool // the client offers tools
	streams bool // the client asks for a stream

	ctx     context.Context // of the chain; canceled at the end of the exchange
	cancel  context.CancelFunc
	ready   chan outcome // gets a response of which no byte was streamed; nil if the client asks for no stream
	events  eventTracker
	reading atomic.Pointer[attempt] // the latest attempt whose body is read

	mu          sync.Mutex // guards the fields below, and fields of the attempts
	attempts    []*attempt
	answered    bool        // an attempt has a response: later ones are not streamed
	chainEnded  bool        // the chain has returned
	closed      bool        // the exchange has ended
	latest      *attempt    // the latest attempt with a good status whose body is read
	live        *attempt    // the attempt whose bytes the client got first
	out         bodyWriter  // the client's body; set with live
	shownText   string      // the text of live that the client got
	partSent    bool        // the client got more of live than a keep-alive needs
	noKeepAlive bool        // the response is passed on unread
	timer       *time.Timer // of the keep-alive
	lastSent    time.Time   // when the client last got bytes
	first       []byte      // the body of the first model call
	status      string      // for the trailers of a live response
	errorCode   string      // likewise
	began       time.Time
	upstream    time.Duration    // spent on model calls
	repaired    int              // repaired calls of the response
	rescued     int              // calls of the response that package rescue read from its text
	healed      []string         // rules of package heal by which a refused request was changed
	usage       middleware.Usage // the sum over the attempts
	panicked    *Panic           // of a keep-alive
}

type exchangeKey struct{}

// newExchange returns the exchange of a model call.
func (t *Transport) newExchange(in *received, next next, client *proxy.Client) *exchange {
	x := &exchange{
		t: t, codec: in.codec, req: in.req, url: in.formatURL, body: in.body, request: in.request, next: next, hold: &in.hold, began: time.Now(),
		tools: len(in.request.Tools) > 0, streams: in.streams,
	}
	if client.Direct() {
		x.client = client
	}
	x.ctx, x.cancel = context.WithCancel(context.WithValue(in.req.Context(), exchangeKey{}, x))
	x.hold.request = false
	if x.streams {
		x.ready, x.request.Sink = make(chan outcome, 1), x.arrived
	}
	call, watched := in.req.Context().Value(callKey{}).(*Call)
	if watched { // the SDKs of OpenAI and Anthropic number their attempts in this header
		call.begin(x.request, in.req.Header.Get("X-Stainless-Retry-Count") == "0")
	} else {
		call = &Call{}
	}
	x.call = call
	return x
}

// clientOf returns middleware.Request.Client: a keyed hash of the client's name, the
// provider's host and the client's credentials. The key is random and belongs to the
// Transport, so the hash does not reveal a credential, and differs between Transports. With
// SHA-3, a key in front of the text is as good as HMAC. Source: Keccak's authors, "Strengths of
// Keccak", MAC computation.
func (t *Transport) clientOf(req *http.Request) string {
	text := append(append(make([]byte, 0, 512), t.secret[:]...), t.options.Client(req)...)
	text = append(append(text, 0), req.URL.Host...)
	if text = append(text, 0); req.URL.RawQuery != "" {
		text = append(text, req.URL.Query().Get("key")...)
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Toolmend-Key"} {
		text = append(append(text, 0), req.Header.Get(name)...)
	}
	sum := sha3.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// run sends the request through the chain. The client of a Handler gets a stream while the
// chain runs. For every other client that asks for a stream, the chain runs in a goroutine. The
// goroutine outlives run if the client gets bytes before the chain has returned.
func (x *exchange) run() (*http.Response, error) {
	switch {
	case !x.streams:
		return x.runWhole()
	case x.client == nil:
		go x.runStream()
	default:
		if x.runStream(); x.live != nil {
			return nil, x.endDirect()
		}
	}
	o := <-x.ready
	if o.panicked {
		panic(o.value)
	}
	return o.resp, o.err
}

// outcome is the result of an exchange of which no byte was streamed.
type outcome struct {
	resp     *http.Response
	err      error
	panicked bool
	value    any // of the panic
}

// runWhole runs the chain for a client that asks for no stream.
func (x *exchange) runWhole() (*http.Response, error) {
	var kept *attempt
	returned := false
	defer func() {
		if !returned {
			x.call.end(nil, errGone, 0)
		}
		x.close(kept)
	}()
	o, passed := x.respond(x.runChain())
	returned, kept = true, passed
	x.addFigures(o.resp)
	return o.resp, o.err
}

// runStream runs the chain for a client that asks for a stream. If the client gets no byte
// before the chain has returned, the outcome goes to x.ready.
func (x *exchange) runStream() {
	var kept *attempt
	returned := false
	defer func() {
		if !returned {
			x.recoverStream(recover())
		}
		x.close(kept)
	}()
	resp, err := x.runChain()
	if x.endChain() {
		x.finish(resp, err)
		returned = true
		return
	}
	o, passed := x.respond(resp, err)
	returned, kept = true, passed
	x.addFigures(o.resp)
	x.ready <- o
}

// runChain runs the chain and records its result. The usage of the response that it returns is
// that of the attempt that the client gets, and not the sum: clients derive the size of their
// context from it.
func (x *exchange) runChain() (*middleware.Response, error) {
	resp, err := x.t.call(x.ctx, x.request)
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	if e, ok := errors.AsType[*middleware.ModelError](err); ok && e.Response != nil && codeOf(err) == middlewareError { // no middleware has raised it
		passed := *e.Response
		passed.Report = middleware.ReportOf(nil, err)
		if passed.Report.Final = len(passed.Report.Attempts) - 1; !x.tools {
			passed.Report.Status = middleware.NoCalls
		}
		resp, err = &passed, nil
	}
	x.mu.Lock()
	if x.panicked != nil {
		resp, err = nil, x.panicked
	}
	x.repaired = repairedCalls(resp)
	if resp != nil {
		x.rescued = resp.Report.Rescued()
	}
	r := middleware.ReportOf(resp, err)
	x.healed, x.usage = r.Healed(), r.Usage()
	upstream := x.upstream
	x.mu.Unlock()
	x.call.end(resp, err, upstream)
	if resp != nil && r.Final >= 0 && r.Final < len(r.Attempts) && resp.Usage != r.Attempts[r.Final].Usage {
		own := *resp
		own.Usage, resp = r.Attempts[r.Final].Usage, &own
	}
	return resp, err
}

// endChain records that the chain has returned: from now on no response goes live. It reports
// whether one is live.
func (x *exchange) endChain() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.chainEnded = true
	return x.live != nil
}

// recoverStream ends an exchange whose goroutine panicked with value. nil means that the
// goroutine ended. If the codec panics while it writes the error, a live body ends with the
// error, and every other client gets the second panic.
func (x *exchange) recoverStream(value any) {
	err := errGone
	if value != nil {
		err = &Panic{Value: value, Stack: debug.Stack()}
	}
	defer func() {
		switch again := recover(); {
		case again == nil:
		case x.endChain():
			x.out.end(nil, err)
		default:
			x.ready <- outcome{panicked: true, value: again}
		}
	}()
	x.call.end(nil, err, 0)
	switch {
	case x.endChain():
		x.finish(nil, err)
	case value != nil:
		x.ready <- outcome{panicked: true, value: value}
	default:
		o, _ := x.respond(nil, err)
		x.ready <- o
	}
}

// close releases everything but kept, whose body the client reads.
func (x *exchange) close(kept *attempt) {
	x.cancel()
	var rests []io.Closer
	x.mu.Lock()
	x.closed = true
	if x.timer != nil {
		x.timer.Stop()
	}
	for _, a := range x.attempts {
		if a != kept && a.passedBody != nil {
			rests = append(rests, a.passedBody)
		}
	}
	x.mu.Unlock()
	for _, r := range rests {
		_ = r.Close()
	}
	x.hold.end(x.req)
}
