package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/toolmend/toolmend/gateway"
)

// Requests of a conversation that grows are known from one to the next, and sent on as they came.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	var got, sent []string
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, string(body))
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, chatAnswer(good))
	}))
	defer up.Close()
	reader := metric.NewManualReader()
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: up.URL}}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	defer s.Close()
	var messages []string
	for i := range 13 {
		if messages = append(messages, fmt.Sprintf(`{"role":"user","content":"%d %s"}`, i, strings.Repeat("x", 300))); i < 9 {
			continue
		}
		body := strings.Replace(chatRequest("m"), `"messages":[`, `"messages":[`+strings.Join(messages, ",")+`,`, 1)
		resp, _ := send(t, http.MethodPost, s.URL+"/v1/chat/completions", body)
		require.Equal(t, 200, resp.StatusCode)
		sent = append(sent, body)
	}
	s.Close()
	require.NoError(t, g.Close())
	require.Equal(t, sent, got)
	require.Equal(t, int64(1), counter(t, reader, "toolmend.gateway.request_lists", attribute.Bool("known", false)))
	require.Equal(t, int64(3), counter(t, reader, "toolmend.gateway.request_lists", attribute.Bool("known", true)))
}
