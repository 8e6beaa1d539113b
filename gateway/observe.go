package gateway

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// observe serves a model call by p.handler, which changes nothing. It copies the request and the
// answer, and queues the copy at the end.
func (p *pipeline) observe(w http.ResponseWriter, r *http.Request, dialect string) {
	code := &statusWriter{ResponseWriter: w}
	c := p.copies.begin(p.newExchange(r, dialect), p.settings.MaxBody)
	ctx := r.Context()
	r = r.WithContext(context.WithValue(ctx, copyKey{}, c))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &copiedBody{r.Body, c, &c.request, r.ContentLength}
	}
	defer func() { // also if the handler panics: the proxy does so if a response breaks off
		c.x.code, c.x.duration = code.status, time.Since(c.x.start)
		c.finish(ctx.Err())
		p.copies.queue(c, p)
	}()
	p.handler.ServeHTTP(code, r)
}

type copyKey struct{}

// copying is the RoundTripper of the mode Observe. It copies the response for
// the copied in the request's context.
type copying struct{ base http.RoundTripper }

// RoundTrip sends the request, and lets the response be copied while it is read.
func (t copying) RoundTrip(r *http.Request) (*http.Response, error) {
	c, ok := r.Context().Value(copyKey{}).(*copied)
	if !ok {
		return t.base.RoundTrip(r)
	}
	c.sent = time.Now()
	resp, err := t.base.RoundTrip(r)
	c.took = time.Since(c.sent)
	if err != nil {
		c.end = err
		return nil, err
	}
	c.status, c.header = resp.StatusCode, resp.Header.Clone()
	if resp.StatusCode != http.StatusSwitchingProtocols { // after 101 the body is a connection
		resp.Body = &copiedBody{resp.Body, c, &c.answer, resp.ContentLength}
	}
	return resp, nil
}

// copied is the copy of an exchange: the bodies of its request and its answer,
// as they go by.
type copied struct {
	x      *exchange
	copies *copies
	max    int64 // bytes of one body

	sent   time.Time
	took   time.Duration // from sent until the upstream's last byte
	status int           // of the answer; 0 without an answer
	header http.Header   // of the answer

	mu       sync.Mutex // the request may still be read when the answer has ended
	request  []byte
	answer   []byte
	end      error // after the last byte of the answer, or in place of an answer
	reserved int64 // bytes that are reserved for both bodies
	dropped  string
	done     bool
}

// firstCopy is the size of the first buffer of a copy whose length is unknown, and
// mostDeclared how much of a declared length is believed.
const (
	firstCopy    = 4 << 10
	mostDeclared = 64 << 10
)

// add copies bytes that go by, of a body that has a declared length. If there is no room for them, the whole copy is
// dropped.
func (c *copied) add(to *[]byte, p []byte, length int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done {
		return
	}
	if to == &c.answer && err != nil {
		c.end, c.took = err, time.Since(c.sent)
	}
	if c.dropped != "" {
		return
	}
	need := len(*to) + len(p)
	if int64(need) > c.max {
		c.drop(droppedSize)
		return
	}
	if need > cap(*to) {
		first := firstCopy
		if length > 0 && length <= c.max {
			first = int(min(length, mostDeclared))
		}
		size := max(need, min(2*cap(*to), int(c.max)), first)
		if more := int64(size - cap(*to)); c.copies.reserve(more) {
			c.reserved += more
		} else {
			c.drop(droppedMemory)
			return
		}
		*to = append(make([]byte, 0, size), *to...)
	}
	*to = append(*to, p...)
}

// drop gives up the copy. The caller holds c.mu.
func (c *copied) drop(why string) {
	c.dropped = why
	c.free()
}

// free gives the memory back. The caller holds c.mu, or is the only user.
func (c *copied) free() {
	c.request, c.answer = nil, nil
	c.copies.release(c.reserved)
	c.reserved = 0
}

// finish ends the copying. clientErr is the error of the client's context.
func (c *copied) finish(clientErr error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done = true
	if c.end == nil && !c.sent.IsZero() { // the client has not read the answer to its end
		if c.end = clientErr; clientErr == nil {
			c.end = io.ErrUnexpectedEOF
		}
		c.took = time.Since(c.sent)
	}
	c.x.upstreamTime, c.x.dropped = c.took, c.dropped
}

// copiedBody is a body whose bytes are copied as they are read.
type copiedBody struct {
	io.ReadCloser
	c      *copied
	to     *[]byte
	length int64 // that its headers declare; negative means unknown
}

// Read copies what it reads.
func (b *copiedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.c.add(b.to, p[:n], b.length, err)
	return n, err
}
