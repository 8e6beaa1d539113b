package gateway_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
)

const teamKey, buildKey = "key-of-the-team-0001", "key-of-the-build-0002"

// limited is a gateway with the client team, which has limits, and the client build, which has none. All
// of it is inside of a bubble of package synctest.
type limited struct {
	*gateway.Gateway
	t      *testing.T
	config gateway.Config
	calls  atomic.Int64 // model calls that the upstream got
	log    bytes.Buffer
	reader *metric.ManualReader
}

const busy = `{"error":{"message":"busy"}}`

// newLimited returns a limited whose upstream sends answers in turn, the last one again and again.
func newLimited(t *testing.T, keys [2]string, l gateway.ClientLimits, s gateway.Settings, answers ...string) *limited {
	g := &limited{t: t, reader: metric.NewManualReader()}
	up := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		answer := answers[min(int(g.calls.Add(1)), len(answers))-1]
		if strings.HasPrefix(answer, `{"error"`) {
			w.WriteHeader(map[bool]int{false: http.StatusBadRequest, true: http.StatusServiceUnavailable}[answer == busy])
		}
		_, _ = io.WriteString(w, answer)
	})}
	conns := make(pipes)
	go func() { _ = up.Serve(conns) }()
	g.config = gateway.Config{
		Settings: s, Access: gateway.Access{KeyHeaderOnly: true}, Upstreams: []gateway.Upstream{{URL: "http://provider"}},
		Clients: []gateway.Client{{Name: "team", KeyFile: keys[0], ClientLimits: l}, {Name: "build", KeyFile: keys[1]}},
	}
	var err error
	g.Gateway, err = gateway.New(g.config, gateway.Options{
		Logger: slog.New(slog.NewJSONHandler(&g.log, nil)), MeterProvider: metric.NewMeterProvider(metric.WithReader(g.reader)),
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			client, server := net.Pipe()
			conns <- server
			return client, nil
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()); close(conns); _ = up.Close() })
	return g
}

// ask sends a request and returns its response.
func (g *limited) ask(key, method, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(g.t.Context(), method, path, strings.NewReader(chatRequest("m")))
	r.Host = "localhost"
	r.Header.Set("X-Toolmend-Key", key)
	w := httptest.NewRecorder()
	g.ServeHTTP(w, r)
	return w
}

// chat returns the status of a chat request.
func (g *limited) chat(key string) int {
	return g.ask(key, http.MethodPost, "/v1/chat/completions").Code
}

// inBubble runs f in a bubble with the files of two keys, which are made outside.
func inBubble(t *testing.T, f func(t *testing.T, keys [2]string)) {
	keys := [2]string{keyFile(t, teamKey), keyFile(t, buildKey)}
	synctest.Test(t, func(t *testing.T) { f(t, keys) })
}

// A client that has used what a limit of its own allows gets status 429 before the upstream is called.
// The limit fills up continuously. Other clients are not affected. An answer has 2 tokens.
func TestClientLimits(t *testing.T) {
	t.Parallel()
	const post, get, chat, models, embeddings = http.MethodPost, http.MethodGet, "/v1/chat/completions", "/v1/models", "/v1/embeddings"
	type step struct {
		wait         time.Duration
		method, path string
		retryAfter   string // "" means that the request is served
	}
	for name, c := range map[string]struct {
		limits   gateway.ClientLimits
		settings gateway.Settings
		steps    []step
	}{
		"none": {gateway.ClientLimits{}, gateway.Settings{}, []step{{0, post, chat, ""}, {0, post, chat, ""}, {0, get, models, ""}}},
		"requests": {gateway.ClientLimits{RequestsPerMinute: 3}, gateway.Settings{}, []step{
			{0, post, chat, ""}, {0, get, models, ""}, {0, post, embeddings, ""}, {0, post, chat, "20"}, {0, get, models, "20"},
			{19 * time.Second, post, chat, "1"}, {time.Second, post, chat, ""}, {0, post, chat, "20"},
			{time.Hour, post, chat, ""}, {0, post, chat, ""}, {0, post, chat, ""}, {0, post, chat, "20"},
		}},
		"a limit that does not divide": {gateway.ClientLimits{RequestsPerMinute: 7}, gateway.Settings{}, []step{
			{0, get, models, ""}, {0, get, models, ""}, {0, get, models, ""}, {0, get, models, ""}, {0, get, models, ""}, {0, get, models, ""}, {0, get, models, ""},
			{0, get, models, "9"}, {9 * time.Second, get, models, ""},
		}},
		"model calls": {gateway.ClientLimits{ModelCallsPerMinute: 2}, gateway.Settings{}, []step{
			{0, post, chat, ""}, {0, get, models, ""}, {0, post, chat, ""}, {0, post, chat, "30"}, {0, get, models, ""}, {0, post, embeddings, ""}, {30 * time.Second, post, chat, ""},
		}},
		"tokens": {gateway.ClientLimits{TokensPerMinute: 3}, gateway.Settings{}, []step{
			{0, post, chat, ""}, {0, post, chat, ""}, {0, post, chat, "40"}, {0, get, models, ""}, {39 * time.Second, post, chat, "1"}, {time.Second, post, chat, ""}, {0, post, chat, "40"},
		}},
		"tokens in mode observe": {gateway.ClientLimits{TokensPerMinute: 3}, gateway.Settings{Mode: gateway.Observe}, []step{
			{0, post, chat, ""}, {time.Second, post, chat, ""}, {time.Second, post, chat, "39"}, {39 * time.Second, post, chat, ""}, // an answer is read a little later
		}},
		"tokens in mode repair": {gateway.ClientLimits{TokensPerMinute: 3}, gateway.Settings{Mode: gateway.Repair}, []step{
			{0, post, chat, ""}, {0, post, chat, ""}, {0, post, chat, "40"},
		}},
		"the longest wait counts": {gateway.ClientLimits{RequestsPerMinute: 1, ModelCallsPerMinute: 60, TokensPerMinute: 1}, gateway.Settings{}, []step{
			{0, post, chat, ""}, {0, post, chat, "120"}, {0, get, models, "60"},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, keys [2]string) {
				g := newLimited(t, keys, c.limits, c.settings, chatAnswer(good))
				for i, s := range c.steps {
					time.Sleep(s.wait)
					before := g.calls.Load()
					w := g.ask(teamKey, s.method, s.path)
					if s.retryAfter == "" {
						require.Equal(t, http.StatusOK, w.Code, "step %d: %s", i, w.Body)
						require.Equal(t, before+1, g.calls.Load())
						continue
					}
					require.Equal(t, http.StatusTooManyRequests, w.Code, "step %d", i)
					require.Equal(t, s.retryAfter, w.Header().Get("Retry-After"), "step %d", i)
					ms, err := strconv.Atoi(w.Header().Get("Retry-After-Ms"))
					require.NoError(t, err)
					require.Equal(t, s.retryAfter, strconv.Itoa((ms-10+999)/1000), "step %d: %d ms", i, ms)
					require.Equal(t, "rate_limit_exceeded", w.Header().Get("X-Toolmend-Error"))
					require.Equal(t, before, g.calls.Load(), "the upstream was not called")
					require.Equal(t, http.StatusOK, g.chat(buildKey))
				}
			})
		})
	}
}

