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
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/wire"
)

// show sends the client the safe part of a response that is being read. Only
// the first response of a step is streamed. If tools are offered, streaming
// begins with the first text: a response that consists of tool calls needs no
// splice after a re-ask, and its status can still change if the chain returns
// an error.
func (x *exchange) show(a *attempt) {
	if x.ready == nil || a.req.Sink == nil || x.t.options.Hold {
		return
	}
	if a.stream.Safe() <= a.stream.Taken() || !x.events.allArrived() {
		return
	}
	begin, shown := x.showSafe(a)
	if begin {
		runtime.Gosched() // let the client read the first text before more is read, even if all processors are busy
	}
	if shown {
		x.out.wait()
	}
}

// showSafe sends the client the safe bytes of a, if they may be sent. shown
// reports whether it did, and begin whether they are the first bytes of the
// response.
func (x *exchange) showSafe(a *attempt) (begin, shown bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	may := x.textSent || !x.answered && (!x.tools || x.events.anyArrived())
	if x.chainEnded || !may || x.live != nil && x.live != a {
		return false, false
	}
	x.shownText = x.events.passedText()
	b := a.stream.Take() // before goLive: if the codec panics, the response must not be live
	if begin = x.live == nil; begin {
		x.goLive(a)
	}
	x.textSent = true
	x.emit(b)
	return begin, true
}

// goLive begins the client's response, whose body begins with the bytes of a. The
// caller holds x.mu, and calls give.
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

// emit adds bytes for the client. The caller holds x.mu, which keeps the bytes
// in the order of the stream.
func (x *exchange) emit(b []byte) {
	x.out.put(b)
	x.lastSent = time.Now()
}

// arrived is the outermost sink. A middleware may pass an event on while the
// body of the response is awaited: then the client gets it now.
func (x *exchange) arrived(e middleware.Event) error {
	x.events.arrived(e)
	if a := x.reading.Load(); a != nil {
		a.eventPassed.Store(true)
		x.showPassed(a)
	}
	return nil
}

// showPassed shows what the chain has passed on while the body is awaited. If the
// stream is being read, the reader calls show or showPassed later.
func (x *exchange) showPassed(a *attempt) {
	for a.eventPassed.Load() && a.streaming.TryLock() {
		if a.eventPassed.Store(false); a.awaitsBody {
			x.show(a)
		}
		a.streaming.Unlock()
	}
}

// eventTracker compares the events of a stream with the events that the chain passes
// to the outermost sink. The bytes of a stream may be sent only if all of its
// events arrive there unchanged. A chain that merges or changes events counts
// as one that holds them back.
type eventTracker struct {
	mu        sync.Mutex
	pending   []middleware.Event // the emitted events that have not arrived
	changed   bool
	anyPassed bool            // an event has arrived
	passed    strings.Builder // the texts that have arrived
}

// track returns a sink for one response, which records all emitted events.
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

// reset drops the state of an earlier response.
func (w *eventTracker) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending, w.changed, w.anyPassed = nil, false, false
	w.passed.Reset()
}

// arrived notes an event that has reached the outermost sink.
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
	w.anyPassed = true
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
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed.String()
}

// anyArrived reports whether an event has arrived.
func (w *eventTracker) anyArrived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.anyPassed
}

func (w *eventTracker) allArrived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0 && !w.changed
}

// finish ends a stream of which the client got a part.
func (x *exchange) finish(resp *middleware.Response, err error) {
	a := x.live
	select {
	case <-a.done:
	default: // a chain that makes two calls at once returned the other response
		x.cancel()
		<-a.done
		if x.textSent {
			err = errOther
		}
	}
	if cut := a.cutShort(); cut != nil && x.textSent && !errors.Is(err, errOther) && x.panicked == nil {
		err = cut
	}
	if err == nil {
		rest, e := x.rest(a, resp)
		if e == nil {
			status := statusOf(resp)
			x.writeTrailers(trailerValues{status: status})
			if status == invalid {
				rest = append(rest, a.stream.Comment(comment)...)
			}
			x.out.end(rest, nil)
			return
		}
		err = e
	}
	x.call.setError(err)
	last, failure := x.failedAttempt(err)
	line, isLine := failure.(*networkError)
	_, refused := failure.(*middleware.ModelError)
	switch {
	case isLine:
		x.out.end(nil, line.err)
	case last == a && a.passedThrough:
		x.writeTrailers(trailerValues{status: unchecked})
		x.out.end(nil, a.bodyErr)
	case x.req.Context().Err() != nil:
		x.out.end(nil, err)
	case last == a && refused && !x.tools && a.stream.IsStream():
		x.out.end(a.stream.Passed(a.unsent()), nil)
	default:
		events, code := x.failureEvents(a.stream, last, err)
		if len(events) > 0 { // the failure event tells the client; the body itself ends properly
			x.writeTrailers(trailerValues{code: code})
			err = nil
		}
		x.out.end(events, err)
	}
}

// rest returns the bytes that follow those of a that the client got. If the client got
// only a keep-alive, the whole response follows, framed as a stream, because the headers
// have announced a stream.
func (x *exchange) rest(a *attempt, resp *middleware.Response) ([]byte, error) {
	rest, err := x.following(a, resp)
	if errors.Is(err, wire.ErrUnencodable) && rescue.Calls(resp.Report) > 0 {
		return x.following(a, x.withShownText(resp))
	}
	return rest, err
}

// following is rest for a response that keeps what the client got.
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

// withShownText returns resp with the text that the client has got in front of what resp
// has behind it. A slow model can have shown the beginning of a call before it was known
// as one, and no format can take text back.
func (x *exchange) withShownText(resp *middleware.Response) *middleware.Response {
	text, has := resp.Message.Text(), x.shownText
	common := 0
	for common < len(text) && common < len(has) && text[common] == has[common] {
		common++
	}
	for common < len(text) && !utf8.RuneStart(text[common]) {
		common--
	}
	kept := *resp
	kept.Message.Parts = slices.DeleteFunc(slices.Clone(resp.Message.Parts), func(p middleware.Part) bool { return p.Kind == middleware.PartText })
	kept.Message.Parts = append(kept.Message.Parts, middleware.Part{Kind: middleware.PartText, Text: has + text[common:]})
	return &kept
}
