package transport_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
)

// proxy serves tr's Handler for the upstream at address.
func proxy(t *testing.T, tr *transport.Transport, address string) string {
	to, err := url.Parse(address)
	require.NoError(t, err)
	s := httptest.NewServer(tr.Handler(to))
	t.Cleanup(s.Close)
	return s.URL
}

// TestHandlerKeepsReasonsToItself: the users of a proxy did not write its chain.
func TestHandlerKeepsReasonsToItself(t *testing.T) {
	t.Parallel()
	down := around(func(context.Context, *middleware.Request, middleware.ModelCall) (*middleware.Response, error) {
		return nil, errors.New("dial tcp 10.0.0.1:5432: password=hunter2")
	})
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(post(t, t.Context(), proxy(t, toys(down), serve(t).URL), ask(false)))
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	got := read(t, resp)
	require.Contains(t, got, "middleware_error")
	require.NotContains(t, got, "hunter2")
}

func TestHandlerForwards(t *testing.T) {
	t.Parallel()
	u := serve(t, answer(http.StatusTeapot, "short and stout", "X-Kettle", "1"), answer(http.StatusOK, words))
	at := proxy(t, toys(), u.URL+"/below")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/v1/models?a=b", nil)
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("Connection", "X-Hop")
	req.Header.Set("X-Hop", "1")
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	require.NoError(t, err)
	require.Equal(t, "short and stout", read(t, resp))
	require.Equal(t, "1", resp.Header.Get("X-Kettle"))
	require.Equal(t, http.StatusTeapot, resp.StatusCode)
	got := u.got[0]
	require.Equal(t, "/below/v1/models?a=b", got.URL.String())
	require.Equal(t, strings.TrimPrefix(u.URL, "http://"), got.Host)
	require.Equal(t, "Bearer k", got.Header.Get("Authorization"))
	require.Empty(t, got.Header.Get("X-Hop"))
	require.Empty(t, got.Header.Get("X-Forwarded-For"))

	resp, err = client.Do(post(t, t.Context(), at, ask(false)))
	require.NoError(t, err)
	require.Equal(t, words, read(t, resp))
	require.Equal(t, "/below/v1/toy", u.got[1].URL.Path)
}

// A whole answer that came in chunks is sent in one piece, with its length.
func TestHandlerSendsTheLength(t *testing.T) {
	t.Parallel()
	s := chat()
	body := s.whole(strings.Repeat("Hello. ", 1000), `{"n":1}`)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		send(w, body[:100])
		send(w, body[100:])
	}))
	t.Cleanup(upstream.Close)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	at := proxy(t, transport.New(transport.Options{}, validate()), upstream.URL)
	resp, err := client.Post(at+s.path, "application/json", strings.NewReader(s.request(false)))
	require.NoError(t, err)
	require.Equal(t, body, read(t, resp))
	require.EqualValues(t, len(body), resp.ContentLength)
	require.Empty(t, resp.TransferEncoding)
}

func TestHandlerWithoutUpstream(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + l.Addr().String() + "?key=secret"
	require.NoError(t, l.Close())
	at := proxy(t, toys(), address)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, body := range []string{ask(false), "hello"} {
		resp, err := client.Do(post(t, t.Context(), at, body))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		require.Equal(t, "false", resp.Header.Get("X-Should-Retry"))
		require.Equal(t, "upstream_refused", resp.Header.Get("X-Toolmend-Error"))
		require.Equal(t, `{"error":{"code":"upstream_refused","message":"transport: the upstream refuses connections; check that it runs, and its address","status":502}}`,
			read(t, resp), "in the client's format, and without the address")
	}
	resp, err := client.Get(at + "/other")
	require.NoError(t, err)
	require.Equal(t, http.StatusBadGateway, resp.StatusCode)
	require.Equal(t, `{"error":{"code":"upstream_refused","message":"transport: the upstream refuses connections; check that it runs, and its address"}}`, read(t, resp))
}

