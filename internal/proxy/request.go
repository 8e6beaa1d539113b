package proxy

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// endedBody returns io.EOF again and again at its end. http.Transport reads once
// more there, to see that nothing follows. It takes every other error for a broken
// request and closes the connection while the response is read. Without full
// duplex, as behind a middleware that hides it, the body of net/http's server
// returns such an error from the first byte of the response on.
type endedBody struct {
	io.ReadCloser
	ended  atomic.Bool
	broken atomic.Bool // the client's fault
	shut   atomic.Bool // nothing may read it any more
}

// Read returns io.EOF after the end of the body, whatever net/http's body says then.
func (b *endedBody) Read(p []byte) (int, error) {
	switch {
	case b.ended.Load():
		return 0, io.EOF
	case b.shut.Load():
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := b.ReadCloser.Read(p)
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
	if c.continues { // a client that was not told to send the body will not do so
		c.closeRequest(grace / 10)
	} else {
		c.closeRequest(grace)
	}
}

// unread reports whether the end of the request's body was not reached, if the
// connection's next request begins behind it.
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
	_ = c.control.SetReadDeadline(time.Now().Add(wait))
	if err := c.request.ReadCloser.Close(); err != nil || c.request.broken.Load() {
		c.hangUp()
		return
	}
	_ = c.control.SetReadDeadline(time.Time{}) // net/http may be reading: at the deadline it would cancel the connection's requests
}

// hangUp tells net/http to close the connection after the response. Of its functions,
// only MaxBytesReader can do so when the headers are sent.
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
