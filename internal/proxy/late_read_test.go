package proxy_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// TestReadOutlivesExchange: a Read of a request that is under way when its exchange ends does no
// harm. http.Transport leaves one behind if its connection breaks while it sends the request.
func TestReadOutlivesExchange(t *testing.T) {
	t.Parallel()
	for name, protocol := range map[string]func(*http.Protocols, bool){"HTTP/1": (*http.Protocols).SetHTTP1, "HTTP/2": (*http.Protocols).SetUnencryptedHTTP2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := make(chan error, 1)
			base := roundTripper(func(r *http.Request) (*http.Response, error) {
				began := make(chan struct{})
				go func() {
					_, _ = io.ReadFull(r.Body, make([]byte, 3))
					close(began)
					_, err := r.Body.Read(make([]byte, 1))
					read <- err
				}()
				<-began
				return nil, errors.New("the connection broke")
			})
			h := proxy.New(&url.URL{Scheme: "http", Host: "x"}, base, func(w http.ResponseWriter, _ *http.Request, status int, _, _ string) { w.WriteHeader(status) })
			front := &http.Server{Handler: h, Protocols: new(http.Protocols)}
			protocol(front.Protocols, true)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			go func() { _ = front.Serve(l) }()
			tr := &http.Transport{Protocols: new(http.Protocols)}
			protocol(tr.Protocols, true)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			body, in := io.Pipe()
			go func() { _, _ = io.WriteString(in, "abc") }()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+l.Addr().String(), body)
			require.NoError(t, err)
			resp, err := tr.RoundTrip(req)
			require.NoError(t, err)
			require.Equal(t, http.StatusBadGateway, resp.StatusCode)
			require.Error(t, <-read)
			_ = in.Close()
			require.NoError(t, resp.Body.Close())
			tr.CloseIdleConnections()
			require.NoError(t, front.Close())
		})
	}
}
