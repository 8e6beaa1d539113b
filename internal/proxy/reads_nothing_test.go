package proxy_test

import (
	"bufio"
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
	for name, c := range map[string]struct {
		pause time.Duration // of the client, after each 64 KiB
		idle  time.Duration // of the upstream, in the middle
		ended time.Duration // the response ends after so long at most
		whole bool
	}{
		"reads nothing": {pause: 24 * time.Hour, ended: 6 * time.Minute},
		"reads slowly":  {pause: 4 * time.Minute, ended: 2 * time.Hour, whole: true},
		"idle upstream": {idle: 30 * time.Minute, ended: time.Hour, whole: true},
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
				s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					defer func() { ended <- time.Since(start) }()
					p.ServeHTTP(w, r)
				})}
				client, server := net.Pipe()
				l := one{make(chan net.Conn, 1)}
				l.conn <- server
				go func() { _ = s.Serve(l) }()
				_, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
				require.NoError(t, err)
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
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
