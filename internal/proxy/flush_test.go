package proxy_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// flushes is a client that counts flushes.
type flushes struct {
	*httptest.ResponseRecorder
	n    int
	seen string // the body at the last flush
}

func (f *flushes) Flush() { f.n, f.seen = f.n+1, f.Body.String() }

// TestFlushes holds that a response that comes in one piece costs no flush, that
// a slow one with a length does not wait for its end, and that a stream does not
// wait at all.
func TestFlushes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		length int64
		slow   bool
		waits  time.Duration
		want   int
	}{
		"whole":          {10, false, time.Millisecond, 0},
		"slow":           {10, true, 10 * time.Millisecond, 1},
		"unknown length": {-1, true, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body, more := io.Pipe()
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: c.length, Request: r}, nil
				})
				client := &flushes{ResponseRecorder: httptest.NewRecorder()}
				done := make(chan struct{})
				go func() {
					defer close(done)
					proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/", nil))
				}()
				_, _ = io.WriteString(more, "first")
				if c.slow {
					<-time.After(c.waits)
					synctest.Wait()
					require.Equal(t, "first", client.seen)
					require.Equal(t, c.want, client.n)
				}
				_, _ = io.WriteString(more, "after")
				require.NoError(t, more.Close())
				<-done
				require.Equal(t, "firstafter", client.Body.String())
				if !c.slow {
					require.Zero(t, client.n)
				}
			})
		})
	}
}
