package transport

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// show sends the client the safe part of a response that is being read. Only the first response
// of an exchange is streamed. If the request offers tools, streaming begins with the first text
// that the chain passes on, or with the first event of a tool that the provider runs, whichever
// comes first: a response that is only tool calls can then still be replaced by another one, or
// by an error with its own status. more means that the next bytes of the response are there
// already.
func (x *exchange) show(a *attempt, more bool) {
	if x.ready == nil || a.req.Sink == nil || x.t.options.Hold {
		return
	}
	if a.stream.Safe() <= a.stream.Taken() || !x.events.allArrived() {
		return
	}
	begin, shown := x.showSafe(a, more)
	if begin {
		runtime.Gosched() // let the client read the first text before more is read, even if all processors are busy
	}
	if shown {
		x.out.wait()
	}
}

// showSafe sends the client the safe bytes of a, if they may be sent. shown reports whether it
// did, and begin whether the response began with them.
func (x *exchange) showSafe(a *attempt, more bool) (begin, shown bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.chainEnded || x.answered && !x.partSent || x.live != nil && x.live != a {
		return false, false
	}
	x.shownText = x.events.passedText()
	b := a.stream.Take() // before goLive: if the codec panics, the response must not be live
	if begin = x.live == nil; begin {
		x.goLive(a)
	}
	x.partSent = true
	x.emit(b, more && !begin)
	return begin, true
}

// goLive begins the client's response with the headers of a. The caller holds x.mu, and calls
// emit with the first bytes of a.
func (x *exchange) goLive(a *attempt) {
	x.live = a
	r := a.clientHeader()
	r.Header.Del("Content-Length")
	r.ContentLength, r.TransferEncoding = -1, nil
	r.Trailer = x.trailerNames()
	if x.client != nil {
		x.client.Begin(r)
		x.out = &directWriter{client: x.client, ctx: x.req.Context(), cancel: x.cancel}
		return
	}
	p := newPipe(x.req.Context(), x.cancel)
	x.out = p
	r.Body = &trailerBody{p, x, r.Trailer}
	x.ready <- outcome{resp: r}
}

// emit sends bytes to the client; see bodyWriter. The caller holds x.mu, so the bytes keep their order.
func (x *exchange) emit(b []byte, more bool) {
	x.out.put(b, more)
	x.lastSent = time.Now()
}

// arrived is the outermost sink. If a middleware passes an event on during a Read of the body,
// the client gets it at once.
func (x *exchange) arrived(e middleware.Event) error {
	x.events.arrived(e)
	if a := x.reading.Load(); a != nil {
		a.eventPassed.Store(true)
		x.showPassed(a)
	}
	return nil
}

// showPassed shows the events that the chain passes on during a Read of the body. At any other
// time the reader of the body calls show or showPassed itself.
func (x *exchange) showPassed(a *attempt) {
	for a.eventPassed.Load() && a.streaming.TryLock() {
		if a.eventPassed.Store(false); a.awaitsBody {
			x.show(a, false)
		}
		a.streaming.Unlock()
	}
}

// eventTracker compares the events of a stream with the events that arrive at the outermost
// sink. The bytes of a stream may be sent only if all of its events arrive there unchanged. A
// chain that merges or changes events is treated like a chain that holds them back.
type eventTracker struct {
	mu      sync.Mutex
	pending []middleware.Event // emitted by the stream, and not yet arrived
	changed bool               // an event has arrived that the stream did not emit
	passed  strings.Builder    // the texts that have arrived
}

// track returns a sink for one response that records the events which the stream emits.
func (w *eventTracker) track(sink middleware.Sink) middleware.Sink {
	if sink == nil {
		return nil
	}
	return func(e middleware.Event) error {
		w.mu.Lock()
		if !w.changed {
			w.pending = append(w.pending, e)
		}
		w.mu.Unlock()
		return sink(e)
	}
}

// reset forgets an earlier response.
func (w *eventTracker) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending, w.changed = nil, false
	w.passed.Reset()
}

// arrived records an event that has arrived at the outermost sink.
func (w *eventTracker) arrived(e middleware.Event) {
	if e.Kind != middleware.EventText && e.Kind != middleware.EventReasoning {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.pending) == 0 || w.pending[0].Kind != e.Kind || w.pending[0].Text != e.Text {
		w.pending, w.changed = nil, true
		return
	}
	if e.Kind == middleware.EventText {
		w.passed.WriteString(e.Text)
	}
	if len(w.pending) == 1 {
		w.pending = w.pending[:0] // reuse the memory
		return
	}
	w.pending = w.pending[1:]
}

