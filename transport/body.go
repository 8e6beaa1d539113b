package transport

import (
	"context"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
)

// bodyWriter sends the client a stream while it arrives: a pipe, or a directWriter.
type bodyWriter interface {
	// put adds bytes, and may keep b. more means that further bytes are there already, so these may
	// wait for them a moment. A pipe does not wait for the client. It returns false if the client
	// reads no more.
	put(b []byte, more bool) bool
	// wait waits while too many bytes are unread. It returns false if the client reads no more.
	wait() bool
	// end adds the last bytes, and sets the error with which the body ends; nil means that it is
	// complete. Further calls do nothing.
	end(rest []byte, err error)
	// ended reports whether end was called, or the client reads no more.
	ended() bool
	// hasUnread reports whether the buffer has bytes that the client has not read.
	hasUnread() bool
}

// mostUnread is the number of unread bytes at which a slow client makes the
// provider wait.
const mostUnread = 1 << 20

// pipe is the body of a streamed response that the client reads. It is a buffer: its writer
// waits only if more than mostUnread bytes are unread.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	buf    []byte
	at     int   // number of bytes of buf that were read
	err    error // after the last byte; nil while more bytes may come
	closed bool
	cancel context.CancelFunc // of the exchange
	untie  func() bool        // ends the cancellation by the client's context
}

// newPipe returns a pipe that ends with the error of the client's context. Close calls cancel.
func newPipe(client context.Context, cancel context.CancelFunc) *pipe {
	p := &pipe{cancel: cancel}
	p.change.L = &p.mu
	p.untie = context.AfterFunc(client, func() { p.stop(client.Err()) })
	return p
}

// Read waits for bytes of the stream.
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

// Close cancels the exchange.
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

func (p *pipe) put(b []byte, _ bool) bool {
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

func (p *pipe) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf)-p.at >= mostUnread && p.err == nil && !p.closed {
		p.change.Wait()
	}
	return p.err == nil && !p.closed
}

func (p *pipe) ended() bool { return locked(&p.mu, func() bool { return p.err != nil || p.closed }) }

func (p *pipe) hasUnread() bool { return locked(&p.mu, func() bool { return p.at < len(p.buf) }) }

func (p *pipe) end(rest []byte, err error) {
	if p.put(rest, false); err == nil {
		err = io.EOF
	}
	p.stop(err)
	p.untie()
}

// stop sets the error with which the body ends, unless there is one.
func (p *pipe) stop(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.change.Broadcast()
}

// directWriter writes a stream to the client of a Handler, from the goroutine that reads the
// stream of the provider. It has no buffer, so a slow client makes the provider wait.
type directWriter struct {
	client *proxy.Client
	ctx    context.Context
	cancel context.CancelFunc // of the exchange

	mu   sync.Mutex
	done bool        // end was called
	err  error       // of a write, or of end
	late *time.Timer // flushes bytes that no others have followed; nil before the first ones that wait
}

// moreDelay is how long written bytes wait for those that follow at once.
const moreDelay = time.Millisecond

func (d *directWriter) put(b []byte, more bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if ok := d.write(b); !ok || !more {
		return ok && d.flush()
	}
	d.late = time.AfterFunc(moreDelay, d.flushLate)
	return true
}

// flushLate flushes bytes that no others have followed. It runs in a goroutine of the timer, where a
// panic would end the program: it makes a panic the error of the response.
func (d *directWriter) flushLate() {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() {
		if value := recover(); value != nil {
			d.check(&Panic{Value: value, Stack: debug.Stack()})
		}
	}()
	if d.write(nil) {
		d.flush()
	}
}

// write writes b, which the client gets with the next flush. The caller holds d.mu.
func (d *directWriter) write(b []byte) bool {
	if d.done || d.err != nil {
		return false
	}
	if d.late != nil {
		d.late.Stop()
	}
	_, err := d.client.Write(b)
	return d.check(err)
}

// flush sends the written bytes. The caller holds d.mu.
func (d *directWriter) flush() bool { return d.check(d.client.FlushError()) }

// check cancels the exchange if a write failed. The caller holds d.mu.
func (d *directWriter) check(err error) bool {
	if err != nil {
		d.err = err
		d.cancel()
	}
	return err == nil
}

// wait does not wait: put has waited for the client.
func (d *directWriter) wait() bool { return !d.ended() }

func (d *directWriter) ended() bool {
	return locked(&d.mu, func() bool { return d.done || d.err != nil || d.ctx.Err() != nil })
}

// hasUnread returns false: there is no buffer.
func (d *directWriter) hasUnread() bool { return false }

// end leaves the last flush of a complete response to the server, which sends the last bytes
// and the end in one piece.
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

// endDirect sends the trailers of a response that went to the client of a Handler. It returns
// proxy.ErrSent, or the reason why the response broke off.
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

// trailerBody is a pipe that sets the trailers of the response at its end, in Read. net/http does
// so too, and a proxy reads the trailers only then.
type trailerBody struct {
	*pipe
	exchange *exchange
	trailer  http.Header
}

// Read sets the trailers with io.EOF.
func (b *trailerBody) Read(p []byte) (int, error) {
	n, err := b.pipe.Read(p)
	if err == io.EOF {
		b.exchange.fillTrailers(b.trailer)
	}
	return n, err
}
