package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExport(t *testing.T) {
	var mu sync.Mutex
	got := map[string][]byte{} // by path
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		got[r.URL.Path] = append(got[r.URL.Path], body...)
	}))
	defer collector.Close()
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL,
		"OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_SERVICE_NAME": "weather-agent",
	} {
		t.Setenv(name, value)
	}
	stop, err := export(t.Context())
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "{\"city\":\"Oslo\"} after 2 attempts\n", out.String())
	require.NoError(t, stop(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	for _, text := range []string{"model_step scripted", "chat scripted", "weather-agent"} {
		require.Contains(t, string(got["/v1/traces"]), text)
	}
	for _, text := range []string{"toolmend.invalid_calls", "gen_ai.client.inference.usage.input_tokens"} {
		require.Contains(t, string(got["/v1/metrics"]), text)
	}
}

// Without variables nothing is sent, and nothing fails.
func TestNoCollector(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "")
	t.Setenv("OTEL_METRICS_EXPORTER", "")
	stop, err := export(t.Context())
	require.NoError(t, err)
	require.NoError(t, run(t.Context(), io.Discard))
	require.NoError(t, stop(t.Context()))
}
