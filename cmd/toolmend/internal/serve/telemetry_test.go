//go:build !windows

package serve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// withoutOTel removes the OTEL_* variables for a test.
func withoutOTel(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
}

// TestExports holds that no exporter is made unless a variable asks for it.
func TestExports(t *testing.T) {
	for name, c := range map[string]struct {
		env             []string
		metrics, traces bool
	}{
		"nothing":            {nil, false, false},
		"a name":             {[]string{"OTEL_SERVICE_NAME=x"}, false, false},
		"headers":            {[]string{"OTEL_EXPORTER_OTLP_HEADERS=a=b"}, false, false},
		"endpoint":           {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c"}, true, true},
		"endpoint of traces": {[]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c"}, false, true},
		"exporter":           {[]string{"OTEL_METRICS_EXPORTER=otlp"}, true, false},
		"off for one":        {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_METRICS_EXPORTER=none"}, false, true},
		"off":                {[]string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://c", "OTEL_SDK_DISABLED=true"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			withoutOTel(t)
			for _, pair := range c.env {
				k, v, _ := strings.Cut(pair, "=")
				t.Setenv(k, v)
			}
			require.Equal(t, c.metrics, exports("METRICS"))
			require.Equal(t, c.traces, exports("TRACES"))
		})
	}
	t.Run("made", func(t *testing.T) {
		withoutOTel(t)
		log := slog.New(slog.DiscardHandler)
		tel, err := newTelemetry(context.Background(), log)
		require.NoError(t, err)
		require.Zero(t, tel.exporters)
		require.Nil(t, tel.tracers)
		require.Nil(t, tel.options(log).TracerProvider)
		require.NoError(t, tel.close())
		t.Setenv("OTEL_TRACES_EXPORTER", "carrier-pigeon")
		_, err = newTelemetry(context.Background(), log)
		require.ErrorContains(t, err, "the OTEL_* variables for traces: ")
	})
}

const modelCall = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]}`

// answering is an upstream that answers model calls with a valid tool call.
func answering(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func post(t *testing.T, url, body string) string {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(text))
	return string(text)
}

// TestExport holds that spans and metrics reach the collector that the variables
// name, and nothing without them: not even the default address of a collector.
func TestExport(t *testing.T) {
	withoutOTel(t)
	got := make(chan string, 100)
	collector := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		got <- r.URL.Path
	})
	named := httptest.NewServer(collector)
	t.Cleanup(named.Close)
	upstream := answering(t)
	one := func(t *testing.T, env ...string) {
		for _, pair := range env {
			k, v, _ := strings.Cut(pair, "=")
			t.Setenv(k, v)
		}
		p := startProgram(t, "--upstream", upstream, "--listen", "127.0.0.1:0")
		post(t, "http://"+p.address+"/v1/chat/completions", modelCall)
		require.NoError(t, p.Process.Signal(syscall.SIGTERM))
		require.Equal(t, cli.ExitOK, p.end(t), p.stderr.String())
	}
	t.Run("without", func(t *testing.T) {
		var connections atomic.Int32
		for _, usual := range []string{"127.0.0.1:4318", "127.0.0.1:4317"} {
			l, err := net.Listen("tcp", usual)
			if err != nil {
				t.Skipf("a program listens on %s, so connections to it cannot be counted", usual)
			}
			t.Cleanup(func() { _ = l.Close() })
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					connections.Add(1)
					_ = c.Close()
				}
			}()
		}
		one(t)
		require.Zero(t, connections.Load())
		require.Empty(t, got)
	})
	t.Run("with", func(t *testing.T) {
		one(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+named.URL)
		close(got)
		paths := map[string]bool{}
		for path := range got {
			paths[path] = true
		}
		require.Equal(t, map[string]bool{"/v1/traces": true, "/v1/metrics": true}, paths)
	})
}

// TestMetricsPage holds that the metrics are on the main listener if that is
// loopback, and on admin_listen if that is set.
func TestMetricsPage(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "c.toml")
	writeFile(t, file, fmt.Sprintf("admin_listen = %q\n[[upstream]]\nurl = %q\n", "127.0.0.1:0", answering(t)))
	for name, args := range map[string][]string{"main": {"--upstream", answering(t)}, "admin": {"--config", file}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServe(t, args...)
			post(t, "http://"+s.address+"/v1/chat/completions", modelCall)
			_, rest, ok := strings.Cut(s.stderr.String(), "\nMetrics: ")
			require.True(t, ok)
			page, _, _ := strings.Cut(rest, "\n")
			require.Equal(t, name == "main", strings.Contains(page, s.address), page)
			text := ""
			require.Eventually(t, func() bool { // an exchange is counted after its answer
				text = clitest.Get(t, http.DefaultClient, page)
				return strings.Contains(text, `toolmend_gateway_requests_total{`)
			}, 10*time.Second, time.Millisecond)
			require.Contains(t, text, "go_goroutines")
			require.NotContains(t, text, "otel_scope")
		})
	}
}

// answeringInTurn is an upstream whose answers to model calls have a tool call
// with these arguments, one after the other.
func answeringInTurn(t *testing.T, arguments ...string) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":`+
			arguments[int(n.Add(1)-1)%len(arguments)]+`}}]}}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestServeSaysWhatItDid holds that the log ends with a summary.
func TestServeSaysWhatItDid(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"enforce": "1 model call, 1 corrected (the model was asked again)",
		"repair":  "1 model call, 1 with an invalid tool call",
		"observe": "1 model call, 1 that mode enforce would have changed",
	} {
		s := startServe(t, "--upstream", answeringInTurn(t, `"{\"x\":\"one\"}"`, `"{\"x\":1}"`), "--mode", mode)
		post(t, "http://"+s.address+"/v1/chat/completions", strings.Replace(modelCall, `"type":"object"`, `"type":"object","properties":{"x":{"type":"integer"}}`, 1))
		s.stop()
		require.Equal(t, cli.ExitOK, <-s.code)
		require.Contains(t, s.stderr.String(), `"msg":"served","summary":"`+want+`"`)
	}
}
