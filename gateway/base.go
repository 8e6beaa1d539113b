package gateway

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/toolmend/toolmend/internal/proxy"
)

// newBase returns the transport of an upstream. It decompresses nothing, adds
// no header, and uses the proxy and the certificates of the environment
// (HTTPS_PROXY, NO_PROXY, SSL_CERT_FILE).
func newBase(t Timeouts) *http.Transport {
	d := dialer{
		dial:    (&net.Dialer{Timeout: t.Connect.or(5 * time.Second), KeepAlive: 30 * time.Second}).DialContext,
		refused: t.Refused.or(10 * time.Second),
	}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            d.DialContext,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           1024,
		MaxIdleConnsPerHost:    256,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 1 << 20,
		TLSHandshakeTimeout:    10 * time.Second,
		ExpectContinueTimeout:  time.Second,
		ResponseHeaderTimeout:  t.Header.or(10 * time.Minute),
	}
}

// dialer connects again while the other side refuses connections, because it
// restarts for example. Nothing has been sent by then, so no request is
// repeated.
type dialer struct {
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
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
