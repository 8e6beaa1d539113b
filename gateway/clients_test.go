package gateway_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

// Clients with keys of their own have their name in the log, in the metrics and on the page.
func TestNamedClients(t *testing.T) {
	t.Parallel()
	to, _ := upstream(t, chatAnswer(good))
	var log lines
	reader := metric.NewManualReader()
	const team, build = "key-of-the-team-0001", "key-of-the-build-0002"
	g, err := gateway.New(gateway.Config{
		Clients: []gateway.Client{{Name: "team-a", KeyFile: keyFile(t, team)}, {Name: "build", KeyFile: keyFile(t, build)}},
		Access:  gateway.Access{ClientKeyFile: keyFile(t, clientKey), KeyHeaderOnly: true}, Upstreams: []gateway.Upstream{{URL: to}},
	}, gateway.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(reader)),
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "metrics") })})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	ask := func(key string) int {
		resp, _ := send(t, http.MethodPost, s.URL+"/v1/chat/completions", chatRequest("m"), "X-Toolmend-Key", key)
		return resp.StatusCode
	}
	for i, key := range []string{team, build, build, clientKey} {
		require.Equal(t, 200, ask(key))
		steps(t, g, g, i+1) // a step gets its number after the client has its answer
	}
	require.Equal(t, 401, ask("key-of-nobody-at-all"))
	page := func(path string) string {
		return strings.Join(strings.Fields(tags.ReplaceAllString(browse(g, path, opened(t, g, g)...).Body.String(), " ")), " ")
	}
	require.Contains(t, page("/_toolmend/tools"), "Client key Steps Model calls Tokens in Tokens out Invalid steps build 2 2 2 2 0 team-a 1 1 1 1 0 ")
	require.Contains(t, page("/_toolmend/steps/1"), "Client key team-a")
	require.NotContains(t, page("/_toolmend/steps/4"), "Client key", "the key without a name")
	require.Contains(t, page("/_toolmend/?q=team-a"), "1–1 of 1 4 steps in memory")
	_, metrics := send(t, http.MethodGet, s.URL+"/_toolmend/metrics", "")
	require.Equal(t, "metrics", metrics, "on loopback they need no key")
	s.Close()
	require.NoError(t, g.Close())
	require.Equal(t, 1, strings.Count(log.String(), `"client_key":"team-a"`))
	require.Equal(t, 2, strings.Count(log.String(), `"client_key":"build"`))
	require.Equal(t, 3, strings.Count(log.String(), `"client_key":`), "the key without a name has none")
	require.NotContains(t, log.String(), "key-of")
	for name, want := range map[string]int64{"team-a": 1, "build": 2, "": 1} {
		require.Equal(t, want, counter(t, reader, "toolmend.gateway.requests", attribute.String("client_key", name)), name)
	}
	for name, want := range map[string]int64{"team-a": 1, "build": 2, "": -1} {
		key := attribute.String("client_key", name)
		require.Equal(t, want, counter(t, reader, "toolmend.gateway.client_model_calls", key), name)
		require.Equal(t, want, counter(t, reader, "toolmend.gateway.client_tokens", key, attribute.String("type", "input")), name)
		require.Equal(t, want, counter(t, reader, "toolmend.gateway.client_tokens", key, attribute.String("type", "output")), name)
	}
}

