package serve

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// A request that is compressed by zstd is validated, and the upstream gets it
// decompressed.
func TestZstd(t *testing.T) {
	t.Parallel()
	const request = `{"model":"m","messages":[{"role":"user","content":"Hi."}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","required":["a"]}}}]}`
	const answer = `{"choices":[{"message":{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		require.NoError(t, err)
		require.Contains(t, string(b), `"model":"m"`)
		require.Empty(t, r.Header.Get("Content-Encoding"))
		_, _ = io.WriteString(w, answer)
	}))
	defer upstream.Close()
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: upstream.URL}}}, gateway.Options{Decoders: decoders})
	require.NoError(t, err)
	defer g.Close()
	server := httptest.NewServer(g)
	defer server.Close()
	var body bytes.Buffer
	z, err := zstd.NewWriter(&body)
	require.NoError(t, err)
	_, err = io.WriteString(z, request)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for sent, want := range map[string]int{body.String(): http.StatusOK, body.String()[:20]: http.StatusBadRequest} {
		req, err := http.NewRequest(http.MethodPost, server.URL+"/v1/chat/completions", bytes.NewReader([]byte(sent)))
		require.NoError(t, err)
		req.Header.Set("Content-Encoding", "zstd")
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, want, resp.StatusCode)
		if want == http.StatusOK {
			require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status"))
		}
	}
}
