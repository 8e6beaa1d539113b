package proxy_test

import (
	"bufio"
	"fmt"
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

// oneConn is a listener with one connection.
type oneConn struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l oneConn) Close() error { close(l.closed); return nil }
func (oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// TestSlowBodies: a body that trickles is refused, and one that comes slowly is not. A body
// that follows the beginning of the response has no limit.
func TestSlowBodies(t *testing.T) {
	t.Parallel()
	whole := roundTripper(func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(fmt.Sprint(len(body))))}, err
	})
	slow := roundTripper(func(r *http.Request) (*http.Response, error) { // the provider's own pauses do not count
		for range 10 {
			time.Sleep(30 * time.Second)
			_, _ = io.CopyN(io.Discard, r.Body, 1000)
		}
		return whole(r)
	})
	talk := roundTripper(func(r *http.Request) (*http.Response, error) {
		out, in := io.Pipe()
		go func() {
			n, err := io.Copy(io.Discard, r.Body)
			_, _ = fmt.Fprint(in, n, err)
			_ = in.Close()
		}()
		return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{}, Body: io.NopCloser(io.MultiReader(strings.NewReader("begun "), out))}, nil
	})
	for name, c := range map[string]struct {
		base   roundTripper
		pieces int // each of size bytes, one after each pause
		size   int
		pause  time.Duration
		want   string
		took   time.Duration
	}{
		"a byte a second":         {whole, 1000, 1, time.Second, "400 invalid_body", 61 * time.Second},
		"nothing":                 {whole, 1, 1, time.Hour, "400 invalid_body", 61 * time.Second},
		"slowly, but alive":       {whole, 60, 10_000, 19 * time.Second, "200 600000", 0},
		"a pause at the begin":    {whole, 1, 10, 50 * time.Second, "200 10", 0},
		"a provider that pauses":  {slow, 20, 1000, time.Millisecond, "200 10000", 0},
		"a conversation, by turn": {talk, 10, 1, 10 * time.Minute, "200 begun 10 <nil>", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := proxy.New(&url.URL{Scheme: "http", Host: "x"}, c.base, func(w http.ResponseWriter, _ *http.Request, status int, code, message string) {
					require.Contains(t, message, "too slowly")
					w.WriteHeader(status)
					_, _ = io.WriteString(w, code)
				})
				front := &http.Server{Handler: h}
				l := oneConn{make(chan net.Conn, 1), make(chan struct{})}
				go func() { _ = front.Serve(l) }()
				client, server := net.Pipe()
				l.conns <- server
				start := time.Now()
				go func() {
					_, _ = fmt.Fprintf(client, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n", c.pieces*c.size)
					for range c.pieces {
						select {
						case <-time.After(c.pause):
						case <-t.Context().Done():
							return
						}
						if _, err := io.WriteString(client, strings.Repeat("x", c.size)); err != nil {
							return
						}
					}
				}()
				resp, err := http.ReadResponse(bufio.NewReader(client), nil)
				require.NoError(t, err)
				if c.took > 0 {
					require.LessOrEqual(t, time.Since(start), c.took)
				}
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, c.want, fmt.Sprint(resp.StatusCode, " ", string(text)))
				_ = client.Close()
				require.NoError(t, front.Close())
				time.Sleep(time.Minute) // net/http lingers
			})
		})
	}
}
