package transport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/wire"
)

// exchange is one request of the client on its way through the chain.
type exchange struct {
	t       *Transport
	codec   wire.Codec
	req     *http.Request // the client's; it is not modified
	url     *url.URL      // whose path says the format
	body    []byte
	next    next
	client  *proxy.Client // of a Handler; nil means that the response is returned
	call    *Call
	tools   bool // the client offers tools
	streams bool // the client asks for a stream

	ctx     context.Context // of the chain; done at the end of the step
	cancel  context.CancelFunc
	ready   chan outcome // of a response that is returned; nil if it is not a stream
	events  eventTracker
	reading atomic.Pointer[attempt] // the latest whose body is read

	mu          sync.Mutex // guards the fields below and the attempts' fields marked so
	attempts    []*attempt
	answered    bool          // an attempt has a response: later ones are not streamed
	chainEnded  bool          // the chain has ended
	closed      bool          // the step has ended
	latest      *attempt      // the last attempt with a good status whose body is read
	live        *attempt      // the attempt whose bytes the client got first
	out         bodyWriter    // the client's body, once live is set
	shownText   string        // of live, as the chain passed it on
	textSent    bool          // more of live was sent than a keep-alive needs
	noKeepAlive bool          // the response is passed on unread, so it gets no keep-alive
	timer       *time.Timer   // of the keep-alive
	lastSent    time.Time     // when the client got bytes last
	first       []byte        // the body of the first model call
	trailer     trailerValues // values for the trailers of a live response
	began       time.Time
	upstream    time.Duration // spent on model calls
	repaired    int           // repaired calls of the response
	rescued     int           // calls of the response that the model had written as text
	healed      []string      // the rules by which a refused request was changed
	panicked    *Panic        // of a keep-alive
}

type exchangeKey struct{}

// newExchange prepares one request of the client.
func (t *Transport) newExchange(in *received, next next, client *proxy.Client) *exchange {
	call, watched := in.req.Context().Value(callKey{}).(*Call)
	if watched { // OpenAI's and Anthropic's SDKs number their tries in this header
		call.begin(in.request, in.req.Header.Get("X-Stainless-Retry-Count") == "0")
	} else {
		call = &Call{}
	}
	if !client.Direct() {
		client = nil
	}
	return &exchange{t: t, codec: in.codec, req: in.req, url: in.formatURL, body: in.body, next: next, client: client, call: call, began: time.Now(), streams: in.codec.WantsStream(in.formatURL.Path, in.body)}
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

// run sends the request through the chain. A Handler's client gets a stream while
// the chain runs. For any other client that asks for a stream, the chain runs in a
// goroutine, which outlives run if bytes are streamed before the chain has returned.
func (x *exchange) run(request *middleware.Request) (*http.Response, error) {
	x.tools, request.Client = len(request.Tools) > 0, x.t.clientOf(x.req)
	x.ctx, x.cancel = context.WithCancel(context.WithValue(x.req.Context(), exchangeKey{}, x))
	if !x.streams {
		var kept *attempt
		ended := false
		defer func() {
			if !ended {
				x.call.end(nil, errGone, 0)
			}
			x.close(kept)
		}()
		o, passed := x.respond(x.runChain(request))
		ended, kept = true, passed
		x.addFigures(o.resp)
		return o.resp, o.err
	}
	x.ready = make(chan outcome, 1)
	request.Sink = x.arrived
	if x.client == nil {
		go x.runStream(request)
	} else if x.runStream(request); x.live != nil {
		return nil, x.endDirect()
	}
	o := <-x.ready
	if o.panicked {
		panic(o.value)
	}
	return o.resp, o.err
}

// outcome is what the client gets.
type outcome struct {
	resp     *http.Response
	err      error
	panicked bool
	value    any // of the panic
}

// runStream runs the chain for a client that asks for a stream. If no byte was
// streamed in the end, s.ready has the outcome.
func (x *exchange) runStream(request *middleware.Request) {
	var kept *attempt
	ended := false
	defer func() {
		if !ended {
			x.recoverStream(recover())
		}
		x.close(kept)
	}()
	resp, err := x.runChain(request)
	if x.endChain() {
		x.finish(resp, err)
		ended = true
		return
	}
	o, passed := x.respond(resp, err)
	ended, kept = true, passed
	x.addFigures(o.resp)
	x.ready <- o
}

// runChain runs the chain.
func (x *exchange) runChain(request *middleware.Request) (*middleware.Response, error) {
	resp, err := x.t.call(x.ctx, request)
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	x.mu.Lock()
	if x.panicked != nil {
		resp, err = nil, x.panicked
	}
	x.repaired = repairedCalls(resp)
	if resp != nil {
		x.rescued = rescue.Calls(resp.Report)
	}
	x.healed = middleware.ReportOf(resp, err).Healed()
	upstream := x.upstream
	x.mu.Unlock()
	x.call.end(resp, err, upstream)
	return resp, err
}

// endChain records that the chain has returned, so no response goes live from
// then on. It reports whether one is live.
func (x *exchange) endChain() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.chainEnded = true
	return x.live != nil
}

// recoverStream ends a step whose goroutine panicked, or ended if value is nil. The
// codec may panic again while it writes that error: then the client's body
// ends with the second panic.
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
}
