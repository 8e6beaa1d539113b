package transport

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/toolmend/toolmend/internal/proxy"
)

// bodyWriter is where the bytes of a stream go, as soon as the client may have them.
type bodyWriter interface {
	// put adds bytes without waiting for the client, if there is a buffer. It may
	// keep b. It returns false if the client takes no more.
	put(b []byte) bool
	// wait waits while too many bytes are unread, and returns what put does.
	wait() bool
	// end adds the last bytes, and sets the error with which the body ends; nil means
	// that it is whole. Only the first call counts.
	end(rest []byte, err error)
	// ended reports whether the client takes no more.
	ended() bool
	// unread reports whether there are bytes that the client has not read.
	hasUnread() bool
}

// mostUnread is the number of unread bytes at which a slow client makes the
// provider wait.
const mostUnread = 1 << 20

// pipe is the body of a response that is streamed to the client. Its writer
// waits for the reader only past mostUnread.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	buf    []byte
	at     int   // the number of bytes that were read
	err    error // returned after the last byte; nil while more may come
	closed bool
	cancel context.CancelFunc // of the step
	untie  func() bool        // from the client's context
}

// newPipe returns a pipe that ends with the error of the client's context.
// Closing it cancels the step.
func newPipe(client context.Context, cancel context.CancelFunc) *pipe {
	p := &pipe{cancel: cancel}
	p.change.L = &p.mu
	p.untie = context.AfterFunc(client, func() { p.stop(client.Err()) })
	return p
}

// Read is part of io.Reader.
func (p *pipe) Read(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.at == len(p.buf) && p.err == nil && !p.closed && len(b) > 0 {
		p.change.Wait()
	}
	if p.closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if p.at == len(p.buf) && p.err != nil {
		return 0, p.err
	}
	n := copy(b, p.buf[p.at:])
	if p.at += n; p.at == len(p.buf) {
		p.buf, p.at = nil, 0
	}
	p.change.Broadcast()
	return n, nil
}

// Close is part of io.Closer.
func (p *pipe) Close() error {
	p.mu.Lock()
	p.closed = true
	p.buf, p.at = nil, 0
	p.change.Broadcast()
	p.mu.Unlock()
	p.untie()
	p.cancel()
	return nil
}

// put is part of shown.
func (p *pipe) put(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.closed {
		return false
	}
	if p.at > len(p.buf)/2 { // bounds the buffer for a reader that never catches up
		p.buf, p.at = append(p.buf[:0], p.buf[p.at:]...), 0
	}
	if len(p.buf) == 0 {
		p.buf = b
	} else {
		p.buf = append(p.buf, b...)
	}
	p.change.Broadcast()
	return true
}

// wait is part of shown.
func (p *pipe) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf)-p.at >= mostUnread && p.err == nil && !p.closed {
		p.change.Wait()
	}
	return p.err == nil && !p.closed
}

// ended is part of shown.
func (p *pipe) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil || p.closed
}

// hasUnread is part of shown.
func (p *pipe) hasUnread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at < len(p.buf)
}

// end is part of shown.
func (p *pipe) end(rest []byte, err error) {
	if p.put(rest); err == nil {
		err = io.EOF
	}
	p.stop(err)
	p.untie()
}

func (p *pipe) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.change.Broadcast()
}

// directWriter writes a stream to the client of a Handler: from the goroutine that reads
// the provider's, and without a buffer. A slow client makes the provider wait.
type directWriter struct {
	client *proxy.Client
	ctx    context.Context
	cancel context.CancelFunc // of the step

	mu   sync.Mutex
	done bool  // end was called
	err  error // of a write, or of end
}

// put is part of shown.
func (d *directWriter) put(b []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(b) && d.flush()
}

// write sends b with the next flush, or at the end of the response. The caller
// holds d.mu.
func (d *directWriter) write(b []byte) bool {
	if d.done || d.err != nil {
		return false
	}
	_, err := d.client.Write(b)
	return d.check(err)
}

// flush sends what write has taken. The caller holds d.mu.
func (d *directWriter) flush() bool { return d.check(d.client.FlushError()) }

// check ends the step if the client has gone. The caller holds d.mu.
func (d *directWriter) check(err error) bool {
	if err != nil {
		d.err = err
		d.cancel()
	}
	return err == nil
}

// wait is part of shown. put has waited for the client.
func (d *directWriter) wait() bool { return !d.ended() }

// ended is part of shown.
func (d *directWriter) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done || d.err != nil || d.ctx.Err() != nil
}

// hasUnread is part of shown. What the client has not read is in its connection.
func (d *directWriter) hasUnread() bool { return false }

// end is part of shown. The end of a whole response goes with its last bytes.
func (d *directWriter) end(rest []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.write(rest) && err != nil {
		d.flush()
	}
	if d.done = true; d.err == nil {
		d.err = err
	}
}

// endDirect ends a response that the client of a Handler has got, and returns
// proxy.ErrSent, or why it broke off.
func (x *exchange) endDirect() error {
	d := x.out.(*directWriter)
	if d.err != nil {
		return d.err
	}
	trailers := x.trailerNames()
	x.fillTrailers(trailers)
	d.client.Trail(trailers, len(trailers))
	return proxy.ErrSent
}

// trailerBody is the body of a stream that is passed on as it arrives. It sets
// the trailers in Read, at the end of the body: net/http does so too, and a
// proxy reads the trailer map only after that.
type trailerBody struct {
	*pipe
	exchange *exchange
	trailer  http.Header
}

// Read is part of io.Reader.
func (b *trailerBody) Read(p []byte) (int, error) {
	n, err := b.pipe.Read(p)
	if err == io.EOF {
		b.exchange.fillTrailers(b.trailer)
	}
	return n, err
}
