package proxy_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"net/url"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// A base may write the response itself, in pieces, with trailers.
func TestBaseWrites(t *testing.T) {
	t.Parallel()
	respond := func(r *http.Request) *proxy.Client {
		c := proxy.ClientOf(r.Context())
		c.Begin(&http.Response{StatusCode: 201, Header: http.Header{"X-A": {"1", "2"}, "Connection": {"X-Hop"}, "X-Hop": {"1"}}, Trailer: http.Header{"X-Sum": nil, "X-None": nil}})
		_, _ = io.WriteString(c, "one ")
		return c
	}
	for name, c := range map[string]struct {
		base roundTripper
		want string
	}{
		"whole": {func(r *http.Request) (*http.Response, error) {
			c := respond(r)
			_ = c.FlushError()
			_, _ = io.WriteString(c, "two")
			c.Trail(http.Header{"X-Sum": {"7"}, "X-None": nil}, 2)
			return nil, proxy.ErrSent
		}, "HTTP/1.1 201 Created\nTrailer: X-None, X-Sum\nX-A: 1\nX-A: 2\nConnection: close\nTransfer-Encoding: chunked\n\n4\none \n3\ntwo\n0\nX-Sum: 7\n\n"},
		"broken off": {func(r *http.Request) (*http.Response, error) {
			_ = respond(r).FlushError()
			return nil, io.ErrUnexpectedEOF
		}, "HTTP/1.1 201 Created\nTrailer: X-None, X-Sum\nX-A: 1\nX-A: 2\nConnection: close\nTransfer-Encoding: chunked\n\n4\none \n"},
		"a second request is informed": {func(r *http.Request) (*http.Response, error) {
			inform := func() {
				require.NoError(t, httptrace.ContextClientTrace(r.Context()).Got1xxResponse(103, textproto.MIMEHeader{"Link": {"</a>"}}))
			}
			inform()
			respond(r)
			inform()
			return nil, proxy.ErrSent
		}, "HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 201 Created\nTrailer: X-None, X-Sum\nX-A: 1\nX-A: 2\nConnection: close\nTransfer-Encoding: chunked\n\n4\none \n0\n\n"},
	} {
		require.Equal(t, c.want, sent(t, &url.URL{Scheme: "http", Host: "x"}, c.base, "GET / "+end), name)
	}
}

// Headers that a middleware around the proxy has set are in the last response, also
// behind an interim one, whose own are not.
func TestInformedKeepsHeaders(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		require.NoError(t, httptrace.ContextClientTrace(r.Context()).Got1xxResponse(103, textproto.MIMEHeader{"Link": {"</a>"}, "X-Id": {"8"}}))
		return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody}, nil
	})
	w := httptest.NewRecorder()
	w.Header().Set("X-Id", "7")
	proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	require.Equal(t, []string{"7"}, w.Header()["X-Id"])
	require.NotContains(t, w.Header(), "Link")
}

// An HTTP/2 client may go away while an interim response is written to it. The race
// detector finds if net/http then still reads what the next response changes.
func TestInformedClientGoes(t *testing.T) {
	t.Parallel()
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		for range 20 {
			require.NoError(t, httptrace.ContextClientTrace(r.Context()).Got1xxResponse(103, textproto.MIMEHeader{"Link": {"</a>"}}))
		}
		return &http.Response{StatusCode: 204, Header: http.Header{"X-A": {"1"}}, Body: http.NoBody}, nil
	})
	front := httptest.NewUnstartedServer(proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil))
	front.EnableHTTP2 = true
	front.StartTLS()
	defer front.Close()
	var told atomic.Int64
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error {
			told.Add(1)
			cancel()
			return nil
		}})
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, front.URL, nil)
		require.NoError(t, err)
		if resp, err := front.Client().Do(req); err == nil {
			require.NoError(t, resp.Body.Close())
		}
		cancel()
	}
	require.Positive(t, told.Load())
}

// stalled is a client that takes nothing until it is told to.
type stalled struct {
	*httptest.ResponseRecorder
	asked, taken chan struct{}
}

func (s *stalled) Write(p []byte) (int, error) {
	close(s.asked)
	<-s.taken
	return len(p), nil
}

// A second request that is informed does not wait for the client.
func TestInformedWhileStalled(t *testing.T) {
	t.Parallel()
	w := &stalled{httptest.NewRecorder(), make(chan struct{}), make(chan struct{})}
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		c, written := proxy.ClientOf(r.Context()), make(chan struct{})
		c.Begin(&http.Response{StatusCode: 200, Header: http.Header{}})
		go func() {
			defer close(written)
			_, _ = io.WriteString(c, "text")
		}()
		<-w.asked
		require.NoError(t, httptrace.ContextClientTrace(r.Context()).Got1xxResponse(103, nil))
		close(w.taken)
		<-written
		return nil, proxy.ErrSent
	})
	proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
}

// Nothing reaches a ResponseWriter whose handler has returned.
func TestLateWrites(t *testing.T) {
	t.Parallel()
	var c *proxy.Client
	base := roundTripper(func(r *http.Request) (*http.Response, error) {
		c = proxy.ClientOf(r.Context())
		return &http.Response{StatusCode: 204, Body: http.NoBody}, nil
	})
	w := httptest.NewRecorder()
	proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	w.Flushed = false
	_, err := io.WriteString(c, "late")
	require.Error(t, err)
	require.NoError(t, c.FlushError())
	require.Empty(t, w.Body.String())
	require.False(t, w.Flushed)
}

// A switch of protocols that the client has not asked for, and a final status below
// 200, are errors of the upstream.
func TestNoStatus(t *testing.T) {
	t.Parallel()
	for _, status := range []int{0, 99, http.StatusSwitchingProtocols, 199} {
		body := &closing{closed: make(chan struct{})}
		base := roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"Upgrade": {"x"}}, Body: body}, nil
		})
		require.Contains(t, sent(t, &url.URL{Scheme: "http", Host: "x"}, base, "GET / "+end), "502 Bad Gateway", status)
		<-body.closed
	}
}

// closing is a body that notes that it was closed.
type closing struct{ closed chan struct{} }

func (closing) Read([]byte) (int, error) { return 0, errors.New("read") }

func (c *closing) Close() error { close(c.closed); return nil }
