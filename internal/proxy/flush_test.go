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

// flushes is a client that notes the body at each flush.
type flushes struct {
	*httptest.ResponseRecorder
	seen []string
}

func (f *flushes) Flush() { f.seen = append(f.seen, f.Body.String()) }

// TestFlushes holds that a response of known length that comes in one piece costs no
// flush, and that nothing which has arrived waits for what has not.
func TestFlushes(t *testing.T) {
	t.Parallel()
	const long = time.Second // virtual
	halves := []string{"first", "after"}
	for name, c := range map[string]struct {
		length int64
		pieces []string         // of the body
		pauses [2]time.Duration // before each piece
		want   []string         // the body at each flush
	}{
		"whole":          {10, []string{"firstafter"}, [2]time.Duration{time.Millisecond}, nil},
		"fast":           {10, halves, [2]time.Duration{time.Millisecond, 0}, []string{"first"}},
		"slow":           {10, halves, [2]time.Duration{long, long}, []string{"", "first"}},
		"unknown length": {-1, halves, [2]time.Duration{long, long}, []string{"", "first", "firstafter"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				body, more := io.Pipe()
				base := roundTrip(func(r *http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: c.length, Request: r}, nil
				})
				client := &flushes{ResponseRecorder: httptest.NewRecorder()}
				go func() {
					for i, piece := range c.pieces {
						<-time.After(c.pauses[i])
						_, _ = io.WriteString(more, piece)
					}
					_ = more.Close()
				}()
				proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, nil).ServeHTTP(client, httptest.NewRequest(http.MethodGet, "/", nil))
				require.Equal(t, "firstafter", client.Body.String())
				require.Equal(t, c.want, client.seen)
			})
		})
	}
}
