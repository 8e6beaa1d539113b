package gateway

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// idleLimit closes the body of a response if its upstream sends nothing while the
// body is read. A client that reads slowly does not count: the time runs only
// during a Read. The base must let Close interrupt a Read, as http.Transport does.
type idleLimit struct {
	limit time.Duration // 0 means none
	base  http.RoundTripper
}

// RoundTrip gives the response a body with the limit.
func (l *idleLimit) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.base.RoundTrip(r)
	if err != nil || l.limit == 0 || resp.Body == http.NoBody ||
		resp.StatusCode == http.StatusSwitchingProtocols { // the body is a connection, in which either side may be silent
		return resp, err
	}
	b := &idleBody{ReadCloser: resp.Body, limit: l.limit}
	b.timer = time.AfterFunc(l.limit, func() { b.timedOut.Store(true); _ = b.ReadCloser.Close() })
	b.timer.Stop()
	resp.Body = b
	return resp, nil
}

// idleBody is the body of such a response.
type idleBody struct {
	io.ReadCloser
	limit    time.Duration
	timer    *time.Timer // runs during a Read
	timedOut atomic.Bool
}

// Read fails if the upstream sends nothing within the limit.
func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.limit)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF && b.timedOut.Load() {
		err = fmt.Errorf("gateway: the upstream sent nothing for %s, the limit timeouts.idle: %w", b.limit, os.ErrDeadlineExceeded)
	}
	return n, err
}

// Close also stops the timer.
func (b *idleBody) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}