// An upstream that reports a number of tokens that cannot be keeps a client waiting for an hour at most.
func TestLimitsWithImpossibleUsage(t *testing.T) {
	t.Parallel()
	for tokens, next := range map[string]int{"9000000000000000000": 429, "4000000000000000000": 429, "-4000000000000000000": 200} {
		inBubble(t, func(t *testing.T, keys [2]string) {
			g := newLimited(t, keys, gateway.ClientLimits{TokensPerMinute: 3}, gateway.Settings{}, strings.Replace(chatAnswer(good), `_tokens":1,"completion_tokens":1`, `_tokens":`+tokens+`,"completion_tokens":`+tokens, 1))
			require.Equal(t, http.StatusOK, g.chat(teamKey))
			require.Equal(t, next, g.chat(teamKey), tokens)
			time.Sleep(time.Hour)
			require.Equal(t, http.StatusOK, g.chat(teamKey))
		})
	}
}

// The refusal is in the format of the path, and names the limit.
func TestLimitsInTheFormat(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, keys [2]string) {
		g := newLimited(t, keys, gateway.ClientLimits{RequestsPerMinute: 6}, gateway.Settings{}, chatAnswer(good))
		for range 6 {
			require.Equal(t, http.StatusOK, g.chat(teamKey))
		}
		const text = `the client \"team\" has used what requests_per_minute = 6 allows; try again in 10s`
		for path, want := range map[string]string{
			"/v1/chat/completions":                   `{"error":{"message":"` + text + `","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`,
			"/v1/messages":                           `{"type":"error","error":{"type":"rate_limit_error","message":"` + text + `","code":"rate_limit_exceeded"}}`,
			"/v1beta/models/m:streamGenerateContent": `{"error":{"code":429,"message":"` + text + `","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"toolmend","reason":"rate_limit_exceeded"}]}}`,
			"/api/chat":                              `{"error":"` + text + `"}`,
			"/anything":                              `{"error":{"code":"rate_limit_exceeded","message":"` + text + `"}}`,
		} {
			require.JSONEq(t, want, g.ask(teamKey, http.MethodPost, path).Body.String(), path)
		}
	})
}

