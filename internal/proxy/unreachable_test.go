package proxy_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// TestUnreachable holds that the response says why there is no connection, and
// that the client tries again only where that may help.
func TestUnreachable(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	over := func(host string) error {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+host, nil)
		require.NoError(t, err)
		resp, err := tr.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close()
		}
		require.Error(t, err)
		return err
	}
	dial := func(err error) error { return &net.OpError{Op: "dial", Err: err} }
	for name, c := range map[string]struct {
		err   error
		cause string
		want  string
		again bool
	}{
		"refused":          {dial(os.NewSyscallError("connect", syscall.ECONNREFUSED)), "refused", "upstream_refused: the upstream refuses connections", false},
		"no such host":     {dial(&net.DNSError{Err: "no such host", IsNotFound: true}), "dns", "upstream_unknown_host: the host of the upstream does not exist", false},
		"no name server":   {dial(&net.DNSError{Err: "server misbehaving", IsTemporary: true}), "dns", "upstream_unreachable: the host of the upstream cannot be looked up", true},
		"slow name server": {dial(fmt.Errorf("%w: %w", context.DeadlineExceeded, &net.DNSError{IsTimeout: true})), "dns", "upstream_timeout", true},
		"certificate":      {over(secure.Listener.Addr().String()), "tls", "upstream_tls: there is no TLS connection", false},
		"no TLS":           {over(plain.Listener.Addr().String()), "tls", "upstream_tls", false},
		"alert":            {fmt.Errorf("remote error: %w", tls.AlertError(40)), "tls", "upstream_tls", false},
		"another":          {errors.New("EOF"), "", "upstream_unreachable: the connection to the upstream broke before the answer was complete", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.cause, proxy.Cause(c.err), "%#v", c.err)
			got := sent(t, &url.URL{Scheme: "http", Host: "upstream"}, roundTrip(func(*http.Request) (*http.Response, error) { return nil, c.err }), "GET / "+end)
			require.Contains(t, got, c.want)
			if c.again {
				require.NotContains(t, got, "X-Should-Retry")
			} else {
				require.Contains(t, got, "X-Should-Retry: false")
			}
		})
	}
}
