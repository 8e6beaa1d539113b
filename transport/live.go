package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
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
	s.mu.Lock()
	may := s.spoken || !s.answered && (!s.tools || s.watch.anyArrived())
	if s.over || !may || s.live != nil && s.live != a {
		s.mu.Unlock()
		return
	}
	begin := s.live == nil
	if begin {
		s.goLive(a)
	}
	s.spoken = true
	s.give(a.stream.Take())
	s.mu.Unlock()
	if begin {
		s.hand(a)
		runtime.Gosched() // the first text is read before more is, however busy the processors are
	}
	s.shown.wait()
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
	if cut := a.cutShort(); cut != nil && s.spoken && !errors.Is(err, errOther) {
		err = cut
	}
	if err == nil {
		var rest []byte
		resp, e := s.inFormat(resp)
		if e == nil {
			rest, e = a.stream.Rest(resp)
		}
		if e == nil {
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
		s.shown.end(a.lineErr)
	case s.req.Context().Err() != nil:
		s.shown.end(err)
	case last == a && a.refusal != nil && !s.partial(a):
		s.shown.write(a.raw[a.stream.Taken():])
		s.shown.end(nil)
	default:
		raw := a.raw
		if len(raw) == 0 && saysEvents(a.resp) { // a keep-alive came first
			raw = []byte(":")
		}
		s.shown.write(s.errorEvent(raw, last, err))
		s.shown.end(err)
	}
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

// errorEvent returns err as an event of a stream that is framed like raw: the
// provider's own, or in its words, if it is the refusal of attempt a. It is nil
// where the framing has no place for one.
func (s *step) errorEvent(raw []byte, a *attempt, err error) []byte {
	if own := s.ownEvent(a); own != nil {
		return own
	}
	body := s.ownWords(a)
	if body == nil {
		status, message := http.StatusUnprocessableEntity, ""
		code, message := s.words(err)
		var e *middleware.ModelError
		if errors.As(err, &e) {
			status, code = max(e.StatusCode, http.StatusBadRequest), e.Code
			if e.Err != nil {
				message = clip(withoutQuery(strings.TrimPrefix(e.Err.Error(), "wire: "), s.req), 1000)
			}
		}
		body = s.errorBody(status, code, message)
	}
	var line bytes.Buffer
	if json.Compact(&line, body) != nil {
		return nil
	}
	switch {
	case s.codec.Dialect() == wire.Ollama.Dialect() && !isEvents(raw):
		return append(line.Bytes(), '\n')
	case !isEvents(raw):
		return nil
	case s.codec.Dialect() == wire.Anthropic.Dialect(), s.codec.Dialect() == wire.OpenAIResponses.Dialect():
		return []byte("event: error\ndata: " + line.String() + "\n\n")
	}
	return []byte("data: " + line.String() + "\n\n")
}

// ownEvent returns the event in which the provider said its error, if it did
// so in a stream.
func (s *step) ownEvent(a *attempt) []byte {
	if a == nil || a.refusal == nil || a.stream == nil {
		return nil
	}
	for e := range eventsFromTheEnd(a.raw) {
		st := s.codec.NewStream(a.req, nil)
		var refusal *middleware.ModelError
		if _, err := st.Write(e); err != nil {
			continue
		}
		if _, err := st.Close(); errors.As(err, &refusal) && refusal.Code == a.refusal.Code {
			return e
		}
	}
	return nil
}

// ownWords returns the body of an error status if it is a JSON object of
// sensible size.
func (s *step) ownWords(a *attempt) []byte {
	if a == nil || a.refusal == nil || a.resp.StatusCode < 400 {
		return nil
	}
	body := bytes.TrimSpace(plain(a.resp, a.raw))
	if len(body) > 64<<10 || !bytes.HasPrefix(body, []byte("{")) {
		return nil
	}
	return body
}

// words returns the code and the message for an error of the chain.
func (s *step) words(err error) (code, message string) {
	code = "middleware_error"
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed):
		code = typed.ErrorType()
	case errors.Is(err, ErrModelCalls):
		code = "model_calls_used_up"
	}
	if _, proxied := s.req.Context().Value(codecKey{}).(*wire.Codec); proxied { // by somebody who is not the program's author
		return code, "transport: the chain did not let the answer through"
	}
	return code, clip(withoutQuery(err.Error(), s.req), 1000)
}

// clip cuts text at n bytes, between characters.
func clip(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
