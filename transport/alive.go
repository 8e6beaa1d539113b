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

// startKeepAlive starts the keep-alive timer. a is the step's latest response with a
// good status. The first such response with a body is the one that the client
// gets.
func (x *exchange) startKeepAlive(a *attempt) {
	if x.ready == nil || x.t.options.KeepAlive == Off {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.latest = a
	if x.timer == nil && !x.chainEnded {
		x.lastSent = time.Now()
		x.timer = time.AfterFunc(x.t.options.KeepAlive, x.keepAliveTick)
	}
}

// keepAliveTick runs when the client may have heard nothing for Options.KeepAlive. It
// runs in its own goroutine, where a panic would end the program, so it
// recovers: the panic becomes the error of the request.
func (x *exchange) keepAliveTick() {
	x.mu.Lock()
	defer x.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			x.noKeepAlive, x.panicked = true, &Panic{Value: value, Stack: debug.Stack()}
			x.cancel()
		}
	}()
	if x.chainEnded || x.closed || x.noKeepAlive || x.out != nil && x.out.ended() {
		return
	}
	wait := x.t.options.KeepAlive - time.Since(x.lastSent)
	if wait <= 0 {
		wait = x.t.options.KeepAlive
		if !x.sendKeepAlive() {
			wait = min(wait, lateKeepAlive)
		}
	}
	x.timer.Reset(wait)
}

// sendKeepAlive sends the client a keep-alive if one is due. It reports whether no
// further one is needed for now. The caller holds x.mu.
func (x *exchange) sendKeepAlive() bool {
	a := x.live
	if a == nil {
		a = x.latest
	}
	switch {
	case a == nil, !a.begun && !announcesEvents(a.resp):
		return false
	case x.out != nil && x.out.hasUnread():
		return true
	}
	b := a.stream.KeepAlive()
	if len(b) == 0 {
		return false
	}
	if x.live == nil {
		x.goLive(a)
	}
	x.emit(b)
	return true
}

// announcesEvents reports whether the headers announce a stream of events.
func announcesEvents(resp *http.Response) bool {
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	return strings.Contains(kind, "event-stream") || strings.Contains(kind, "ndjson")
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
