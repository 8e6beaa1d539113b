package transport

import (
	"net/http"
	"runtime/debug"
	"strings"
	"time"
)

// lateKeepAlive is the time between two attempts to send a keep-alive that is due, if the
// format allows none before the first event of a response.
const lateKeepAlive = time.Second

// startKeepAlive starts the keep-alive timer. a is the latest attempt with a good status and a
// body: with a keep-alive, its response goes live.
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

// keepAliveTick sends a keep-alive if the client got nothing for Options.KeepAlive. It runs in a
// goroutine of the timer, where a panic would end the program: it makes a panic the error of
// the exchange.
func (x *exchange) keepAliveTick() {
	if !x.mu.TryLock() { // a write waits for the client, or sends to it
		time.AfterFunc(lateKeepAlive/10, x.keepAliveTick)
		return
	}
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

// sendKeepAlive sends the client a keep-alive. It reports whether the client has got one, or has
// unread bytes. The caller holds x.mu.
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
	x.emit(b, false)
	return true
}

// announcesEvents reports whether the headers announce a stream of events.
func announcesEvents(resp *http.Response) bool {
	kind := strings.ToLower(resp.Header.Get("Content-Type"))
	return strings.Contains(kind, "event-stream") || strings.Contains(kind, "ndjson")
}