// A key is replaced without a failed request: the file gets the new key beside the
// old one, the clients change theirs, and the file loses the old one.
func TestKeyRotation(t *testing.T) {
	t.Parallel()
	to, _ := upstream(t, chatAnswer(good))
	const old, next = "the-old-key-of-team-a", "the-new-key-of-team-a"
	file := keyFile(t, old)
	c := gateway.Config{Clients: []gateway.Client{{Name: "team-a", KeyFile: file}}, Access: gateway.Access{KeyHeaderOnly: true}, Upstreams: []gateway.Upstream{{URL: to}}}
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	defer func() { s.Close(); require.NoError(t, g.Close()) }()
	status := func(key string) int {
		resp, _ := send(t, http.MethodPost, s.URL+"/v1/chat/completions", chatRequest("m"), "X-Toolmend-Key", key)
		return resp.StatusCode
	}
	reload := func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, g.Reload(c))
	}
	stop := make(chan struct{})
	var clients sync.WaitGroup
	clients.Go(func() { // sends the old key all the time
		for {
			select {
			case <-stop:
				return
			default:
				req, _ := http.NewRequest(http.MethodPost, s.URL+"/v1/chat/completions", strings.NewReader(chatRequest("m")))
				req.Header.Set("X-Toolmend-Key", old)
				if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 200 {
					t.Error("a request failed", err)
					return
				} else {
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
			}
		}
	})
	require.Equal(t, 401, status(next))
	reload(old + "\n" + next + "\n")
	require.Equal(t, []int{200, 200}, []int{status(old), status(next)})
	close(stop)
	clients.Wait()
	reload(next)
	require.Equal(t, []int{401, 200}, []int{status(old), status(next)})
	require.NoError(t, os.WriteFile(file, []byte("short"), 0o600))
	require.ErrorContains(t, g.Reload(c), `client "team-a": key_file: `)
	require.Equal(t, 200, status(next), "a wrong file changes nothing")
}

func TestClientsAreValidated(t *testing.T) {
	t.Parallel()
	up := []gateway.Upstream{{URL: "http://127.0.0.1:1"}}
	for want, clients := range map[string][]gateway.Client{
		`client "1": name: must not be empty`:                                     {{KeyFile: "x"}},
		`client "a b": name: must be at most 64 printable`:                        {{Name: "a b", KeyFile: "x"}},
		`client "a": requests_per_minute: must not be negative, got -1`:           {{Name: "a", KeyFile: "x", ClientLimits: gateway.ClientLimits{RequestsPerMinute: -1}}},
		`client "a": model_calls_per_minute: must not be negative, got -2`:        {{Name: "a", KeyFile: "x", ClientLimits: gateway.ClientLimits{ModelCallsPerMinute: -2}}},
		`client "a": tokens_per_minute: must not be negative, got -3`:             {{Name: "a", KeyFile: "x", ClientLimits: gateway.ClientLimits{TokensPerMinute: -3}}},
		`client "a": key_file: must not be empty`:                                 {{Name: "a"}},
		`client "a": name: another client has it; put further keys of one client`: {{Name: "a", KeyFile: "x"}, {Name: "a", KeyFile: "y"}},
	} {
		require.ErrorContains(t, gateway.Config{Clients: clients, Upstreams: up}.Validate(), want)
	}
	file := keyFile(t, clientKey)
	_, err := gateway.New(gateway.Config{Clients: []gateway.Client{{Name: "a", KeyFile: file}, {Name: "b", KeyFile: file}}, Access: gateway.Access{KeyHeaderOnly: true}, Upstreams: up}, gateway.Options{})
	require.ErrorContains(t, err, `client "b": key_file: `+file+`: another client has this key`)
}