// TestHandlerUnavailableStatus: Codex repeats a 5xx thirty times, so the format
// chooses the status. After another network error the client may try again.
func TestHandlerUnavailableStatus(t *testing.T) {
	t.Parallel()
	to := &url.URL{Scheme: "http", Host: "upstream.invalid"}
	for _, c := range []struct {
		path, body string
		err        error
		status     int
		retry      string
	}{
		{"/v1/responses", `{"model":"m","input":"Hello."}`, syscall.ECONNREFUSED, http.StatusBadRequest, "false"},
		{"/v1/responses", `not read`, syscall.ECONNREFUSED, http.StatusBadRequest, "false"},
		{"/v1/responses", `{"model":"m","input":"Hello."}`, io.ErrUnexpectedEOF, http.StatusBadGateway, ""},
		{"/v1/responses", `{"model":"m","input":"Hello."}`, os.ErrDeadlineExceeded, http.StatusGatewayTimeout, ""},
		{"/v1/messages", `{"model":"m","messages":[]}`, syscall.ECONNREFUSED, http.StatusBadGateway, "false"},
		{"/v1/messages", `{"model":"m","messages":[]}`, syscall.ECONNRESET, http.StatusBadGateway, ""},
		{"/v1/models", ``, syscall.ECONNREFUSED, http.StatusBadGateway, "false"},
	} {
		h := transport.New(transport.Options{Base: doer(func(*http.Request) (*http.Response, error) {
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: c.err}
		})}).Handler(to)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, c.path, strings.NewReader(c.body)))
		require.Equal(t, c.status, w.Code, c.path)
		require.Equal(t, c.retry, w.Header().Get("X-Should-Retry"), c.path)
		require.Contains(t, w.Body.String(), `"error"`)
		require.NotContains(t, w.Body.String(), "upstream.invalid")
	}
}

// RoundTrip is part of http.RoundTripper.
func (d doer) RoundTrip(r *http.Request) (*http.Response, error) { return d(r) }

// TestHandlerForwardsUntouched: httputil removes parts of a query that Go cannot
// parse, the headers of other proxies, and the values of trailers.
func TestHandlerForwardsUntouched(t *testing.T) {
	t.Parallel()
	var got *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got = r
	}))
	t.Cleanup(s.Close)
	at := proxy(t, toys(), s.URL)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+"/upload?a;b&%zz=%&&c=1", io.NopCloser(strings.NewReader("body")))
	require.NoError(t, err)
	req.Header.Set("X-Forwarded-For", "192.0.2.1")
	req.Header.Set("Forwarded", "for=192.0.2.1")
	req.Trailer = http.Header{"X-Sum": {"1"}}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	read(t, resp)
	require.Equal(t, "a;b&%zz=%&&c=1", got.URL.RawQuery)
	require.Equal(t, "192.0.2.1", got.Header.Get("X-Forwarded-For"))
	require.Equal(t, "for=192.0.2.1", got.Header.Get("Forwarded"))
	require.Equal(t, "1", got.Trailer.Get("X-Sum"))
}

// TestHandlerUpgrade: behind an upgrade no call could be validated. So a model
// call is sent without one, as Java's client asks for h2c with each request, and
// an upstream that switches all the same is refused. Elsewhere only a WebSocket
// passes: through h2c, a client could send model calls.
func TestHandlerUpgrade(t *testing.T) {
	t.Parallel()
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header.Get("Upgrade")
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+cmp.Or(asked, "h2c")+"\r\n\r\nunchecked")
	}))
	t.Cleanup(s.Close)
	at := proxy(t, toys(), s.URL)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for _, c := range []struct {
		path, upgrade string
		asked         string
		status        int
	}{
		{"/v1/toy", "h2c", "", http.StatusBadGateway},
		{"/other", "h2c", "", http.StatusBadGateway},
		{"/other", "websocket, h2c", "", http.StatusBadGateway},
		{"/other", "websocket", "websocket", http.StatusSwitchingProtocols},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, at+c.path, strings.NewReader(ask(false)))
		require.NoError(t, err)
		req.Header.Set("Connection", "Upgrade")
		req.Header.Set("Upgrade", c.upgrade)
		resp, err := client.Do(req)
		require.NoError(t, err)
		text := read(t, resp)
		require.Equal(t, c.status, resp.StatusCode, text)
		require.Equal(t, c.asked, asked)
		require.Equal(t, c.status == http.StatusSwitchingProtocols, strings.Contains(text, "unchecked"))
	}
}

func TestHandlerPanics(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() { transport.Handler(nil) })
	require.Panics(t, func() { transport.Handler(&url.URL{Path: "/v1"}) })
}

// TestNoKeys: the address of a request may hold a key, and the error of a
// client holds the address.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + l.Addr().String()
	require.NoError(t, l.Close())
	ctx, call := transport.Watch(t.Context())
	req := post(t, ctx, address, ask(false), "Authorization", "Bearer secret")
	req.URL.RawQuery = "key=secret"
	_, err = hooked(t, toys())(req)
	var bare *url.Error
	require.ErrorAs(t, err, &bare, "the client's own error, as it came")
	require.Error(t, call.Err())
	require.NotContains(t, call.Err().Error(), "secret")
	require.NotContains(t, call.Report().Attempts[0].Err.Error(), "secret")

	masked := errors.New("no luck at key=secret")
	u := serve(t, answer(http.StatusOK, words))
	req = post(t, ctx, u.URL, ask(false))
	req.URL.RawQuery = "key=secret"
	resp, err := hooked(t, toys(failing(masked)))(req)
	require.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.NotContains(t, string(b), "secret")
}
