package transport

import (
	"context"
	"sync"

	"github.com/toolmend/toolmend/internal/proxy"
)

// direct writes a stream to the client of a Handler: from the goroutine that reads
// the provider's, and without a buffer. A slow client makes the provider wait.
type direct struct {
	client *proxy.Client
	ctx    context.Context
	cancel context.CancelFunc // of the step

	mu   sync.Mutex
	done bool  // end was called
	err  error // of a write, or of end
}

// put is part of shown.
func (d *direct) put(b []byte) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.write(b) && d.flush()
}

// write sends b with the next flush, or at the end of the response. The caller
// holds d.mu.
func (d *direct) write(b []byte) bool {
	if d.done || d.err != nil {
		return false
	}
	_, err := d.client.Write(b)
	return d.note(err)
}

// flush sends what write has taken. The caller holds d.mu.
func (d *direct) flush() bool { return d.note(d.client.FlushError()) }

// note ends the step if the client has gone. The caller holds d.mu.
func (d *direct) note(err error) bool {
	if err != nil {
		d.err = err
		d.cancel()
	}
	return err == nil
}

// wait is part of shown. put has waited for the client.
func (d *direct) wait() bool { return !d.ended() }

// ended is part of shown.
func (d *direct) ended() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.done || d.err != nil || d.ctx.Err() != nil
}

// unread is part of shown. What the client has not read is in its connection.
func (d *direct) unread() bool { return false }

// end is part of shown. The end of a whole response goes with its last bytes.
func (d *direct) end(rest []byte, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.write(rest) && err != nil {
		d.flush()
	}
	if d.done = true; d.err == nil {
		d.err = err
	}
}

// sent ends a response that the client of a Handler has got, and returns
// proxy.ErrSent, or why it broke off.
func (s *step) sent() error {
	d := s.shown.(*direct)
	if d.err != nil {
		return d.err
	}
	trailers := s.announced()
	s.trailers(trailers)
	d.client.Trail(trailers, len(trailers))
	return proxy.ErrSent
}
