package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// TestRefusalsAreCounted: a request that is not served counts by its code. The log has one line a
// minute for each code, without what the client sent.
func TestRefusalsAreCounted(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte("0123456789abcdef"), 0o600))
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		reader := metric.NewManualReader()
		g, err := New(Config{
			Access:    Access{ClientKeyFile: file},
			Upstreams: []Upstream{{URL: "http://127.0.0.1:1", Prefix: "/a", Headers: HeaderRules{Remove: []string{"Authorization"}}}},
		}, Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
		require.NoError(t, err)
		ask := func(path, host, key string) {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, nil)
			r.Host = host
			r.Header.Set("Authorization", "Bearer "+key)
			g.ServeHTTP(httptest.NewRecorder(), r)
		}
		counts := func() map[string]int64 {
			var data metricdata.ResourceMetrics
			require.NoError(t, reader.Collect(context.Background(), &data))
			out := map[string]int64{}
			for _, m := range data.ScopeMetrics[0].Metrics {
				if m.Name == "toolmend.gateway.refused" {
					for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
						code, _ := p.Attributes.Value("code")
						out[code.AsString()] = p.Value
					}
				}
			}
			return out
		}
		require.Equal(t, map[string]int64{"client_key": 0, "not_a_proxy": 0, "host_not_allowed": 0, "cross_site": 0, "unknown_upstream": 0, "invalid_body": 0}, counts(), "from the start")
		for range 1000 {
			ask("/a/v1/messages", "localhost", "wrong-secret-key-0")
		}
		ask("/b", "localhost", "0123456789abcdef")
		ask("/b", "secret.example", "0123456789abcdef")
		ask("http://secret.example/b", "secret.example", "0123456789abcdef")
		time.Sleep(time.Minute)
		ask("/a/v1/messages", "localhost", "")
		require.Equal(t, map[string]int64{"client_key": 1001, "not_a_proxy": 1, "host_not_allowed": 1, "cross_site": 0, "unknown_upstream": 1, "invalid_body": 0}, counts())
		var got []string
		for _, line := range bytes.Split(bytes.TrimSpace(log.Bytes()), []byte("\n")) {
			var l struct {
				Level, Msg, Code, From string
				Status                 int `json:"http_status"`
				More                   int `json:"not_logged"`
			}
			require.NoError(t, json.Unmarshal(line, &l))
			require.Equal(t, []any{"WARN", "request refused", "192.0.2.1"}, []any{l.Level, l.Msg, l.From})
			got = append(got, l.Code)
			require.Equal(t, map[int]bool{1: true, 5: true}[len(got)], l.Status == 401)
			require.Equal(t, map[int]int{5: 999}[len(got)], l.More)
		}
		require.Equal(t, []string{"client_key", "unknown_upstream", "host_not_allowed", "not_a_proxy", "client_key"}, got)
		require.NotContains(t, log.String(), "secret")
		require.NoError(t, g.Close())
	})
}
