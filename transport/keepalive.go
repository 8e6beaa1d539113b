package transport

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

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
