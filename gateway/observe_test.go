package gateway_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/gateway"
)

// TestObserveForOperators: the log, the metrics and the recording of an exchange
// that was observed.
func TestObserveForOperators(t *testing.T) {
	t.Parallel()
	var log lines
	reader := metric.NewManualReader()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	resp := run(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Observe}, Record: gateway.Record{File: file}},
		gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, secrets(), chatAnswer(mending))
	for k := range resp.Header {
		require.NotContains(t, k, "Toolmend")
	}

	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(log.String()), &line))
	for key, want := range map[string]any{
		"level": "INFO", "mode": "observe", "format": "openai-chat", "model": "m", "http_status": float64(http.StatusOK), "status": "valid", "attempts": 1., "calls": 1.,
		"repairs": map[string]any{"mend.coerce": 1.}, "would": "repaired", "input_tokens": 1.,
	} {
		require.Equal(t, want, line[key], key)
	}
	require.NotContains(t, line, "unread")
	require.NotContains(t, log.String(), "secret")

	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	outcomes := map[string]int64{}
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if sum, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "toolmend.gateway.observed" {
				for _, p := range sum.DataPoints {
					would, _ := p.Attributes.Value("would")
					if p.Value > 0 {
						outcomes[would.AsString()] += p.Value
					}
				}
			}
		}
	}
	require.Equal(t, map[string]int64{"repaired": 1}, outcomes)

	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	var turn map[string]any
	require.NoError(t, json.Unmarshal(recorded, &turn), "one line")
	require.Contains(t, string(recorded), `lines\":\"5\"`, "the call before its repair")
}