// What a provider refused for one client is remembered for that client only, although the
// gateway sends all requests with its own key.
func TestHealedApart(t *testing.T) {
	t.Parallel()
	var refusals atomic.Int64
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(string(body), "(?!x)") {
			refusals.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"regex parse error: look-around, including look-ahead and look-behind, is not supported"}}`)
			return
		}
		_, _ = io.WriteString(w, chatAnswer(good))
	}))
	t.Cleanup(up.Close)
	const team, build = "key-of-the-team-0001", "key-of-the-build-0002"
	url := serve(t, gateway.Config{
		Clients:   []gateway.Client{{Name: "team-a", KeyFile: keyFile(t, team)}, {Name: "build", KeyFile: keyFile(t, build)}},
		Upstreams: []gateway.Upstream{{URL: up.URL, Headers: gateway.HeaderRules{Set: map[string]string{"Authorization": "Bearer sk-own"}}}},
	})
	request := strings.Replace(chatRequest("m"), `"type":"string"`, `"type":"string","pattern":"^(?!x)"`, 1)
	require.Contains(t, request, "(?!x)")
	for i, key := range []string{team, team, build, team, build} {
		resp, _ := send(t, http.MethodPost, url+"/v1/chat/completions", request, "Authorization", "Bearer "+key)
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, "schema-patterns", resp.Header.Get("X-Toolmend-Healed"))
		require.Equal(t, []int64{1, 1, 2, 2, 2}[i], refusals.Load())
	}
}

// Steps that end invalid are counted by client, with the longest row of them. A valid step ends
// a row, an answer without a call does not. The page has the same.
func TestInvalidSteps(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]gateway.Settings{
		"pass":   {Attempts: 1},
		"raise":  {Attempts: 1, OnExhausted: middleware.Raise},
		"repair": {Mode: gateway.Repair},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, map[string]string{"bad": chatAnswer(bad), "good": chatAnswer(good), "text": textAnswer("Hello.")}[r.Header.Get("X-Answer")])
			}))
			t.Cleanup(up.Close)
			const team = "key-of-the-team-0001"
			reader := metric.NewManualReader()
			g, err := gateway.New(gateway.Config{Settings: s, Clients: []gateway.Client{{Name: "team-a", KeyFile: keyFile(t, team)}}, Upstreams: []gateway.Upstream{{URL: up.URL}},
				Access: gateway.Access{KeyHeaderOnly: true}}, gateway.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(reader))})
			require.NoError(t, err)
			front := httptest.NewServer(g)
			ask := func(client string, answers ...string) {
				for _, a := range answers {
					_, _ = send(t, http.MethodPost, front.URL+"/v1/chat/completions", chatRequest("m"), "X-Toolmend-Key", team, "X-Toolmend-Client", client, "X-Answer", a)
				}
			}
			n := 0
			for client, answers := range map[string][]string{
				"never-learns": {"bad", "bad", "text", "bad", "good", "bad"}, "learns": {"bad", "good", "bad", "good"}, "good": {"good", "text"},
			} {
				for _, a := range answers {
					n++
					ask(client, a)
					steps(t, g, g, n) // a client may get its answer before the step is counted
				}
			}
			page := strings.Join(strings.Fields(tags.ReplaceAllString(browse(g, "/_toolmend/tools", opened(t, g, g)...).Body.String(), " ")), " ")
			for i := range 80 {
				ask(fmt.Sprint("client-", i), "bad")
			}
			front.Close()
			require.NoError(t, g.Close())
			of := func(client string) attribute.KeyValue { return attribute.String("client", client) }
			const counted, longest = "toolmend.gateway.invalid_steps", "toolmend.gateway.longest_invalid_row"
			require.EqualValues(t, 4, counter(t, reader, counted, of("never-learns"), attribute.String("client_key", "team-a")))
			require.EqualValues(t, 2, counter(t, reader, counted, of("learns")))
			require.EqualValues(t, -1, counter(t, reader, counted, of("good")))
			require.EqualValues(t, 18, counter(t, reader, counted, of("other")), "the labels are bounded")
			require.EqualValues(t, 86, counter(t, reader, counted))
			require.EqualValues(t, 3, gauge(t, reader, longest, of("never-learns")))
			require.EqualValues(t, 1, gauge(t, reader, longest, of("learns")))
			if name != "raise" { // there the client got an error in place of the call
				require.Contains(t, page, "Client Invalid steps Longest row learns 2 1 never-learns 4 3")
			}
		})
	}
}

// tags are the tags of a page.
var tags = regexp.MustCompile(`<[^>]*>`)

// gauge returns the value of a gauge with labels, or -1.
func gauge(t *testing.T, reader *metric.ManualReader, name string, label attribute.KeyValue) int64 {
	t.Helper()
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	for _, scope := range data.ScopeMetrics {
		for _, m := range scope.Metrics {
			if points, ok := m.Data.(metricdata.Gauge[int64]); ok && m.Name == name {
				for _, p := range points.DataPoints {
					if v, _ := p.Attributes.Value(label.Key); v == label.Value {
						return p.Value
					}
				}
			}
		}
	}
	return -1
}
