package transport

import (
	"context"
	"io"
	"net/http"
	"sync"
)

// mostUnread is how many bytes may wait for a slow client before the provider
// has to.
const mostUnread = 1 << 20

// pipe is the body of an answer that is shown as it comes. Its writer never
// waits for its reader but past mostUnread.
type pipe struct {
	mu     sync.Mutex
	change sync.Cond
	buf    []byte
	at     int   // up to where it was read
	err    error // behind the last byte; nil: more may come
	closed bool
	cancel context.CancelFunc // of the step
	untie  func() bool        // from the client's context
}

// newPipe returns a pipe that ends with the error of the client's context, and
// that cancels the step when the client closes it.
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
		p.buf, p.at = p.buf[:0], 0
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

// write adds bytes for the client, and waits while too many are unread; false
// says that nobody reads them.
func (p *pipe) write(b []byte) bool {
	return p.put(b) && p.wait()
}

// put adds bytes for the client at once.
func (p *pipe) put(b []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.closed {
		return false
	}
	if p.at > len(p.buf)/2 { // a reader that is always a little late
		p.buf, p.at = append(p.buf[:0], p.buf[p.at:]...), 0
	}
	p.buf = append(p.buf, b...)
	p.change.Broadcast()
	return true
}

// wait blocks while too much is unread.
func (p *pipe) wait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.buf)-p.at >= mostUnread && p.err == nil && !p.closed {
		p.change.Wait()
	}
	return p.err == nil && !p.closed
}

// ended reports whether the client takes no more.
func (p *pipe) ended() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil || p.closed
}

// unread reports whether the client has something to read.
func (p *pipe) unread() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at < len(p.buf)
}

// end says what Read returns behind the last byte; nil is io.EOF. The first
// call counts.
func (p *pipe) end(err error) {
	if err == nil {
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
