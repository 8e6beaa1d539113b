package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The headers of a stream are flushed at once, unless its body has begun: then they go
// with the first bytes.
func TestHeadersGoWithABodyThatHasBegun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		body io.ReadCloser
		want string
	}{
		"begun":     {begun{slow{strings.NewReader("data")}}, "headers write flush"},
		"not begun": {slow{strings.NewReader("data")}, "headers flush write flush"},
	} {
		synctest.Test(t, func(t *testing.T) {
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				_, _ = io.Copy(io.Discard, r.Body)
				return &http.Response{StatusCode: 200, Request: r, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: c.body}, nil
			})
			h := New(&url.URL{Scheme: "http", Host: "up"}, base, nil)
			w := &calls{header: http.Header{}}
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader("{}")))
			require.Equal(t, c.want, strings.Join(w.seen, " "), name)
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// slow is a body that pauses before each Read.
type slow struct{ io.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second) // virtual
	return s.Reader.Read(p)
}

func (slow) Close() error { return nil }

type begun struct{ slow }

func (begun) Begun() {}

// calls is a ResponseWriter that notes what is called.
type calls struct {
	header http.Header
	seen   []string
}

func (c *calls) Header() http.Header { return c.header }
func (c *calls) WriteHeader(int)     { c.seen = append(c.seen, "headers") }
func (c *calls) Flush()              { c.seen = append(c.seen, "flush") }
func (c *calls) Write(p []byte) (int, error) {
	c.seen = append(c.seen, "write")
	return len(p), nil
}
