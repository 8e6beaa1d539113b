package proxy

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"time"
)

// Client is the client of one exchange. It sends a response without the headers
// that net/http adds. Its methods may be called concurrently.
type Client struct {
	http.ResponseWriter
	Note      any // from the base, for a Refuse
	control   *http.ResponseController
	hijacked  bool
	request   *endedBody // nil if the request has no body
	switches  bool       // it may switch to another protocol
	continues bool       // the client waits for the status 100, which net/http sends by itself
	streams   bool       // HTTP/2: the end of a request is not the end of a connection

	mu      sync.Mutex // guards the response
	begun   bool       // its status was sent
	bare    bool       // its headers have no length, and no body has followed
	flushed bool
	over    bool // the exchange has ended

	limit   *time.Timer // ends a Write or Flush that takes writeGrace; nil before the first one
	limitMu sync.Mutex
	writing bool // guarded by limitMu: a Write or Flush has begun and not ended
}

// errOver is the error of a Write that comes after the end of the exchange.
var errOver = errors.New("proxy: the exchange has ended")

type clientKey struct{}

// ClientOf returns the client of a request that came through a proxy, or nil.
func ClientOf(ctx context.Context) *Client {
	c, _ := ctx.Value(clientKey{}).(*Client)
	return c
}

// WithClient returns a context whose requests are treated as requests of a client of a proxy.
func WithClient(ctx context.Context) context.Context {
	return context.WithValue(ctx, clientKey{}, &Client{})
}

func newClient(w http.ResponseWriter, r *http.Request) *Client {
	c := &Client{
		ResponseWriter: w, control: http.NewResponseController(w),
		switches: strings.EqualFold(strings.Join(r.Header["Upgrade"], ","), "websocket"), continues: strings.EqualFold(r.Header.Get("Expect"), "100-continue"),
		streams: r.ProtoMajor > 1,
	}
	// The upstream may answer before it has read the whole request. Without
	// this, net/http would then take the rest of the body away from the
	// upstream. An HTTP/2 connection needs no switch for it.
	_ = c.control.EnableFullDuplex()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.WriteTimeout > 0 {
		_ = c.control.SetWriteDeadline(time.Time{}) // limitWrite is in its place: a stream may take longer
	}
	if r.Body != nil && r.Body != http.NoBody {
		c.request = &endedBody{steadyBody: &steadyBody{ReadCloser: r.Body, control: c.control}}
	}
	return c
}

// Direct reports whether the base may write the response. It may not if the request
// could switch to another protocol.
func (c *Client) Direct() bool { return c != nil && !c.switches }

// Begin sends the status and the headers of a response, with the first bytes or the
// next Flush. It announces the trailers.
func (c *Client) Begin(resp *http.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	WithoutHops(resp.Header)
	h := c.Header()
	for k, values := range resp.Header {
		if own, ok := h[k]; ok {
			values = slices.Concat(own, values)
		}
		h[k] = values
	}
	if len(resp.Trailer) > 0 {
		h.Add("Trailer", strings.Join(slices.Sorted(maps.Keys(resp.Trailer)), ", "))
	}
	c.writeHeader(resp.StatusCode)
}

// WriteHeader writes the status, without headers that net/http would add.
func (c *Client) WriteHeader(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeHeader(status)
}

