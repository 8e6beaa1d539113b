package transport_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
)

// redirecting is a server that redirects the model calls of s to another one, which answers
// with body on any path and method.
func redirecting(t *testing.T, s speech, stream bool, code int, body string) (from *httptest.Server, to *url.URL) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if stream {
			w.Header().Set("Content-Type", s.kind)
		}
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(other.Close)
	from = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", other.URL+"/elsewhere?key=secret")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "moved")
	}))
	t.Cleanup(from.Close)
	to, err := url.Parse(other.URL)
	require.NoError(t, err)
	return from, to
}

// TestRedirects: a redirect leads no client past the validation of its model calls.
func TestRedirects(t *testing.T) {
	t.Parallel()
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})
	for name, s := range speeches() {
		for _, stream := range []bool{false, true} {
			path, streamed, _ := strings.Cut(s.path, " ")
			form := s.whole
			if stream {
				form = s.stream
				if streamed != "" {
					path = streamed
				}
			}
			for _, code := range []int{301, 302, 303, 307, 308} {
				t.Run(fmt.Sprintf("%s/stream=%t/%d", name, stream, code), func(t *testing.T) {
					t.Parallel()
					send := func(t *testing.T, c *http.Client, base string) (*http.Response, string) {
						resp, err := c.Post(base+path, "application/json", strings.NewReader(s.request(stream)))
						require.NoError(t, err)
						return resp, read(t, resp)
					}
					refused := func(t *testing.T, resp *http.Response, got string, to *url.URL) {
						require.Equal(t, http.StatusBadRequest, resp.StatusCode, got)
						require.Equal(t, "redirect", resp.Header.Get("X-Toolmend-Error"))
						require.Empty(t, resp.Header.Get("Location"))
						require.Contains(t, got, to.Host)
						require.NotContains(t, got, "secret")
					}
					from, to := redirecting(t, s, stream, code, form("hi", evil))
					resp, got := send(t, http.DefaultClient, proxy(t, transport.New(transport.Options{}, raise), from.URL))
					refused(t, resp, got, to)
					client := &http.Client{Transport: transport.RoundTripper(nil, raise)}
					resp, got = send(t, client, from.URL)
					require.NotContains(t, got, "evil")
					if code < 307 {
						refused(t, resp, got, to)
						return
					}
					from, _ = redirecting(t, s, stream, code, form("hi", `{"n":1}`))
					resp, got = send(t, client, from.URL)
					require.Equal(t, http.StatusOK, resp.StatusCode, got)
					require.Equal(t, []string{`{"n":1}`}, arguments(s.decode(t, got)))
					status := resp.Header.Get("X-Toolmend-Status") + resp.Trailer.Get("X-Toolmend-Status")
					require.Equal(t, "valid", status, "the follow-up is validated")
				})
			}
		}
	}
	t.Run("no address", func(t *testing.T) {
		t.Parallel()
		s := chat()
		u := serve(t, answer(http.StatusSeeOther, ""))
		resp, err := http.Post(proxy(t, transport.New(transport.Options{}, raise), u.URL)+s.path, "application/json", strings.NewReader(s.request(false)))
		require.NoError(t, err)
		read(t, resp)
		require.Equal(t, http.StatusSeeOther, resp.StatusCode, "no client follows it")
	})
}
