package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
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

// TestHandlerKeepsReasonsToItself: whoever asks a proxy did not write its chain.
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

func TestHandlerWithoutUpstream(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + l.Addr().String() + "?key=secret"
	require.NoError(t, l.Close())
	at := proxy(t, toys(), address)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for body, want := range map[string]string{
		ask(false): `{"error":{"code":"upstream_unreachable","message":"transport: the upstream did not answer","status":502}}`,
		"hello":    `{"error":{"code":"upstream_unreachable","message":"transport: the upstream did not answer"}}`,
	} {
		resp, err := client.Do(post(t, t.Context(), at, body))
		require.NoError(t, err)
		require.Equal(t, http.StatusBadGateway, resp.StatusCode)
		require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
		require.Equal(t, want, read(t, resp), "in the client's format, and without the address")
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
