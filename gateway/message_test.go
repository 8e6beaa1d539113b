package gateway_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// emptyAnswer is an answer without text and without a call.
func emptyAnswer(finish string) string {
	return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null},"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`
}

// A message that is neither a call nor an answer is in the header, the log, the metrics, the
// record and the page, with its code.
func TestFaultsOfMessages(t *testing.T) {
	t.Parallel()
	var log lines
	reader := metric.NewManualReader()
	file := filepath.Join(t.TempDir(), "record.jsonl")
	o := gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}
	resp := run(t, gateway.Config{Record: gateway.Record{File: file}}, o, http.Header{}, emptyAnswer("stop"), emptyAnswer("tool_calls"))
	require.Equal(t, "invalid", resp.Header.Get("X-Toolmend-Status"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(log.String()), &got))
	require.Equal(t, "invalid", got["status"])
	require.Equal(t, "WARN", got["level"])
	require.Equal(t, map[string]any{"empty": 2.}, got["issues"])
	require.EqualValues(t, 2, counter(t, reader, "toolmend.gateway.invalid_calls", attribute.String("code", "empty")))
	recorded, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(recorded), `"issues":[{"code":"empty","pointer":""}]`), string(recorded))

	var observed lines
	run(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Observe}}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&observed, nil))}, http.Header{}, emptyAnswer("stop"))
	got = nil
	require.NoError(t, json.Unmarshal([]byte(observed.String()), &got))
	require.Equal(t, []any{"reasked", "invalid", map[string]any{"empty": 1.}}, []any{got["would"], got["status"], got["issues"]})

	g := newGateway(t, gateway.Config{}, emptyAnswer("stop"), emptyAnswer("stop"))
	ask(t, g)
	list := steps(t, g, g, 1)
	require.Equal(t, "invalid", list.Steps[0].Outcome)
	require.Equal(t, "empty", list.Steps[0].Fault)
	require.Contains(t, browse(g, "/_toolmend/steps/1", opened(t, g, g)...).Body.String(), "empty: it has neither text nor a tool call")
}

// The record has what the request allowed, so that check finds the forbidden calls.
func TestRecordedLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ member, want string }{
		"no limit":  {`"n":1`, ""},
		"none":      {`"tool_choice":"none"`, `"limits":{"tool_choice":{"mode":"none"}}`},
		"a list":    {`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"read_file"}}]}}`, `"limits":{"allowed_tools":["read_file"]}`},
		"one call":  {`"parallel_tool_calls":false`, `"limits":{"no_parallel_calls":true}`},
		"with more": {`"temperature":1,"max_tokens":9,"parallel_tool_calls":false`, `"limits":{"no_parallel_calls":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "record.jsonl")
			to, _ := upstream(t, chatAnswer(good), chatAnswer(good), chatAnswer(good))
			g, err := gateway.New(gateway.Config{Record: gateway.Record{File: file}, Upstreams: []gateway.Upstream{{URL: to}}}, gateway.Options{})
			require.NoError(t, err)
			s := httptest.NewServer(g)
			resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}],`+c.member+","+tools+"}"))
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			s.Close()
			require.NoError(t, g.Close())
			recorded, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Contains(t, string(recorded), c.want)
			require.Equal(t, c.want != "", strings.Contains(string(recorded), `"limits"`), string(recorded))
		})
	}
}

// The settings decide what is re-asked.
func TestSettingsOfMessages(t *testing.T) {
	t.Parallel()
	const nothing, behindResults = `{"role":"user","content":"hi"}`, `{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c1","content":"ok"}`
	cut := strings.Replace(chatAnswer(good), `"finish_reason":"tool_calls"`, `"finish_reason":"length"`, 1)
	for name, c := range map[string]struct {
		settings gateway.Settings
		messages string
		answer   string
		requests int64
		status   string
	}{
		"default":                 {gateway.Settings{}, nothing, emptyAnswer("stop"), 2, "invalid"},
		"off":                     {gateway.Settings{EmptyAnswers: argsvalidate.EmptyOff}, nothing, emptyAnswer("stop"), 1, ""},
		"default, behind results": {gateway.Settings{}, behindResults, emptyAnswer("stop"), 1, ""},
		"always, behind results":  {gateway.Settings{EmptyAnswers: argsvalidate.EmptyAlways}, behindResults, emptyAnswer("stop"), 2, ""},
		"repair":                  {gateway.Settings{Mode: gateway.Repair}, nothing, emptyAnswer("stop"), 1, "invalid"},
		"raise":                   {gateway.Settings{OnExhausted: middleware.Raise}, nothing, emptyAnswer("stop"), 2, ""},
		"cut off":                 {gateway.Settings{}, nothing, cut, 2, "invalid"},
		"cut off, not raised":     {gateway.Settings{RaiseTokens: argsvalidate.NoRaise}, nothing, cut, 1, "invalid"},
		"cut off, bounded":        {gateway.Settings{RaiseTokens: 50}, nothing, cut, 1, "invalid"},
		"cut off, unbounded":      {gateway.Settings{RaiseTokens: gateway.Unbounded}, nothing, cut, 2, "invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, requests := upstream(t, c.answer, c.answer)
			at := serve(t, gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{{URL: to}}})
			body := `{"model":"m","max_tokens":50,"messages":[` + c.messages + `]` + "," + tools + "}"
			resp, err := http.Post(at+"/v1/chat/completions", "application/json", strings.NewReader(body))
			require.NoError(t, err)
			b, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			require.NoError(t, resp.Body.Close())
			require.Equal(t, c.requests, requests.Load())
			require.Equal(t, c.status, resp.Header.Get("X-Toolmend-Status"), string(b))
			require.Equal(t, name == "raise", resp.StatusCode == http.StatusBadRequest, string(b))
		})
	}
}
