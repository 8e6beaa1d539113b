package transport

import (
	"errors"
	"runtime"

	"github.com/toolmend/toolmend/middleware"
)

// show lets the client see what may be seen of an answer that is being read.
// Only the first answer of a step is shown as it comes, and where tools are
// offered not before its first text: an answer that is nothing but tool calls
// needs no splice after a re-ask, and keeps its status if the chain raises.
func (s *step) show(a *attempt) {
	if s.ready == nil || a.req.Sink == nil || s.t.options.Hold {
		return
	}
	if a.stream.Safe() <= a.stream.Taken() || !s.watch.allArrived() {
		return
	}
	begin, shown := s.showSafe(a)
	if begin {
		s.hand(a)
		runtime.Gosched() // the first text is read before more is, however busy the processors are
	}
	if shown {
		s.shown.wait()
	}
}

// showSafe gives the client the safe bytes of a if it may see them. It reports
// whether it did, and whether they are the first bytes of the client's answer.
func (s *step) showSafe(a *attempt) (begin, shown bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	may := s.spoken || !s.answered && (!s.tools || s.watch.anyArrived())
	if s.over || !may || s.live != nil && s.live != a {
		return false, false
	}
	b := a.stream.Take() // first: if the codec panics, nothing has gone live
	if begin = s.live == nil; begin {
		s.goLive(a)
	}
	s.spoken = true
	s.give(b)
	return begin, true
}

// finish ends a stream that was shown in part.
func (s *step) finish(resp *middleware.Response, err error) {
	a := s.live
	select {
	case <-a.done:
	default: // a chain that asks twice at once took another answer
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
			s.shown.write(rest)
			s.shown.end(nil)
			return
		}
		err = e
	}
	s.call.fail(err)
	last, failure := s.failed(err)
	line, isLine := failure.(*lineError)
	switch {
	case isLine:
		s.shown.end(line.err)
	case last == a && a.through:
		s.says(ended{status: unchecked})
		s.shown.end(a.lineErr)
	case s.req.Context().Err() != nil:
		s.shown.end(err)
	case last == a && a.refusal != nil && !s.tools && a.stream.IsStream():
		s.shown.write(a.stream.Passed(a.raw[a.stream.Taken():]))
		s.shown.end(nil)
	default:
		if events, code := s.failure(a.stream, last, err); len(events) > 0 { // the client is told: the body itself is whole
			s.says(ended{code: code})
			s.shown.write(events)
			err = nil
		}
		s.shown.end(err)
	}
}

// rest returns what follows the bytes of a that the client was given. Behind
// nothing but a keep-alive the whole answer follows, framed as a stream: the
// headers have promised one.
func (s *step) rest(a *attempt, resp *middleware.Response) ([]byte, error) {
	resp, err := s.inFormat(resp)
	if err != nil {
		return nil, err
	}
	if a.stream.Taken() == 0 && (s.origin(resp) != a || !a.stream.IsStream()) {
		body, _, err := s.codec.EncodeAnswer(s.req.URL.RequestURI(), s.body, resp)
		return body, err
	}
	rest, err := a.stream.Rest(resp)
	if err == nil {
		s.t.ids.keep(a.stream.Renamed(resp))
	}
	return rest, err
}

// cutShort returns the error with which the answer ended that the client was
// shown: text of another one cannot go on where this broke off. What the
// provider refused of the model's call was whole before the call.
func (a *attempt) cutShort() error {
	if errors.Is(a.err, middleware.ErrInvalidToolCall) {
		return nil
	}
	return a.err
}
