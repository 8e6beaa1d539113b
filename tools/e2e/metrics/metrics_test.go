// Package metrics checks deploy/alerts.yml, deploy/grafana.json and the queries of
// docs/gateway/metrics.md with Debian's Prometheus: it reads a running gateway, and each
// rule and each query returns data after a scripted load. `make metrics` runs it.
package metrics

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const tool = `{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"file_path":{"type":"string"},"lines":{"type":"integer"}},"required":["file_path"]}}}`

// provider answers as the model's name says.
func provider() http.Handler {
	var calls atomic.Int64
	answer := func(arguments string) string {
		quoted, _ := json.Marshal(arguments)
		return `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"read_file","arguments":` +
			string(quoted) + `}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var asked struct{ Model string }
		_ = json.Unmarshal(body, &asked)
		w.Header().Set("Content-Type", "application/json")
		switch asked.Model {
		case "good":
			_, _ = io.WriteString(w, answer(`{"file_path":"a"}`))
		case "repaired":
			_, _ = io.WriteString(w, answer(`{"file_path":"a","lines":"5"}`))
		case "bad":
			_, _ = io.WriteString(w, answer(fmt.Sprintf(`{"wrong":"%d"}`, calls.Add(1))))
		case "refused":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, `{"error":{"message":"no"}}`)
		case "broken":
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"I"},"finish_reason":null}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
}

// freeAddress returns an address on which nothing listens.
func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// start runs a program until the end of the test.
func start(t *testing.T, name string, args ...string) {
	cmd := exec.Command(name, args...)
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("%s wrote:\n%s", filepath.Base(name), text)
		}
		_ = log.Close()
	})
}

// await calls f until it returns true.
func await(t *testing.T, what string, f func() bool) {
	require.Eventually(t, f, 60*time.Second, 200*time.Millisecond, what)
}

func responds(address, path string) bool {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

func write(t *testing.T, name, text string) string {
	file := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// sample is a value of a query.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query returns what Prometheus says to a query now. NaN, as of 0/0, is not a value.
func query(t *testing.T, address, expr string) (found []sample) {
	resp, err := http.PostForm("http://"+address+"/api/v1/query", url.Values{"query": {expr}})
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct{ Result []sample }
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	require.Equal(t, "success", answer.Status, "%s: %s", expr, answer.Error)
	for _, s := range answer.Data.Result {
		if s.Value[1] != "NaN" {
			found = append(found, s)
		}
	}
	return found
}

func TestMetrics(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed: `make metrics` installs Debian's and runs this test")
	}
	alerts, err := filepath.Abs("../../../deploy/alerts.yml")
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "toolmend")
	out, err := exec.Command("go", "build", "-C", "../../../cmd/toolmend", "-o", binary, ".").CombinedOutput()
	require.NoError(t, err, string(out))

	upstream := httptest.NewServer(provider())
	defer upstream.Close()
	listen, prometheus := freeAddress(t), freeAddress(t)
	key := write(t, "key", "key-of-the-team-for-tests\n")
	start(t, binary, "serve", "--config", write(t, "toolmend.toml", fmt.Sprintf(`
listen = %q
[access]
key_header_only = true
[[client]]
name = "team-a"
key_file = %q
[[upstream]]
name = "local"
url = %q
[[upstream]]
name = "watched"
url = %q
prefix = "/watched"
mode = "observe"
`, listen, key, upstream.URL, upstream.URL)))
	await(t, "the gateway is ready", func() bool { return responds(listen, "/_toolmend/readyz") })
	start(t, program, "--config.file", write(t, "prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [%q]
scrape_configs:
  - job_name: toolmend
    metrics_path: /_toolmend/metrics
    static_configs: [{targets: [%q]}]
`, alerts, listen)), "--storage.tsdb.path", t.TempDir(), "--web.listen-address", prometheus)
	await(t, "Prometheus has read the counters at 0", func() bool {
		return responds(prometheus, "/-/ready") && len(query(t, prometheus, "toolmend_gateway_panics_total")) > 0
	})
	load(t, listen)
	await(t, "Prometheus has read the load", func() bool {
		return len(query(t, prometheus, `increase(toolmend_gateway_requests_total{error="network"}[1m]) > 0`)) > 0
	})

	t.Run("rules", func(t *testing.T) { rules(t, prometheus) })
	t.Run("dashboard", func(t *testing.T) { dashboard(t, prometheus) })
	t.Run("page", func(t *testing.T) { page(t, prometheus) })
}

// load sends requests for some seconds, so that rates have values.
func load(t *testing.T, listen string) {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for _, path := range []string{"", "/watched"} {
			for _, model := range []string{"good", "repaired", "bad", "refused", "broken"} {
				req, err := http.NewRequest(http.MethodPost, "http://"+listen+path+"/v1/chat/completions",
					strings.NewReader(fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"Read a."}],"tools":[%s]}`, model, model == "broken", tool)))
				require.NoError(t, err)
				req.Header.Set("X-Toolmend-Key", "key-of-the-team-for-tests")
				resp, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		}
		time.Sleep(50 * time.Millisecond) // Prometheus is another process: its clock is the real one
	}
}

// limit is the end of the condition of an alert.
var limit = regexp.MustCompile(` [<>] [0-9.]+$`)

// rules evaluates each rule. Without its limit its condition has a value, and those
// that the load breaks are raised.
func rules(t *testing.T, prometheus string) {
	resp, err := http.Get("http://" + prometheus + "/api/v1/rules")
	require.NoError(t, err)
	defer resp.Body.Close()
	var answer struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Query, Health, State, LastError string }
			}
		}
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&answer))
	raised := map[string]bool{"ToolmendErrors": true, "ToolmendInvalidCalls": true, "ToolmendReasks": true}
	count := 0
	for _, g := range answer.Data.Groups {
		for _, r := range g.Rules {
			count++
			t.Run(r.Name, func(t *testing.T) {
				require.Equal(t, "ok", r.Health, r.LastError)
				require.Regexp(t, limit, r.Query)
				found := query(t, prometheus, limit.ReplaceAllString(r.Query, ""))
				require.NotEmpty(t, found, r.Query)
				require.Equal(t, raised[r.Name], len(query(t, prometheus, r.Query)) > 0, "%s: %v", r.Query, found)
				t.Log(found)
			})
		}
	}
	require.Equal(t, 8, count)
}

// dashboard evaluates each query of the dashboard.
func dashboard(t *testing.T, prometheus string) {
	b, err := os.ReadFile("../../../deploy/grafana.json")
	require.NoError(t, err)
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	require.NoError(t, json.Unmarshal(b, &board))
	require.NotEmpty(t, board.Panels)
	variables := strings.NewReplacer("$__rate_interval", "1m", "$upstream", ".*")
	for _, p := range board.Panels {
		t.Run(p.Title, func(t *testing.T) {
			require.NotEmpty(t, p.Targets)
			for _, target := range p.Targets {
				require.NotEmpty(t, query(t, prometheus, variables.Replace(target.Expr)), target.Expr)
			}
		})
	}
}

// block is a query of docs/gateway/metrics.md.
var block = regexp.MustCompile("(?s)```promql\n(.*?)\n```")

// page evaluates each query of docs/gateway/metrics.md.
func page(t *testing.T, prometheus string) {
	b, err := os.ReadFile("../../../docs/gateway/metrics.md")
	require.NoError(t, err)
	found := block.FindAllStringSubmatch(string(b), -1)
	require.Len(t, found, 16)
	for _, m := range found {
		require.NotEmpty(t, query(t, prometheus, m[1]), m[1])
	}
}
