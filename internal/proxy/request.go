package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// endedBody returns io.EOF at every Read after its end. http.Transport reads once more there, and
// takes every other error for a broken request: it closes the connection while the response is
// read. Without full duplex, which a middleware may hide, the body of net/http's server returns
// such an error from the first byte of the response on.
type endedBody struct {
	*steadyBody
	ended  atomic.Bool
	broken atomic.Bool // the client's fault
	shut   atomic.Bool // nothing may read it any more
}

// Read returns io.EOF after the end of the body, even if net/http's body returns another error.
func (b *endedBody) Read(p []byte) (int, error) {
	switch {
	case b.ended.Load():
		return 0, io.EOF
	case b.shut.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.steadyBody.Read(p)
	switch err {
	case nil:
	case io.EOF:
		b.ended.Store(true)
	default:
		b.broken.Store(true)
	}
	return n, err
}

// Close leaves the client's body open: http.Transport
// closes the body of a request that it cannot send, and net/http's server would then
// wait for the rest of it.
func (b *endedBody) Close() error {
	b.shut.Store(true)
	return nil
}

// A request body may take bodyGrace, and a second more for each bodyRate bytes of it.
// Time in which the upstream reads nothing does not count. Source: RequestReadTimeout of
// Apache's mod_reqtimeout, whose default is body=20,MinRate=500.
const (
	bodyGrace = time.Minute
	bodyRate  = 500
)

// steadyBody ends a body that comes too slowly, until it is lifted. The body of
// a request whose response has begun may be a conversation, in which either side pauses.
type steadyBody struct {
	io.ReadCloser
	control *http.ResponseController
	bytes   int64
	spent   time.Duration // in Read

	mu     sync.Mutex
	lifted bool
}

// Steady returns body with the limit on its time. w is the response to it.
func Steady(w http.ResponseWriter, body io.ReadCloser) io.ReadCloser {
	return &steadyBody{ReadCloser: body, control: http.NewResponseController(w)}
}

// Read fails if the body has come too slowly.
func (b *steadyBody) Read(p []byte) (int, error) {
	start := time.Now()
	b.limit(start.Add(bodyGrace + time.Duration(b.bytes)*(time.Second/bodyRate) - b.spent))
	n, err := b.ReadCloser.Read(p)
	b.limit(time.Time{}) // in HTTP/2, a deadline also ends a body that is not read; in HTTP/1, net/http may go on to read the connection
	b.bytes += int64(n)
	b.spent += time.Since(start)
	return n, err
}

// limit sets the deadline of a Read, unless the limit was lifted.
func (b *steadyBody) limit(deadline time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lifted {
		_ = b.control.SetReadDeadline(deadline)
	}
}

// lift ends the limit.
func (b *steadyBody) lift() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.lifted {
		b.lifted = true
		_ = b.control.SetReadDeadline(time.Time{})
	}
}

// grace is how long the end of a response may wait for the rest of its request. After
// that the connection closes.
const grace = 500 * time.Millisecond

// end sends the headers of a response without a body, before net/http could add
// a Content-Length of 0. It also closes the request.
func (c *Client) end() {
	if c.hijacked {
		return
	}
	if c.bare || c.unread() {
		_ = c.FlushError()
	}
	if c.continues { // a client that did not get the status 100 will not send the body
		c.closeRequest(grace / 10)
	} else {
		c.closeRequest(grace)
	}
}

// unread reports whether the request's body was not read to its end, if the next request of the
// connection follows it.
func (c *Client) unread() bool {
	return c.request != nil && !c.request.ended.Load() && !c.streams
}

// closeRequest closes a request body of which a part was not read: in full duplex,
// net/http does so too late, and panics at the next request of the connection ("invalid
// concurrent Body.Read call"). If the end of the body does not come in time, or its
// framing is not valid, the connection closes after the response: what follows is
// not a request, though net/http would read it as one.
func (c *Client) closeRequest(wait time.Duration) {
	if !c.unread() {
		return
	}
	c.request.lift()
	_ = c.control.SetReadDeadline(time.Now().Add(wait))
	if err := c.request.ReadCloser.Close(); err != nil || c.request.broken.Load() {
		c.hangUp()
		return
	}
	_ = c.control.SetReadDeadline(time.Time{}) // net/http may be reading: at the deadline it would cancel the connection's requests
}

// hangUp makes net/http close the connection after the response. MaxBytesReader is its only
// function that can do so after the headers were sent.
func (c *Client) hangUp() {
	w := c.ResponseWriter
	for {
		outer, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			break
		}
		w = outer.Unwrap()
	}
	_, _ = io.ReadAll(http.MaxBytesReader(w, io.NopCloser(strings.NewReader("too long")), 0))
}
