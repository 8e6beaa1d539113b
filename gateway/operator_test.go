package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// lines is a buffer for concurrent writers.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// run starts a gateway in front of an upstream with answers, sends one chat
// request, and closes both.
func run(t *testing.T, c gateway.Config, o gateway.Options, header http.Header, answers ...string) *http.Response {
	to, _ := upstream(t, answers...)
	c.Upstreams = []gateway.Upstream{{Name: "mock", URL: to}}
	g, err := gateway.New(c, o)
	require.NoError(t, err)
	s := httptest.NewServer(g)
	req, err := http.NewRequest(http.MethodPost, s.URL+"/v1/chat/completions?key=secret-in-query", strings.NewReader(chatRequest("m")))
	require.NoError(t, err)
	req.Header = header.Clone()
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	_, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	s.Close()
	require.NoError(t, g.Close())
	return resp
}

// secrets are request headers that must not show up in any output.
func secrets() http.Header {
	return http.Header{
		"Authorization": {"Bearer secret-bearer"}, "X-Api-Key": {"secret-key"}, "Cookie": {"secret-cookie"},
		"User-Agent": {"agent/1.0 (secret-comment)"}, "X-Request-Id": {"id-1"},
	}
}

func TestHeadersOfAResponse(t *testing.T) {
	t.Parallel()
	resp := run(t, gateway.Config{}, gateway.Options{}, http.Header{}, chatAnswer(bad), chatAnswer(mending))
	require.Equal(t, "valid", resp.Header.Get("X-Toolmend-Status"))
	require.Equal(t, "2", resp.Header.Get("X-Toolmend-Attempts"))
	require.Equal(t, "1", resp.Header.Get("X-Toolmend-Repaired"))
	require.NotEmpty(t, resp.Header.Get("X-Toolmend-Overhead-Ms"))
}

// The log has one line for each model call, with figures and without content.
func TestLog(t *testing.T) {
	t.Parallel()
	var log lines
	run(t, gateway.Config{}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, secrets(), chatAnswer(bad), chatAnswer(mending))
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(log.String()), &got))
	for key, want := range map[string]any{
		"msg": "model call", "level": "INFO", "upstream": "mock", "mode": "enforce", "format": "openai-chat", "model": "m", "client": "agent/1.0",
		"http_status": 200., "status": "valid", "attempts": 2., "calls": 1., "input_tokens": 2., "output_tokens": 2.,
		"repairs": map[string]any{"mend.coerce": 1.}, "issues": map[string]any{"required": 1.},
	} {
		require.Equal(t, want, got[key], key)
	}
	require.Positive(t, got["overhead_ms"])
	require.NotContains(t, log.String(), "secret")
	require.NotContains(t, log.String(), "a.txt")
}

// The client chooses the name of the model, and with it the size of a line.
func TestLongModelNamesAreCut(t *testing.T) {
	t.Parallel()
	var log lines
	to, _ := upstream(t, chatAnswer(good))
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: to}}}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	_, _, _ = post(t, s.URL+"/v1/chat/completions", chatRequest(strings.Repeat("m", 100_000)))
	s.Close()
	require.NoError(t, g.Close())
	require.Contains(t, log.String(), strings.Repeat("m", 253)+"…\"")
	require.Less(t, len(log.String()), 2000)
}

// An invalid answer that was passed on, and a panic, are logged louder.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	var log lines
	run(t, gateway.Config{Settings: gateway.Settings{Mode: gateway.Repair}}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, http.Header{}, chatAnswer(bad))
	require.Contains(t, log.String(), `"level":"WARN"`)
	require.Contains(t, log.String(), `"status":"invalid"`)
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	run(t, gateway.Config{}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, http.Header{}, chatAnswer(bad), chatAnswer(mending))
	got := sums(t, reader)
	for name, want := range map[string]int64{"toolmend.gateway.requests": 1, "toolmend.gateway.repairs": 1, "toolmend.gateway.invalid_calls": 1, "toolmend.steps": 1, "toolmend.attempts": 2} {
		require.Equal(t, want, got[name], name)
	}
}

