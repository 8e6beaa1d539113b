package transport

import (
	"context"
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

// step is one request of the client on its way through the chain.
type step struct {
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

	ctx    context.Context // of the chain; done at the end of the step
	cancel context.CancelFunc
	ready  chan outcome // of a response that is returned; nil if it is not a stream
	watch  watch
	heeded atomic.Pointer[attempt] // the latest whose body is read

	mu        sync.Mutex // guards the fields below and the attempts' fields marked so
	attempts  []*attempt
	answered  bool        // an attempt has a response: later ones are not streamed
	over      bool        // the chain has ended
	closed    bool        // the step has ended
	latest    *attempt    // the last attempt with a good status whose body is read
	live      *attempt    // the attempt whose bytes the client got first
	shown     shown       // the client's body, once live is set
	shownText string      // of live, as the chain passed it on
	spoken    bool        // more of live was sent than a keep-alive needs
	mute      bool        // the response is passed on unread, so it gets no keep-alive
	timer     *time.Timer // of the keep-alive
	heard     time.Time   // when the client got bytes last
	first     []byte      // the body of the first model call
	ended     ended       // values for the trailers of a live response
	began     time.Time
	upstream  time.Duration // spent on model calls
	repaired  int           // repaired calls of the response
	rescued   int           // calls of the response that the model had written as text
	healed    []string      // the rules by which a refused request was changed
	panicked  *Panic        // of a keep-alive
}

// outcome is what the client gets.
type outcome struct {
	resp     *http.Response
	err      error
	panicked bool
	value    any // of the panic
}

type stepKey struct{}

// run sends the request through the chain. A Handler's client gets a stream while
// the chain runs. For any other client that asks for a stream, the chain runs in a
// goroutine, which outlives run if bytes are streamed before the chain has returned.
func (s *step) run(asked *middleware.Request) (*http.Response, error) {
	s.tools, asked.Client = len(asked.Tools) > 0, s.t.clientOf(s.req)
	s.ctx, s.cancel = context.WithCancel(context.WithValue(s.req.Context(), stepKey{}, s))
	if !s.streams {
		var kept *attempt
		ended := false
		defer func() {
			if !ended {
				s.call.end(nil, errGone, 0)
			}
			s.close(kept)
		}()
		o, passed := s.whole(s.ask(asked))
		ended, kept = true, passed
		s.describe(o.resp)
		return o.resp, o.err
	}
	s.ready = make(chan outcome, 1)
	asked.Sink = s.arrived
	if s.client == nil {
		go s.stream(asked)
	} else if s.stream(asked); s.live != nil {
		return nil, s.sent()
	}
	o := <-s.ready
	if o.panicked {
		panic(o.value)
	}
	return o.resp, o.err
}

// ask runs the chain.
func (s *step) ask(asked *middleware.Request) (*middleware.Response, error) {
	resp, err := s.t.call(s.ctx, asked)
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	s.mu.Lock()
	if s.panicked != nil {
		resp, err = nil, s.panicked
	}
	s.repaired = repairedCalls(resp)
	if resp != nil {
		s.rescued = rescue.Calls(resp.Report)
	}
	s.healed = middleware.ReportOf(resp, err).Healed()
	upstream := s.upstream
	s.mu.Unlock()
	s.call.end(resp, err, upstream)
	return resp, err
}

// stream runs the chain for a client that asks for a stream. If no byte was
// streamed in the end, s.ready has the outcome.
func (s *step) stream(asked *middleware.Request) {
	var kept *attempt
	ended := false
	defer func() {
		if !ended {
			s.broken(recover())
		}
		s.close(kept)
	}()
	resp, err := s.ask(asked)
	if s.decided() {
		s.finish(resp, err)
		ended = true
		return
	}
	o, passed := s.whole(resp, err)
	ended, kept = true, passed
	s.describe(o.resp)
	s.ready <- o
}

// broken ends a step whose goroutine panicked, or ended if value is nil. The
// codec may panic again while it writes that error: then the client's body
// ends with the second panic.
func (s *step) broken(value any) {
	err := errGone
	if value != nil {
		err = &Panic{Value: value, Stack: debug.Stack()}
	}
	defer func() {
		switch again := recover(); {
		case again == nil:
		case s.decided():
			s.shown.end(nil, err)
		default:
			s.ready <- outcome{panicked: true, value: again}
		}
	}()
	s.call.end(nil, err, 0)
	switch {
	case s.decided():
		s.finish(nil, err)
	case value != nil:
		s.ready <- outcome{panicked: true, value: value}
	default:
		o, _ := s.whole(nil, err)
		s.ready <- o
	}
}

// decided records that the chain has returned, so no response goes live from
// then on. It reports whether one is live.
func (s *step) decided() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	return s.live != nil
}

// close releases everything but kept, whose body the client reads.
func (s *step) close(kept *attempt) {
	s.cancel()
	var rests []io.Closer
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	for _, a := range s.attempts {
		if a != kept && a.rest != nil {
			rests = append(rests, a.rest)
		}
	}
	s.mu.Unlock()
	for _, r := range rests {
		_ = r.Close()
	}
}
