package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
)

// newBase returns the transport of an upstream. It decompresses nothing, adds
// no header, and uses the proxy and the certificates of the environment
// (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE).
//
// dial is Options.DialContext.
func newBase(t Timeouts, dial dialFunc) *http.Transport {
	if dial == nil {
		dial = (&net.Dialer{Timeout: t.Connect.or(5 * time.Second), KeepAlive: 30 * time.Second}).DialContext
	}
	d := dialer{dial: dial, refused: t.Refused.or(10 * time.Second)}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            d.DialContext,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second, WriteByteTimeout: 30 * time.Second}, // otherwise a stuck connection is used again and again
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  t.Header.or(10 * time.Minute),
	}
}

// dialFunc opens a connection.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// dialer connects again while the other side refuses connections, because it
// restarts for example. Nothing has been sent by then, so no request is
// repeated.
type dialer struct {
	dial    dialFunc
	refused time.Duration
}

// DialContext is for http.Transport.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	end := time.Now().Add(d.refused)
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := d.dial(ctx, network, address)
		if err == nil || proxy.Cause(err) != "refused" || time.Now().Add(wait).After(end) {
			return conn, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil, err
		}
	}
}

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