// writeHeader is WriteHeader for a caller that holds c.mu.
func (c *Client) writeHeader(status int) {
	if status == http.StatusContinue && c.continues {
		return
	}
	if h := c.Header(); status >= http.StatusOK {
		for _, k := range []string{"Content-Type", "Date"} {
			if _, ok := h[k]; !ok {
				h[k] = nil // so net/http does not write its own
			}
		}
		if c.begun, c.bare = true, h.Get("Content-Length") == ""; c.request != nil {
			c.request.lift()
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// A client that takes none of writePiece bytes for writeGrace is gone.
const (
	writePiece = 64 << 10
	writeGrace = 5 * time.Minute
)

// Write fails after the request is over, and if the client reads nothing for writeGrace.
func (c *Client) Write(p []byte) (n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, errOver
	}
	c.bare = false
	defer c.limitWrite(false)
	for {
		c.limitWrite(true)
		k, err := c.ResponseWriter.Write(p[n:min(len(p), n+writePiece)])
		if n += k; err != nil || n >= len(p) {
			return n, err
		}
	}
}

// limitWrite lets a Write or Flush that begins take writeGrace; with begins false, it has ended. A
// deadline of the connection would cost more, and over HTTP/2 it also ends a response to which
// nothing is written. The caller holds c.mu.
func (c *Client) limitWrite(begins bool) {
	c.limitMu.Lock()
	c.writing = begins
	c.limitMu.Unlock()
	switch {
	case !begins:
		c.limit.Stop()
	case c.limit == nil:
		c.limit = time.AfterFunc(writeGrace, c.endWrite)
	default:
		c.limit.Reset(writeGrace)
	}
}

// endWrite ends the Write or Flush that has begun.
func (c *Client) endWrite() {
	c.limitMu.Lock()
	defer c.limitMu.Unlock()
	if c.writing {
		_ = c.control.SetWriteDeadline(time.Now())
	}
}

// FlushError is for http.ResponseController.
func (c *Client) FlushError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flush()
}

// flush sends what is buffered, unless a middleware around the proxy hides how. The
// caller holds c.mu.
func (c *Client) flush() error {
	if c.over {
		return nil
	}
	c.flushed = true
	c.limitWrite(true)
	defer c.limitWrite(false)
	if err := c.control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	return nil
}

// Trail ends the response with trailers. announced is the number of trailers that Begin announced.
func (c *Client) Trail(trailers http.Header, announced int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(trailers) == 0 {
		return
	}
	if !c.flushed { // otherwise net/http gives a short body a length, and no trailers
		_ = c.flush()
	}
	prefix := ""
	if len(trailers) != announced {
		prefix = http.TrailerPrefix
	}
	h := c.Header()
	for k, values := range trailers {
		h[prefix+k] = append(h[prefix+k], values...)
	}
}

// informed passes on a response with a status below 200. A base may make a second
// request when the response has begun. Then it must not wait for a slow client: over
// HTTP/2 all streams of the connection to the upstream wait for its return.
func (c *Client) informed(status int, header textproto.MIMEHeader) error {
	if status == http.StatusSwitchingProtocols || !c.mu.TryLock() { // an upstream may send 101 over HTTP/2, where it means nothing
		return nil
	}
	defer c.mu.Unlock()
	if c.begun || c.over {
		return nil
	}
	h := c.Header()
	own := maps.Clone(h) // of middlewares around the proxy
	maps.Copy(h, header)
	WithoutHops(WithoutOwn(h))
	// With this header net/http sends a copy of the map over HTTP/2. Otherwise, if the
	// client goes away meanwhile, another goroutine still reads the map, and the next
	// change of it ends the program ("concurrent map iteration and map write").
	h["Content-Length"] = nil
	c.writeHeader(status)
	clear(h) // net/http keeps them for the next response
	maps.Copy(h, own)
	return nil
}

// plainWriter returns the ResponseWriter for a response of the proxy itself, which gets the
// headers that net/http adds.
func (c *Client) plainWriter() http.ResponseWriter {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun = true; c.request != nil && c.request.broken.Load() {
		c.hangUp()
	}
	return c.ResponseWriter
}

// headerDelay is how long the headers of a response with a Content-Length wait for
// its body. Mostly they come together, and can be sent in one piece.
const headerDelay = 5 * time.Millisecond

// pass sends resp to the client.
func (c *Client) pass(resp *http.Response) error {
	defer resp.Body.Close()
	announced := len(resp.Trailer)
	c.Begin(resp)
	if err := c.body(resp); err != nil {
		return err
	}
	_ = resp.Body.Close() // the trailers may come with it
	c.Trail(resp.Trailer, announced)
	return nil
}

// body sends the body of resp as it arrives.
func (c *Client) body(resp *http.Response) error {
	if whole, ok := resp.Body.(io.WriterTo); ok {
		_, err := whole.WriteTo(c)
		return err
	}
	left, delay := resp.ContentLength, headerDelay
	if left < 0 {
		delay = 0
	}
	headers := time.AfterFunc(delay, func() {
		if c.mu.TryLock() { // else a Write has begun, and sends them
			defer c.mu.Unlock()
			_ = c.flush()
		}
	})
	defer headers.Stop()
	buf := NewBuffer(left)
	defer buf.Free()
	for {
		n, err := resp.Body.Read(buf.Bytes())
		headers.Stop()
		if n > 0 {
			if _, err := c.Write(buf.Bytes()[:n]); err != nil {
				return err
			}
			if left -= int64(n); left != 0 {
				_ = c.FlushError()
			}
		}
		switch err {
		case nil:
			buf.Next(n)
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// hasBegun reports whether the client has the status of the response.
func (c *Client) hasBegun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.begun
}

// close keeps what comes later from the client and from its request.
func (c *Client) close() {
	c.mu.Lock()
	if c.over = true; !c.hijacked {
		_ = c.control.SetWriteDeadline(time.Now().Add(writeGrace)) // of what net/http writes at the end
	}
	c.mu.Unlock()
	if c.request != nil {
		c.request.shut.Store(true)
		c.request.lift() // a Read may be under way, and net/http's HTTP/2 server panics at a deadline after the end
	}
}

// Hijack takes the connection from net/http.
func (c *Client) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := c.control.Hijack()
	c.hijacked = err == nil
	return conn, rw, err
}

// Unwrap is for http.ResponseController.
func (c *Client) Unwrap() http.ResponseWriter { return c.ResponseWriter }
