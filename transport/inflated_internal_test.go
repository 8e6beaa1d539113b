package transport

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The decompressed requests of all clients share a limit. The test is not parallel, because the
// whole process has one count.
func TestCompressedRequestsShareALimit(t *testing.T) {
	held := make(chan struct{})
	release := sync.OnceFunc(func() { close(held) })
	var requests atomic.Int32
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if requests.Add(1) == 1 {
			<-held
		}
	}))
	defer up.Close()
	defer release()
	to, err := url.Parse(up.URL)
	require.NoError(t, err)
	body := `{"model":"m","messages":[]}`
	plain := func(r io.Reader) (io.Reader, error) { return r, nil }
	front := httptest.NewServer(New(Options{Decoders: map[string]Decoder{"zstd": plain}}).Handler(to))
	defer front.Close()
	inflating.Add(mostInflated - int64(len(body)))
	defer inflating.Add(-mostInflated + int64(len(body)))
	send := func() (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/v1/chat/completions", strings.NewReader(body))
		require.NoError(t, err)
		req.Header.Set("Content-Encoding", "zstd")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		return resp.StatusCode, string(text)
	}
	first := make(chan int)
	go func() { status, _ := send(); first <- status }()
	require.Eventually(t, func() bool { return inflating.Load() == mostInflated }, 10*time.Second, time.Millisecond, "it counts while it is served")
	status, text := send()
	require.Equal(t, http.StatusTooManyRequests, status)
	require.Contains(t, text, "send the request uncompressed")
	release()
	require.Equal(t, http.StatusOK, <-first)
	require.Eventually(t, func() bool { return inflating.Load() == mostInflated-int64(len(body)) }, 10*time.Second, time.Millisecond, "and no longer")
	status, _ = send()
	require.Equal(t, http.StatusOK, status)
}
