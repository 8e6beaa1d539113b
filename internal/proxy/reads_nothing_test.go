package proxy_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// one is a listener with one connection.
type one struct{ conn chan net.Conn }

func (l one) Accept() (net.Conn, error) {
	if c, ok := <-l.conn; ok {
		return c, nil
	}
	return nil, net.ErrClosed
}
func (one) Close() error   { return nil }
func (one) Addr() net.Addr { return &net.TCPAddr{} }

// TestReadsNothing: a client that reads nothing keeps its connection and its place for a bounded
// time. One that reads slowly gets the whole response, and an idle stream goes on.
func TestReadsNothing(t *testing.T) {
	t.Parallel()
	const size = 1 << 20
	http2 := new(http.Protocols)
	http2.SetUnencryptedHTTP2(true)
	for name, c := range map[string]struct {
		protocols *http.Protocols
		pause     time.Duration // of the client, after each 64 KiB
		idle      time.Duration // of the upstream, in the middle
		ended     time.Duration // the response ends after so long at most
		whole     bool
	}{
		"reads nothing": {pause: 24 * time.Hour, ended: 6 * time.Minute},
		"reads slowly":  {pause: 4 * time.Minute, ended: 2 * time.Hour, whole: true},
		"idle upstream": {idle: 30 * time.Minute, ended: time.Hour, whole: true},

		"reads nothing, HTTP/2": {protocols: http2, pause: 24 * time.Hour, ended: 6 * time.Minute},
		"reads slowly, HTTP/2":  {protocols: http2, pause: 4 * time.Minute, ended: 2 * time.Hour, whole: true},
		"idle upstream, HTTP/2": {protocols: http2, idle: 30 * time.Minute, ended: time.Hour, whole: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				base := roundTripper(func(r *http.Request) (*http.Response, error) {
					in, out := io.Pipe()
					go func() {
						_, _ = io.WriteString(out, strings.Repeat("a", size/2))
						time.Sleep(c.idle)
						_, _ = io.WriteString(out, strings.Repeat("a", size/2))
						_ = out.Close()
					}()
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: in, ContentLength: -1, Request: r}, nil
				})
				p := proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil)
				start, ended := time.Now(), make(chan time.Duration, 1)
				s := &http.Server{Protocols: c.protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { ended <- time.Since(start) }()
					p.ServeHTTP(w, r)
				})}
				client, server := net.Pipe()
				l := one{make(chan net.Conn, 1)}
				l.conn <- server
				go func() { _ = s.Serve(l) }()
				transport := &http.Transport{
					Protocols: c.protocols, HTTP2: &http.HTTP2Config{MaxReceiveBufferPerStream: 64 << 10},
					DialContext: func(context.Context, string, string) (net.Conn, error) { return client, nil },
				}
				req, err := http.NewRequest(http.MethodGet, "http://x/", nil)
				require.NoError(t, err)
				req.Close = true
				resp, err := transport.RoundTrip(req)
				require.NoError(t, err)
				read, buf := 0, make([]byte, 64<<10)
				for err == nil {
					var n int
					time.Sleep(c.pause)
					n, err = io.ReadFull(resp.Body, buf)
					read += n
				}
				_ = resp.Body.Close()
				require.Less(t, <-ended, c.ended)
				require.Equal(t, c.whole, read == size)
				require.NoError(t, client.Close())
				close(l.conn)
				require.NoError(t, s.Close())
			})
		})
	}
}
