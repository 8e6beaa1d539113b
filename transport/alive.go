package transport

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// NoKeepAlive turns Options.KeepAlive off.
const NoKeepAlive time.Duration = -1

// keepAlive is the default of Options.KeepAlive: clients and proxies that watch
// for silence begin at ten seconds.
const keepAlive = 8 * time.Second

// lateKeepAlive is how long a keep-alive waits for the first event of an answer
// where one is due and the format has none without it.
const lateKeepAlive = time.Second

// hears begins to watch the silence towards the client: a is the step's latest
// answer with a good status. Bytes for the client come from the first such
// answer that has any.
func (s *step) hears(a *attempt) {
	if s.ready == nil || s.t.options.KeepAlive == NoKeepAlive {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.latest = a
	if s.timer == nil && !s.over {
		s.heard = time.Now()
		s.timer = time.AfterFunc(s.t.options.KeepAlive, s.beat)
	}
}

// beat runs when the client may have heard nothing for Options.KeepAlive. It
// has a goroutine of its own, where a panic would end the program: the chain
// gets it as the error of the request instead.
func (s *step) beat() {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			s.mute, s.panicked = true, &Panic{Value: value, Stack: debug.Stack()}
			s.cancel()
		}
	}()
	if s.over || s.closed || s.mute || s.shown != nil && s.shown.ended() {
		return
	}
	wait := s.t.options.KeepAlive - time.Since(s.heard)
	if wait <= 0 {
		wait = s.t.options.KeepAlive
		if !s.sign() {
			wait = min(wait, lateKeepAlive)
		}
	}
	s.timer.Reset(wait)
}

// sign gives the client a sign of life, and reports whether it needs no other
// one for now. s.mu is held.
func (s *step) sign() bool {
	a := s.live
	if a == nil {
		a = s.latest
	}
	switch {
	case a == nil, !a.begun && !saysEvents(a.resp):
		return false
	case s.shown != nil && s.shown.unread():
		return true
	}
	b := a.stream.KeepAlive()
	if len(b) == 0 {
		return false
	}
	begin := s.live == nil
	if begin {
		s.goLive(a)
	}
	s.give(b)
	if begin {
		s.hand(a)
	}
	return true
}

// saysEvents reports whether the headers announce a stream of events.
func saysEvents(resp *http.Response) bool {
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	return strings.Contains(kind, "event-stream") || strings.Contains(kind, "ndjson")
}

// goLive opens the body of the client's answer: its first bytes are a's. s.mu
// is held.
func (s *step) goLive(a *attempt) {
	s.live = a
	s.shown = newPipe(s.req.Context(), s.cancel)
}

// give adds bytes for the client. s.mu is held, so that they stand in the order
// in which the stream gave them.
func (s *step) give(b []byte) {
	s.shown.put(b)
	s.heard = time.Now()
}

// hand gives the client the answer whose body goLive has opened.
func (s *step) hand(a *attempt) {
	r := a.response()
	r.Header.Del("Content-Length")
	r.ContentLength, r.TransferEncoding = -1, nil
	r.Trailer = announced()
	r.Body = &shownBody{s.shown, s, r.Trailer}
	s.ready <- outcome{resp: r}
}