// A re-ask, a retry or a healed request that would exceed a limit is not made: the client gets the
// last answer, marked.
func TestLimitsOfReasks(t *testing.T) {
	t.Parallel()
	retries := 2
	const refusal = `{"error":{"message":"regex parse error: look-around, including look-ahead and look-behind, is not supported"}}`
	for name, c := range map[string]struct {
		limits   gateway.ClientLimits
		settings gateway.Settings
		calls    int64
		status   int
		mark     string
	}{
		"enough":         {gateway.ClientLimits{ModelCallsPerMinute: 3, TokensPerMinute: 5}, gateway.Settings{}, 3, 200, "valid"},
		"model calls":    {gateway.ClientLimits{ModelCallsPerMinute: 2}, gateway.Settings{}, 2, 200, "invalid"},
		"the first one":  {gateway.ClientLimits{ModelCallsPerMinute: 1}, gateway.Settings{}, 1, 200, "invalid"},
		"tokens":         {gateway.ClientLimits{TokensPerMinute: 3}, gateway.Settings{}, 2, 200, "invalid"},
		"raise":          {gateway.ClientLimits{ModelCallsPerMinute: 2}, gateway.Settings{OnExhausted: middleware.Raise}, 2, 400, ""},
		"requests alone": {gateway.ClientLimits{RequestsPerMinute: 1}, gateway.Settings{Retries: &retries}, 3, 200, "valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, keys [2]string) {
				g := newLimited(t, keys, c.limits, c.settings, chatAnswer(bad), chatAnswer(`{"wrong":"b.txt"}`), chatAnswer(good))
				w := g.ask(teamKey, http.MethodPost, "/v1/chat/completions")
				require.Equal(t, c.calls, g.calls.Load())
				require.Equal(t, c.status, w.Code)
				require.Equal(t, c.mark, w.Header().Get("X-Toolmend-Status"))
				limited := c.mark != "valid"
				require.Equal(t, limited, strings.Contains(g.log.String(), `"note":"no further model call: the client \"team\" has used what `), g.log.String())
				require.Equal(t, c.status == 400, w.Header().Get("X-Toolmend-Error") == "rate_limit_exceeded")
			})
		})
	}
	t.Run("retried", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T, keys [2]string) {
			g := newLimited(t, keys, gateway.ClientLimits{ModelCallsPerMinute: 2}, gateway.Settings{Retries: &retries}, busy)
			w := g.ask(teamKey, http.MethodPost, "/v1/chat/completions")
			require.EqualValues(t, 2, g.calls.Load())
			require.Equal(t, busy, w.Body.String())
			require.Equal(t, http.StatusServiceUnavailable, w.Code)
		})
	})
	t.Run("healed", func(t *testing.T) {
		t.Parallel()
		inBubble(t, func(t *testing.T, keys [2]string) {
			g := newLimited(t, keys, gateway.ClientLimits{ModelCallsPerMinute: 1}, gateway.Settings{Retries: &retries}, refusal)
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", strings.NewReader(strings.Replace(chatRequest("m"), `"type":"string"`, `"type":"string","pattern":"^(?!x)"`, 1)))
			r.Host = "localhost"
			r.Header.Set("X-Toolmend-Key", teamKey)
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			require.EqualValues(t, 1, g.calls.Load())
			require.Equal(t, refusal, w.Body.String())
			require.Equal(t, http.StatusBadRequest, w.Code)
			require.Contains(t, g.log.String(), "no further model call: ")
		})
	})
}

// A reload keeps what a client has used, unless it changes the limits.
func TestLimitsAndReload(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, keys [2]string) {
		g := newLimited(t, keys, gateway.ClientLimits{RequestsPerMinute: 2, TokensPerMinute: 1000}, gateway.Settings{}, chatAnswer(good))
		require.Equal(t, []int{200, 200, 429}, []int{g.chat(teamKey), g.chat(teamKey), g.chat(teamKey)})
		require.NoError(t, g.Reload(g.config))
		require.Equal(t, http.StatusTooManyRequests, g.chat(teamKey))
		g.config.Clients[0].RequestsPerMinute = 1
		require.NoError(t, g.Reload(g.config))
		require.Equal(t, []int{200, 429}, []int{g.chat(teamKey), g.chat(teamKey)})
		g.config.Clients[0].ClientLimits = gateway.ClientLimits{}
		require.NoError(t, g.Reload(g.config))
		require.Equal(t, []int{200, 200}, []int{g.chat(teamKey), g.chat(teamKey)})
	})
}

// Refusals are counted by client, from 0 on, and logged once a minute for each client.
func TestLimitsAreCounted(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, keys [2]string) {
		g := newLimited(t, keys, gateway.ClientLimits{ModelCallsPerMinute: 1}, gateway.Settings{}, chatAnswer(good))
		refused := func() int64 {
			return counter(t, g.reader, "toolmend.gateway.refused", attribute.String("code", "rate_limit_exceeded"), attribute.String("client_key", "team"))
		}
		g.config.Clients[1].ModelCallsPerMinute = 1
		require.NoError(t, g.Reload(g.config))
		require.EqualValues(t, 0, refused())
		for range 10 {
			g.chat(teamKey)
		}
		require.Equal(t, []int{200, 429}, []int{g.chat(buildKey), g.chat(buildKey)})
		require.EqualValues(t, 9, refused())
		require.Equal(t, 1, strings.Count(g.log.String(), `"msg":"request refused","code":"rate_limit_exceeded","http_status":429,"from":"192.0.2.1","not_logged":0,"client_key":"team","reason":"the client \"team\" has used what model_calls_per_minute = 1 allows; try again in 1m0s"`), g.log.String())
		require.Equal(t, 2, strings.Count(g.log.String(), "request refused"), "one for each client")
	})
}