// A record has a line for each answer of the upstream, before any repair.
func TestRecord(t *testing.T) {
	t.Parallel()
	for _, content := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "calls.jsonl")
		run(t, gateway.Config{Record: gateway.Record{File: file, Content: content, Headers: []string{"X-Request-Id"}}}, gateway.Options{}, secrets(), chatAnswer(bad), chatAnswer(mending))
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotContains(t, string(b), "secret")
		require.Equal(t, content, strings.Contains(string(b), "Read a.txt."), "messages")
		type line struct {
			Attempt, Attempts int
			Final             bool
			Status, Model     string
			FinishReason      string `json:"finish_reason"`
			Headers           map[string]string
			Tools             []struct{ Name string }
			ToolCalls         []struct {
				Name, Arguments string
				Issues, Repairs []struct{ Code, Pointer string }
			} `json:"tool_calls"`
		}
		var got []line
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			var l line
			require.NoError(t, json.Unmarshal(s.Bytes(), &l))
			got = append(got, l)
		}
		require.Len(t, got, 2)
		require.Equal(t, bad, got[0].ToolCalls[0].Arguments)
		require.Equal(t, "required", got[0].ToolCalls[0].Issues[0].Code)
		require.False(t, got[0].Final)
		require.Equal(t, mending, got[1].ToolCalls[0].Arguments, "as sent")
		require.Equal(t, "mend.coerce", got[1].ToolCalls[0].Repairs[0].Code)
		require.Equal(t, "/lines", got[1].ToolCalls[0].Repairs[0].Pointer)
		require.True(t, got[1].Final)
		for i, l := range got {
			require.Equal(t, []any{i + 1, 2, "valid", "m", "tool_calls", "read_file", "id-1"},
				[]any{l.Attempt, l.Attempts, l.Status, l.Model, l.FinishReason, l.Tools[0].Name, l.Headers["x-request-id"]})
		}
	}
}

// A link, a directory and a file that others can read are refused at the start.
func TestRecordFileIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "open")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.Chmod(file, 0o644))
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(filepath.Join(dir, "target"), link))
	for name, want := range map[string]string{file: "chmod 600", link: "must be a regular file", dir: "must be a regular file"} {
		_, err := gateway.New(gateway.Config{Record: gateway.Record{File: name}, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{})
		require.ErrorContains(t, err, want)
	}
	_, err := os.Lstat(filepath.Join(dir, "target"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = gateway.New(gateway.Config{Record: gateway.Record{Headers: []string{"x-api-key"}}, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{})
	require.ErrorContains(t, err, "credential")
}

// A full file is renamed, and the oldest is removed.
func TestRecordRotates(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "calls.jsonl")
	for range 5 {
		run(t, gateway.Config{Record: gateway.Record{File: file, MaxSize: 10, Files: 3}}, gateway.Options{}, http.Header{}, chatAnswer(good))
	}
	found, err := filepath.Glob(file + "*")
	require.NoError(t, err)
	require.Equal(t, []string{file, file + ".1", file + ".2"}, found)
}

func TestOwnPages(t *testing.T) {
	t.Parallel()
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })
	get := func(h http.Handler, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+path, nil))
		return w.Code, w.Body.String()
	}
	for listen, metrics := range map[string]int{"": http.StatusOK, "127.0.0.1:0": http.StatusOK} {
		g, err := gateway.New(gateway.Config{Listen: listen, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{Metrics: page})
		require.NoError(t, err)
		for _, p := range []string{"/_toolmend/healthz", "/_toolmend/readyz"} {
			code, body := get(g, p)
			require.Equal(t, http.StatusOK, code)
			require.Equal(t, "ok\n", body)
		}
		code, _ := get(g, "/_toolmend/metrics")
		require.Equal(t, metrics, code)
		code, _ = get(g, "/_toolmend/other")
		require.Equal(t, http.StatusUnauthorized, code, "never sent to the upstream")
		g.Drain()
		code, _ = get(g, "/_toolmend/readyz")
		require.Equal(t, http.StatusServiceUnavailable, code)
		require.NoError(t, g.Close())
	}
	g, err := gateway.New(gateway.Config{AdminListen: "127.0.0.1:0", Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{Metrics: page})
	require.NoError(t, err)
	code, _ := get(g, "/_toolmend/metrics")
	require.Equal(t, http.StatusNotFound, code, "only on the admin listener")
	code, body := get(g.Admin(), "/_toolmend/metrics")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "metrics", body)
}

