package gateway_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// TestEarlyAnswers: an upstream may answer before it has read the request, or
// break off. The gateway's connections to its clients stay whole: nothing
// panics, and no response is that of another request.
func TestEarlyAnswers(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("X-Play") {
		case "early":
			w.Header().Set("X-Play", "early")
			w.WriteHeader(http.StatusRequestEntityTooLarge)
			_, _ = io.WriteString(w, "too large")
		case "half":
			_, _ = io.CopyN(io.Discard, r.Body, 100)
			panic(http.ErrAbortHandler)
		default:
			n, _ := io.Copy(io.Discard, r.Body)
			w.Header().Set("X-Play", "whole")
			_, _ = io.WriteString(w, strings.Repeat("x", int(n%1000)))
		}
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: s.URL}}}, gateway.Options{})
	require.NoError(t, err)
	front := httptest.NewUnstartedServer(g)
	panics := &lines{}
	front.Config.ErrorLog = log.New(panics, "", 0)
	front.Start()
	t.Cleanup(func() { front.Close(); require.NoError(t, g.Close()) })
	client := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(client.CloseIdleConnections)
	fresh := &http.Transport{DisableKeepAlives: true} // a new connection for each request
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			for k := range 60 {
				play, size := []string{"whole", "early", "half"}[(i+k)%3], []int{0, 3, 5000, 300 << 10, 1 << 20}[k%5]
				var body io.Reader = strings.NewReader(strings.Repeat("a", size))
				if k%2 == 0 {
					body = struct{ io.Reader }{body} // chunked
				}
				req, err := http.NewRequestWithContext(t.Context(), "POST", front.URL+"/v1/files", body)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("X-Play", play)
				// After an early response net/http's server may close a connection that
				// the client has just taken from its pool. Then the client has to be able
				// to send the request again, as without a gateway.
				req.Header.Set("Idempotency-Key", "any")
				req.GetBody = func() (io.ReadCloser, error) {
					return io.NopCloser(strings.NewReader(strings.Repeat("a", size))), nil
				}
				resp, err := client.RoundTrip(req)
				if err != nil && play == "whole" { // net/http does not repeat a body of which it has sent a part
					req = req.Clone(t.Context())
					req.Body, _ = req.GetBody()
					resp, err = fresh.RoundTrip(req)
				}
				if err != nil { // net/http's client may lose an early response to its own failed write
					if play == "whole" {
						t.Error(err)
					}
					continue
				}
				text, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				switch got := resp.Header.Get("X-Play"); {
				case play == "half" && resp.StatusCode != http.StatusBadGateway, play != "half" && got != play:
					t.Errorf("%s: %d %s", play, resp.StatusCode, text)
				case play == "whole" && (err != nil || len(text) != size%1000):
					t.Errorf("%d of %d bytes: %v", len(text), size%1000, err)
				}
			}
		})
	}
	clients.Wait()
	require.Empty(t, panics.String())
}
