package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/gateway"
)

// All messages share max_memory. It is counted, and a reload changes it.
func TestMaxMemory(t *testing.T) {
	t.Parallel()
	const start, end = `{"model":"m","messages":[{"role":"user","content":"`, `"}]}`
	for name, c := range map[string]struct {
		models  []string
		mode    gateway.Mode
		request int // bytes
		answer  int
		status  int
		error   string
	}{
		"a request":                      {nil, "", 200 << 10, 1, http.StatusTooManyRequests, "too_many_requests"},
		"a request, routed by its model": {[]string{"m"}, "", 200 << 10, 1, http.StatusTooManyRequests, "too_many_requests"},
		"an answer":                      {nil, "", 1, 300 << 10, http.StatusBadRequest, "memory"},
		"both fit":                       {[]string{"m"}, "", 20 << 10, 50 << 10, http.StatusOK, ""},
		"observed":                       {nil, gateway.Observe, 200 << 10, 1, http.StatusOK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"`+strings.Repeat("a", c.answer)+`"},"finish_reason":"stop"}]}`)
			}))
			defer up.Close()
			reader := sdk.NewManualReader()
			config := gateway.Config{MaxMemory: 512 << 10, Upstreams: []gateway.Upstream{{URL: up.URL, Models: c.models, Settings: gateway.Settings{Mode: c.mode}}}}
			g, err := gateway.New(config, gateway.Options{MeterProvider: sdk.NewMeterProvider(sdk.WithReader(reader))})
			require.NoError(t, err)
			front := httptest.NewServer(g)
			ask := func() (int, string, string) {
				resp, err := http.Post(front.URL+"/v1/chat/completions", "application/json", strings.NewReader(start+strings.Repeat("a", c.request)+end))
				require.NoError(t, err)
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				return resp.StatusCode, resp.Header.Get("X-Toolmend-Error"), string(text)
			}
			status, code, text := ask()
			require.Equal(t, c.status, status, text)
			require.Equal(t, c.error, code)
			if c.mode != gateway.Observe { // whose copies are read later
				config.MaxMemory = 0
				require.NoError(t, g.Reload(config))
				status, _, _ = ask()
				require.Equal(t, http.StatusOK, status)
			}
			front.Close()
			require.NoError(t, g.Close())
			var refused int64
			require.Eventually(t, func() bool { // a request counts until its context is done, and a goroutine sees that
				var data metricdata.ResourceMetrics
				if err := reader.Collect(t.Context(), &data); err != nil {
					return false
				}
				used := int64(-1)
				for _, scope := range data.ScopeMetrics {
					for _, m := range scope.Metrics {
						switch m.Name {
						case "toolmend.gateway.memory_refused":
							refused = m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
						case "toolmend.gateway.memory":
							used = m.Data.(metricdata.Gauge[int64]).DataPoints[0].Value
						}
					}
				}
				return used == 0
			}, 10*time.Second, time.Millisecond)
			want := int64(1)
			if name == "both fit" {
				want = 0
			}
			require.Equal(t, want, refused)
		})
	}
	_, err := gateway.New(gateway.Config{MaxMemory: -1, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{})
	require.ErrorContains(t, err, "max_memory")
}