// An answer that was passed on unread is not a failure.
func TestLogOfAnUnreadAnswer(t *testing.T) {
	t.Parallel()
	var log lines
	run(t, gateway.Config{}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))}, http.Header{}, "<html>")
	require.Contains(t, log.String(), `"status":"unchecked"`)
	require.Contains(t, log.String(), `"unread":true`)
	require.Contains(t, log.String(), `"level":"INFO"`)
	require.NotContains(t, log.String(), `"error"`)
}

// slowLog is a log that waits until the client has its response.
type slowLog struct {
	slog.Handler
	answered chan struct{}
}

func (l *slowLog) Handle(context.Context, slog.Record) error {
	<-l.answered
	return nil
}

// TestClientDoesNotWait holds that a client has the whole response before the
// exchange is logged; of a stream, all but its trailers.
func TestClientDoesNotWait(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, end string }{
		"whole":  {chatAnswer(mending), ""},
		"stream": {`data: {"id":"r","choices":[{"index":0,"delta":{"content":"Hello."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", "data: [DONE]\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, _ := upstream(t, c.answer)
			log := &slowLog{slog.NewJSONHandler(io.Discard, nil), make(chan struct{})}
			g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: to}}}, gateway.Options{Logger: slog.New(log)})
			require.NoError(t, err)
			s := httptest.NewServer(g)
			request := chatRequest("m")
			if c.end != "" {
				request = strings.Replace(request, "{", `{"stream":true,`, 1)
			}
			client := &http.Client{Timeout: 10 * time.Second}
			resp, err := client.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(request))
			var got []byte
			if err == nil {
				for piece := make([]byte, 1024); err == nil && (c.end == "" || !strings.HasSuffix(string(got), c.end)); {
					var n int
					n, err = resp.Body.Read(piece)
					got = append(got, piece[:n]...)
				}
				_ = resp.Body.Close()
			}
			close(log.answered)
			if c.end == "" {
				require.ErrorIs(t, err, io.EOF)
			} else {
				require.NoError(t, err, "%s", got)
			}
			s.Close()
			require.NoError(t, g.Close())
		})
	}
}

// Lines of the log that its writer lost are counted with what else is dropped.
func TestLostLog(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.NoError(t, err)
	defer g.Close()
	g.CountLostLog(3)
	require.Equal(t, int64(3), counter(t, reader, "toolmend.gateway.dropped", attribute.String("what", "log")))
}

// counter returns the value of a counter with these labels, or -1 without one.
func counter(t *testing.T, reader *metric.ManualReader, name string, labels ...attribute.KeyValue) int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	sum := int64(-1)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			points, ok := m.Data.(metricdata.Sum[int64])
			if !ok || m.Name != name {
				continue
			}
			for _, p := range points.DataPoints {
				fits := true
				for _, l := range labels {
					v, ok := p.Attributes.Value(l.Key)
					fits = fits && ok && v == l.Value
				}
				if fits {
					sum = max(sum, 0) + p.Value
				}
			}
		}
	}
	return sum
}

// An answer that failed after its status 200 was sent is not counted like a good one.
func TestErrorsOfStreamsAreCounted(t *testing.T) {
	t.Parallel()
	text := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":"I read it."},"finish_reason":null}]}` + "\n\n"
	call := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"read_file","arguments":` +
		string(must(json.Marshal(bad))) + `}}]},"finish_reason":"tool_calls"}]}` + "\n\n"
	end := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	done := "data: [DONE]\n\n"
	for name, tc := range map[string]struct{ answer, error string }{
		"good":       {text + end + done, ""},
		"raised":     {text + call + done, "invalid_tool_call"},
		"broken off": {text, "network"},
	} {
		for _, mode := range []gateway.Mode{gateway.Enforce, gateway.Observe} {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				t.Parallel()
				provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, tc.answer)
					if name == "broken off" {
						_ = http.NewResponseController(w).Flush()
						panic(http.ErrAbortHandler)
					}
				}))
				defer provider.Close()
				reader := metric.NewManualReader()
				g, err := gateway.New(gateway.Config{Settings: gateway.Settings{Mode: mode, OnExhausted: middleware.Raise}, Upstreams: []gateway.Upstream{{Name: "mock", URL: provider.URL}}},
					gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
				require.NoError(t, err)
				s := httptest.NewServer(g)
				resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(strings.Replace(chatRequest("m"), "{", `{"stream":true,`, 1)))
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				s.Close()
				require.NoError(t, g.Close())
				want := tc.error
				if mode == gateway.Observe && name == "raised" {
					want = "" // the client got it as it came
				}
				require.Equal(t, int64(1), counter(t, reader, "toolmend.gateway.requests", attribute.String("error", want), attribute.Int("http_status", 200)))
			})
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Counters begin at 0, not at their first event, which increase() would miss. The steps
// say which upstream they belong to.
func TestCountersExist(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	to, _ := upstream(t, chatAnswer(good))
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{
		{Name: "watched", URL: "https://api.anthropic.com", Prefix: "/a", Settings: gateway.Settings{Mode: gateway.Observe}}, {Name: "local", URL: to},
	}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.NoError(t, err)
	defer g.Close()
	for _, upstream := range []string{"watched", "local"} {
		at := attribute.String("upstream", upstream)
		require.Zero(t, counter(t, reader, "toolmend.gateway.requests", at, attribute.String("format", "anthropic-messages"), attribute.String("error", "")))
		require.Zero(t, counter(t, reader, "toolmend.gateway.panics", at))
		require.Zero(t, counter(t, reader, "toolmend.gateway.repairs", at, attribute.String("rule", "mend.coerce")))
	}
	require.Zero(t, counter(t, reader, "toolmend.gateway.observed", attribute.String("upstream", "watched"), attribute.String("would", "reasked")))
	require.Equal(t, int64(-1), counter(t, reader, "toolmend.gateway.observed", attribute.String("upstream", "local")))
	for _, what := range []string{"record", "copy", "log"} {
		require.Zero(t, counter(t, reader, "toolmend.gateway.dropped", attribute.String("what", what)))
	}
	s := httptest.NewServer(g)
	defer s.Close()
	_, _, _ = post(t, s.URL+"/v1/chat/completions", chatRequest("m"))
	require.Equal(t, int64(1), counter(t, reader, "toolmend.steps", attribute.String("upstream", "local"), attribute.String("gen_ai.provider.name", "local")))
}

// The boundaries of durations are seconds, from an error at once to an answer of ten minutes.
func TestDurationBuckets(t *testing.T) {
	t.Parallel()
	reader := metric.NewManualReader()
	run(t, gateway.Config{}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))}, http.Header{}, chatAnswer(good))
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == "toolmend.gateway.duration" {
				bounds := m.Data.(metricdata.Histogram[float64]).DataPoints[0].Bounds
				require.Equal(t, []float64{.01, 600}, []float64{bounds[0], bounds[len(bounds)-1]})
				return
			}
		}
	}
	t.Fatal("no durations")
}

// The time until the first text of a stream is measured, and the text still flows.
func TestTimeToFirstChunk(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"Well."}}]}`+"\n\n")
		w.(http.Flusher).Flush()
		<-seen
		_, _ = io.WriteString(w, `data: {"id":"r","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(up.Close)
	reader := metric.NewManualReader()
	g, err := gateway.New(gateway.Config{Upstreams: []gateway.Upstream{{URL: up.URL}}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
	require.NoError(t, err)
	front := httptest.NewServer(g)
	resp, err := http.Post(front.URL+"/v1/chat/completions", "application/json", strings.NewReader(strings.Replace(chatRequest("m"), "{", `{"stream":true,`, 1)))
	require.NoError(t, err)
	first := make([]byte, 8)
	_, err = io.ReadFull(resp.Body, first)
	require.NoError(t, err)
	close(seen)
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	front.Close()
	require.NoError(t, g.Close())
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &data))
	measured := uint64(0)
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok && m.Name == "gen_ai.client.inference.time_to_first_chunk" {
				measured += h.DataPoints[0].Count
			}
		}
	}
	require.EqualValues(t, 1, measured)
}