// passedText returns the text that has arrived.
func (w *eventTracker) passedText() string {
	return locked(&w.mu, func() string { return w.passed.String() })
}

// allArrived reports whether the chain has passed on all emitted events unchanged.
func (w *eventTracker) allArrived() bool {
	return locked(&w.mu, func() bool { return len(w.pending) == 0 && !w.changed })
}

// finish ends a response that is live, after the chain has returned.
func (x *exchange) finish(resp *middleware.Response, err error) {
	if broke := x.awaitLive(); broke != nil {
		err = broke
	}
	if err == nil {
		err = x.finishAnswer(resp)
	}
	if err != nil {
		x.finishError(err)
	}
}

// awaitLive waits for the end of the live attempt. It returns the reason why no other response
// can follow the text that the client got, or nil.
func (x *exchange) awaitLive() error {
	select {
	case <-x.live.done:
	default: // a chain that makes two calls concurrently has returned the other response
		x.cancel()
		<-x.live.done
		if x.partSent {
			return errOther
		}
	}
	if x.partSent && x.panicked == nil {
		return x.live.cutShort()
	}
	return nil
}

// finishAnswer ends a live response with the rest of resp. After an error, nothing was sent.
func (x *exchange) finishAnswer(resp *middleware.Response) error {
	rest, err := x.rest(x.live, resp)
	if err != nil {
		return err
	}
	status := statusOf(resp)
	x.writeTrailers(status, "")
	if status == invalid {
		rest = append(rest, x.live.stream.Comment(comment)...)
	}
	x.out.end(rest, nil)
	return nil
}

// finishError ends a live response with an error.
func (x *exchange) finishError(err error) {
	x.call.setError(err)
	a := x.live
	last, failure := x.failedAttempt(err)
	network, isNetwork := failure.(*networkError)
	_, isRefusal := failure.(*middleware.ModelError)
	switch {
	case isNetwork && (last == a || a.cutShort() != nil): // the response of a is not complete
		x.out.end(nil, network.err)
	case last == a && a.passedThrough:
		x.writeTrailers(unchecked, "")
		x.out.end(nil, a.bodyErr)
	case x.req.Context().Err() != nil:
		x.out.end(nil, err)
	case last == a && isRefusal && !x.tools && a.stream.IsStream():
		x.out.end(a.stream.Passed(a.unsent()), nil)
	default:
		events, code := x.failureEvents(a.stream, last, err)
		if len(events) > 0 { // the client reads the error in them, so the body ends properly
			x.writeTrailers("", code)
			err = nil
		}
		x.out.end(events, err)
	}
}

// rest returns the bytes of resp that follow the bytes of a that the client got. If rescued
// calls cannot follow that text, it becomes the text of resp.
func (x *exchange) rest(a *attempt, resp *middleware.Response) ([]byte, error) {
	rest, err := x.following(a, resp)
	if errors.Is(err, wire.ErrUnencodable) && resp.Report.Rescued() > 0 {
		return x.following(a, x.withShownText(resp))
	}
	return rest, err
}

// following returns the bytes of resp that follow the bytes of a that the client got. After a
// keep-alive alone that is all of resp, as a stream: the headers have announced a stream.
func (x *exchange) following(a *attempt, resp *middleware.Response) ([]byte, error) {
	resp, err := x.inClientFormat(resp)
	if err != nil {
		return nil, err
	}
	if a.stream.Taken() == 0 && (x.origin(resp) != a || !a.stream.IsStream()) {
		body, _, err := x.codec.EncodeAnswer(x.url.RequestURI(), x.body, resp)
		return body, err
	}
	rest, err := a.stream.Rest(resp)
	if err == nil {
		x.t.ids.keep(a.stream.Renamed(resp))
	}
	return rest, err
}

// withShownText returns resp with a text that begins with the text that the client got. A slow
// model may have shown the beginning of a call before it was known as a call, and no format can
// take text back.
func (x *exchange) withShownText(resp *middleware.Response) *middleware.Response {
	text, shown := resp.Message.Text(), x.shownText
	common := 0
	for common < len(text) && common < len(shown) && text[common] == shown[common] {
		common++
	}
	for common < len(text) && !utf8.RuneStart(text[common]) {
		common--
	}
	out := *resp
	out.Message.Parts = slices.DeleteFunc(slices.Clone(resp.Message.Parts), func(p middleware.Part) bool { return p.Kind == middleware.PartText })
	out.Message.Parts = append(out.Message.Parts, middleware.Part{Kind: middleware.PartText, Text: shown + text[common:]})
	return &out
}
