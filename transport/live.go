package transport

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
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
func (s *step) show(a *attempt) {
	if s.ready == nil || a.req.Sink == nil || s.t.options.Hold {
		return
	}
	if a.stream.Safe() <= a.stream.Taken() || !s.watch.allArrived() {
		return
	}
	begin, shown := s.showSafe(a)
	if begin {
		runtime.Gosched() // let the client read the first text before more is read, even if all processors are busy
	}
	if shown {
		s.shown.wait()
	}
}

// arrived is the outermost sink. A middleware may pass an event on while the
// body of the response is awaited: then the client gets it now.
func (s *step) arrived(e middleware.Event) error {
	s.watch.arrived(e)
	if a := s.heeded.Load(); a != nil {
		a.passed.Store(true)
		s.showPassed(a)
	}
	return nil
}

// showPassed shows what the chain has passed on while the body is awaited. If the
// stream is being read, the reader calls show or showPassed later.
func (s *step) showPassed(a *attempt) {
	for a.passed.Load() && a.reading.TryLock() {
		if a.passed.Store(false); a.idle {
			s.show(a)
		}
		a.reading.Unlock()
	}
}

// showSafe sends the client the safe bytes of a, if they may be sent. shown
// reports whether it did, and begin whether they are the first bytes of the
// response.
func (s *step) showSafe(a *attempt) (begin, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	may := s.spoken || !s.answered && (!s.tools || s.watch.anyArrived())
	if s.over || !may || s.live != nil && s.live != a {
		return false, false
	}
	s.shownText = s.watch.text()
	b := a.stream.Take() // before goLive: if the codec panics, the response must not be live
	if begin = s.live == nil; begin {
		s.goLive(a)
	}
	s.spoken = true
	s.give(b)
	return begin, true
}

// finish ends a stream of which the client got a part.
func (s *step) finish(resp *middleware.Response, err error) {
	a := s.live
	select {
	case <-a.done:
	default: // a chain that makes two calls at once returned the other response
		s.cancel()
		<-a.done
		if s.spoken {
			err = errOther
		}
	}
	if cut := a.cutShort(); cut != nil && s.spoken && !errors.Is(err, errOther) && s.panicked == nil {
		err = cut
	}
	if err == nil {
		rest, e := s.rest(a, resp)
		if e == nil {
			status := statusOf(resp)
			s.says(ended{status: status})
			if status == invalid {
				rest = append(rest, a.stream.Comment(comment)...)
			}
			s.shown.end(rest, nil)
			return
		}
		err = e
	}
	s.call.fail(err)
	last, failure := s.failed(err)
	line, isLine := failure.(*networkError)
	_, refused := failure.(*middleware.ModelError)
	switch {
	case isLine:
		s.shown.end(nil, line.err)
	case last == a && a.through:
		s.says(ended{status: unchecked})
		s.shown.end(nil, a.bodyErr)
	case s.req.Context().Err() != nil:
		s.shown.end(nil, err)
	case last == a && refused && !s.tools && a.stream.IsStream():
		s.shown.end(a.stream.Passed(a.untaken()), nil)
	default:
		events, code := s.failure(a.stream, last, err)
		if len(events) > 0 { // the failure event tells the client; the body itself ends properly
			s.says(ended{code: code})
			err = nil
		}
		s.shown.end(events, err)
	}
}

// rest returns the bytes that follow those of a that the client got. If the client got
// only a keep-alive, the whole response follows, framed as a stream, because the headers
// have announced a stream.
func (s *step) rest(a *attempt, resp *middleware.Response) ([]byte, error) {
	rest, err := s.following(a, resp)
	if errors.Is(err, wire.ErrUnencodable) && rescue.Calls(resp.Report) > 0 {
		return s.following(a, s.withShownText(resp))
	}
	return rest, err
}

// withShownText returns resp with the text that the client has got in front of what resp
// has behind it. A slow model can have shown the beginning of a call before it was known
// as one, and no format can take text back.
func (s *step) withShownText(resp *middleware.Response) *middleware.Response {
	text, has := resp.Message.Text(), s.shownText
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

// following is rest for a response that keeps what the client got.
func (s *step) following(a *attempt, resp *middleware.Response) ([]byte, error) {
	resp, err := s.inFormat(resp)
	if err != nil {
		return nil, err
	}
	if a.stream.Taken() == 0 && (s.origin(resp) != a || !a.stream.IsStream()) {
		body, _, err := s.codec.EncodeAnswer(s.url.RequestURI(), s.body, resp)
		return body, err
	}
	rest, err := a.stream.Rest(resp)
	if err == nil {
		s.t.ids.keep(a.stream.Renamed(resp))
	}
	return rest, err
}

// cutShort returns the error with which the streamed response ended. The text
// of another response cannot follow a response that broke off. If the provider
// refused the model's call, the text before the call was complete, so this
// does not apply.
func (a *attempt) cutShort() error {
	if errors.Is(a.err, middleware.ErrInvalidToolCall) {
		return nil
	}
	return a.err
}

// watch compares the events of a stream with the events that the chain passes
// to the outermost sink. The bytes of a stream may be sent only if all of its
// events arrive there unchanged. A chain that merges or changes events counts
// as one that holds them back.
type watch struct {
	mu      sync.Mutex
	emitted []middleware.Event // the emitted events that have not arrived
	altered bool
	some    bool            // an event has arrived
	passed  strings.Builder // the texts that have arrived
}

// emit returns a sink for one response, which records all emitted events.
func (w *watch) emit(sink middleware.Sink) middleware.Sink {
	if sink == nil {
		return nil
	}
	return func(e middleware.Event) error {
		w.mu.Lock()
		if !w.altered {
			w.emitted = append(w.emitted, e)
		}
		w.mu.Unlock()
		return sink(e)
	}
}

// renew drops the state of an earlier response.
func (w *watch) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.emitted, w.altered, w.some = nil, false, false
	w.passed.Reset()
}

// arrived notes an event that has reached the outermost sink.
func (w *watch) arrived(e middleware.Event) {
	if e.Kind != middleware.EventText && e.Kind != middleware.EventReasoning {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.emitted) == 0 || w.emitted[0].Kind != e.Kind || w.emitted[0].Text != e.Text {
		w.emitted, w.altered = nil, true
		return
	}
	w.some = true
	if e.Kind == middleware.EventText {
		w.passed.WriteString(e.Text)
	}
	if len(w.emitted) == 1 {
		w.emitted = w.emitted[:0] // reuse the memory
		return
	}
	w.emitted = w.emitted[1:]
}

// text returns the text that has arrived.
func (w *watch) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.passed.String()
}

// anyArrived reports whether an event has arrived.
func (w *watch) anyArrived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.some
}

func (w *watch) allArrived() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.emitted) == 0 && !w.altered
}
