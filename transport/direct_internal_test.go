package transport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// flushes is a client that notes its new bytes at each flush, and when that was.
type flushes struct {
	*httptest.ResponseRecorder
	start time.Time
	sent  int
	seen  []flushed
}

type flushed struct {
	after time.Duration
	bytes string
}

func (f *flushes) Flush() {
	f.seen = append(f.seen, flushed{time.Since(f.start), f.Body.String()[f.sent:]})
	f.sent = f.Body.Len()
}

type baseFunc func(*http.Request) (*http.Response, error)

func (f baseFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDirectWriterWaitsForMore: bytes that others follow at once are sent with them, and soon if
// none follow.
func TestDirectWriterWaitsForMore(t *testing.T) {
	t.Parallel()
	const pause = time.Second // virtual
	type piece struct {
		bytes string
		more  bool
		pause time.Duration // after it
	}
	for name, c := range map[string]struct {
		pieces []piece
		want   []flushed
	}{
		"none":         {[]piece{{"a", false, pause}, {"b", false, 0}}, []flushed{{0, "a"}, {pause, "b"}}},
		"one":          {[]piece{{"a", true, 0}, {"b", false, 0}}, []flushed{{0, "ab"}}},
		"several":      {[]piece{{"a", true, 0}, {"b", true, 0}, {"c", false, pause}}, []flushed{{0, "abc"}}},
		"it is late":   {[]piece{{"a", true, pause}, {"b", true, pause}, {"c", false, 0}}, []flushed{{moreDelay, "a"}, {pause + moreDelay, "b"}, {2 * pause, "c"}}},
		"at the end":   {[]piece{{"a", true, 0}}, nil}, // the server sends it
		"sent already": {[]piece{{"a", true, 0}, {"b", false, pause}}, []flushed{{0, "ab"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				client := &flushes{ResponseRecorder: httptest.NewRecorder(), start: time.Now()}
				base := baseFunc(func(r *http.Request) (*http.Response, error) {
					d := &directWriter{client: proxy.ClientOf(r.Context()), ctx: r.Context(), cancel: func() {}}
					d.client.Begin(&http.Response{StatusCode: http.StatusOK, Header: http.Header{}})
					for _, p := range c.pieces {
						require.True(t, d.put([]byte(p.bytes), p.more))
						<-time.After(p.pause)
					}
					d.end(nil, nil)
					seen := len(client.seen)
					<-time.After(pause)
					require.Len(t, client.seen, seen, "after the end")
					return nil, proxy.ErrSent
				})
				proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/", nil))
				require.Equal(t, c.want, client.seen)
			})
		})
	}
}

// unflushable is a client whose Flush panics.
type unflushable struct{ *httptest.ResponseRecorder }

func (unflushable) Flush() { panic("flush") }

// TestDirectWriterWhoseLateFlushPanics: the panic is in a timer's goroutine, and ends the response only.
func TestDirectWriterWhoseLateFlushPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		base := baseFunc(func(r *http.Request) (*http.Response, error) {
			d := &directWriter{client: proxy.ClientOf(r.Context()), ctx: r.Context(), cancel: cancel}
			d.client.Begin(&http.Response{StatusCode: http.StatusOK, Header: http.Header{}})
			require.True(t, d.put([]byte("a"), true))
			<-ctx.Done()
			require.False(t, d.wait())
			require.ErrorAs(t, d.err, new(*Panic))
			return nil, proxy.ErrSent
		})
		proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(unflushable{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, "/", nil))
	})
}
