package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// idleLimit cancels a request if its upstream sends nothing while the body of
// the response is read. A client that reads slowly does not count: the time
// runs only during a Read.
type idleLimit struct {
	limit time.Duration // 0 means none
	base  http.RoundTripper
}

// RoundTrip is part of http.RoundTripper.
func (l *idleLimit) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.limit == 0 {
		return l.base.RoundTrip(r)
	}
	ctx, cancel := context.WithCancel(r.Context())
	resp, err := l.base.RoundTrip(r.WithContext(ctx))
	switch {
	case err != nil:
		cancel()
		return nil, err
	case resp.StatusCode == http.StatusSwitchingProtocols: // the body is a connection, in which either side may be silent
		context.AfterFunc(r.Context(), cancel)
		return resp, nil
	case resp.Body == http.NoBody:
		cancel()
		return resp, nil
	}
	b := &idleBody{ReadCloser: resp.Body, limit: l.limit, cancel: cancel}
	b.timer = time.AfterFunc(l.limit, func() { b.late.Store(true); cancel() })
	b.timer.Stop()
	resp.Body = b
	return resp, nil
}

// idleBody is the body of such a response.
type idleBody struct {
	io.ReadCloser
	limit  time.Duration
	timer  *time.Timer // runs during a Read
	late   atomic.Bool
	cancel context.CancelFunc
}

// Read is part of io.Reader.
func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && b.late.Load() {
		err = fmt.Errorf("gateway: the upstream sent nothing for %s, the limit timeouts.idle: %w", b.limit, os.ErrDeadlineExceeded)
	}
	return n, err
}

// Close is part of io.Closer.
func (b *idleBody) Close() error {
	b.timer.Stop()
	defer b.cancel()
	return b.ReadCloser.Close()
}
