package transport_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// hedged makes two model calls at once, and returns one of their results.
var hedged = around(func(ctx context.Context, req *middleware.Request, next middleware.ModelCall) (resp *middleware.Response, err error) {
	var both sync.WaitGroup
	for range 2 {
		other := *req
		other.Sink = nil
		both.Go(func() { _, _ = next(ctx, &other) })
	}
	resp, err = next(ctx, req)
	both.Wait()
	return resp, err
})

// TestHandlerAroundATransport: what the base of a Handler does with its requests is not
// written to the Handler's client, be the base another Transport or another Handler in
// the same process.
func TestHandlerAroundATransport(t *testing.T) {
	t.Parallel()
	to := &url.URL{Scheme: "http", Host: "up"}
	s := chat()
	sent := s.stream("Hello.", `{"n":1}`)
	upstream := doer(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		events(sent)(w, r)
		return w.Result(), nil
	})
	inner := transport.New(transport.Options{Base: upstream}, validate())
	for name, base := range map[string]http.RoundTripper{
		"transport": inner.RoundTripper(upstream),
		"handler": doer(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			inner.Handler(to).ServeHTTP(w, r)
			return w.Result(), nil
		}),
	} {
		w := httptest.NewRecorder()
		transport.New(transport.Options{Base: base}, validate(), hedged).Handler(to).ServeHTTP(w, httptest.NewRequest(http.MethodPost, s.path, strings.NewReader(s.request(true))))
		require.Equal(t, http.StatusOK, w.Code, name)
		require.Equal(t, sent, w.Body.String(), name)
	}
}

// foreign is a format whose errors differ from those of the client's.
type foreign struct{ wire.Codec }

func (foreign) EncodeError(int, string, string) []byte { return []byte("foreign") }

// The client of a Handler gets errors in the Handler's format, not in one of a Transport
// behind it.
func TestHandlerKeepsItsFormat(t *testing.T) {
	t.Parallel()
	s := chat()
	down := doer(func(*http.Request) (*http.Response, error) { return nil, syscall.ECONNREFUSED })
	base := transport.New(transport.Options{Codecs: []wire.Codec{foreign{s.codec}}}).RoundTripper(down)
	w := httptest.NewRecorder()
	transport.New(transport.Options{Base: base}, hedged).Handler(&url.URL{Scheme: "http", Host: "up"}).
		ServeHTTP(w, httptest.NewRequest(http.MethodPost, s.path, strings.NewReader(s.request(false))))
	require.Contains(t, w.Body.String(), "the upstream refuses connections")
}
