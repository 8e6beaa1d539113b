package transport

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// Off turns Options.KeepAlive off.
const Off time.Duration = -1

// keepAlive is the default of Options.KeepAlive. The shortest idle timeouts of
// clients and proxies are ten seconds.
const keepAlive = 8 * time.Second

// lateKeepAlive is how long a due keep-alive waits for the first event of a
// response, if the format allows no keep-alive before that event.
const lateKeepAlive = time.Second

// hears starts the keep-alive timer. a is the step's latest response with a
// good status. The first such response with a body is the one that the client
// gets.
func (s *step) hears(a *attempt) {
	if s.ready == nil || s.t.options.KeepAlive == Off {
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
// runs in its own goroutine, where a panic would end the program, so it
// recovers: the panic becomes the error of the request.
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

// sign sends the client a keep-alive if one is due. It reports whether no
// further one is needed for now. The caller holds s.mu.
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
	if s.live == nil {
		s.goLive(a)
	}
	s.give(b)
	return true
}

// saysEvents reports whether the headers announce a stream of events.
func saysEvents(resp *http.Response) bool {
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	return strings.Contains(kind, "event-stream") || strings.Contains(kind, "ndjson")
}

// goLive begins the client's response, whose body begins with the bytes of a. The
// caller holds s.mu, and calls give.
func (s *step) goLive(a *attempt) {
	s.live = a
	r := a.response()
	r.Header.Del("Content-Length")
	r.ContentLength, r.TransferEncoding = -1, nil
	r.Trailer = s.announced()
	if s.client != nil {
		s.client.Begin(r)
		s.shown = &direct{client: s.client, ctx: s.req.Context(), cancel: s.cancel}
		return
	}
	p := newPipe(s.req.Context(), s.cancel)
	s.shown = p
	r.Body = &shownBody{p, s, r.Trailer}
	s.ready <- outcome{resp: r}
}

// give adds bytes for the client. The caller holds s.mu, which keeps the bytes
// in the order of the stream.
func (s *step) give(b []byte) {
	s.shown.put(b)
	s.heard = time.Now()
}
