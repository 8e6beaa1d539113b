package transport

import (
	"context"
	"sync"

	"github.com/toolmend/toolmend/internal/proxy"
)

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
