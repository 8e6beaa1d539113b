package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

const tools = `"tools":[{"type":"function","function":{"name":"read_file","parameters":{"type":"object","properties":{"file_path":{"type":"string"},"lines":{"type":"integer"}},"required":["file_path"],"additionalProperties":false}}}]`

// chatRequest is the body of a chat request to model that offers read_file.
func chatRequest(model string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"Read a.txt."}],` + tools + `}`
}

// chatAnswer is a chat answer with a call of read_file.
func chatAnswer(arguments string) string {
	return fmt.Sprintf(`{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"read_file","arguments":%q}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, arguments)
}

// upstream answers requests with answers in turn, the last one again and again,
// and returns how many it got.
func upstream(t *testing.T, answers ...string) (url string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[min(int(requests.Add(1)), len(answers))-1]
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, requests
}

// serve returns the URL of a gateway.
func serve(t *testing.T, c gateway.Config) string {
	g, err := gateway.New(c, gateway.Options{})
	require.NoError(t, err)
	s := httptest.NewServer(g)
	t.Cleanup(func() { s.Close(); require.NoError(t, g.Close()) })
	return s.URL
}

// post returns the answer to a POST request.
func post(t *testing.T, url, body string) (status int, answer string, header http.Header) {
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(b), resp.Header
}

const (
	good    = `{"file_path":"a.txt"}`
	mending = `{"file_path":"a.txt","lines":"5"}` // a number as text
	mended  = `{"file_path":"a.txt","lines":5}`
	bad     = `{"wrong":"a.txt"}`
)

func TestModes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings gateway.Settings
		sent     []string // arguments of the upstream's answers, in turn
		want     string   // arguments that the client gets
		status   string
		requests int
	}{
		"enforce, valid":       {gateway.Settings{}, []string{good}, good, "valid", 1},
		"enforce, repaired":    {gateway.Settings{}, []string{mending}, mended, "valid", 1},
		"enforce, re-asked":    {gateway.Settings{}, []string{bad, good}, good, "valid", 2},
		"enforce, exhausted":   {gateway.Settings{Attempts: 2}, []string{bad}, bad, "invalid", 2},
		"repair, repaired":     {gateway.Settings{Mode: gateway.Repair}, []string{mending}, mended, "valid", 1},
		"repair, not repaired": {gateway.Settings{Mode: gateway.Repair}, []string{bad, good}, bad, "invalid", 1},
		"no repairs":           {gateway.Settings{Mode: gateway.Repair, Repairs: []string{"none"}}, []string{mending}, mending, "invalid", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []string
			for _, a := range c.sent {
				answers = append(answers, chatAnswer(a))
			}
			to, requests := upstream(t, answers...)
			url := serve(t, gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{{URL: to}}})
			status, answer, header := post(t, url+"/v1/chat/completions", chatRequest("m"))
			require.Equal(t, http.StatusOK, status)
			require.Contains(t, answer, fmt.Sprintf("%q", c.want))
			require.Equal(t, c.status, header.Get("X-Toolmend-Status"))
			require.Equal(t, c.requests, int(requests.Load()))
		})
	}
}

// A request goes to the upstream with the longest prefix and, below it, to the
// one that serves the model.
func TestRouting(t *testing.T) {
	t.Parallel()
	at := func(name string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, name+" "+r.URL.Path) }))
		t.Cleanup(s.Close)
		return s.URL
	}
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{
		{Name: "gpt", URL: at("gpt"), Models: []string{"gpt-*", "o3"}},
		{Name: "rest", URL: at("rest") + "/base", Default: true},
		{Name: "local", URL: at("local"), Prefix: "/local"},
		{Name: "deep", URL: at("deep"), Prefix: "/local/deep"},
		{Name: "one", URL: at("one"), Prefix: "/two", Models: []string{"one"}},
		{Name: "two", URL: at("two"), Prefix: "/two"},
	}})
	for _, c := range []struct{ path, model, want string }{
		{"/v1/chat/completions", "gpt-5", "gpt /v1/chat/completions"},
		{"/v1/chat/completions", "o3", "gpt /v1/chat/completions"},
		{"/v1/chat/completions", "o3-mini", "rest /base/v1/chat/completions"},
		{"/v1/embeddings", "gpt-5", "rest /base/v1/embeddings"}, // no model call
		{"/v1beta/models/gpt-9:generateContent", "", "gpt /v1beta/models/gpt-9:generateContent"},
		{"/local/v1/chat/completions", "gpt-5", "local /v1/chat/completions"},
		{"/local", "", "local /"},
		{"/locale", "", "rest /base/locale"},
		{"/local/deep/x", "", "deep /x"},
		{"/two/v1/chat/completions", "gpt-5", "two /v1/chat/completions"}, // serves all that one does not
		{"/two/v1/chat/completions", "one", "one /v1/chat/completions"},
	} {
		body := chatRequest(c.model)
		if c.model == "" {
			body = `{"contents":[{"role":"user","parts":[{"text":"Hello."}]}]}`
		}
		_, answer, _ := post(t, url+c.path, body)
		require.Equal(t, c.want, answer, c.path)
	}
}

// Without a default, a request that no upstream serves is refused in the format
// of its path.
func TestNoUpstream(t *testing.T) {
	t.Parallel()
	url := serve(t, gateway.Config{Upstreams: []gateway.Upstream{
		{URL: "http://127.0.0.1:1", Models: []string{"a"}}, {URL: "http://127.0.0.1:2", Models: []string{"b"}},
	}})
	status, answer, header := post(t, url+"/v1/messages", chatRequest("c"))
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, answer, `"type":"error"`)
	require.Equal(t, "unknown_upstream", header.Get("X-Toolmend-Error"))
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	one := func(u gateway.Upstream) gateway.Config {
		u.URL = "http://localhost:1"
		return gateway.Config{Upstreams: []gateway.Upstream{u}}
	}
	for want, c := range map[string]gateway.Config{
		`gateway: upstream: at least one is required`:                                                   {},
		`gateway: upstream "1": url: must be absolute, with http or https`:                              {Upstreams: []gateway.Upstream{{URL: "localhost"}}},
		`gateway: upstream "localhost:1": mode: must be one of "enforce", "observe", "repair", got "x"`: one(gateway.Upstream{Settings: gateway.Settings{Mode: "x"}}),
		`gateway: upstream "localhost:1": tool "t": attempts: must not be negative, got -1`:             one(gateway.Upstream{ToolRules: []gateway.ToolRule{{Name: "t", Attempts: -1}}}),
		`gateway: upstream "localhost:1": model "m": hold: must be one of "all", "calls", got "x"`: one(gateway.Upstream{
			ModelRules: []gateway.ModelRule{{Match: "m", Settings: gateway.Settings{Hold: "x"}}}}),
		`gateway: upstream "b": prefix: upstream "a" has the same one, and neither has models: give one of them another prefix, or models`: {Upstreams: []gateway.Upstream{
			{Name: "a", URL: "http://localhost:1", Default: true}, {Name: "b", URL: "http://localhost:2"}}},
		`gateway: upstream "x": url: is the gateway's own address; name the provider`:                         {Listen: "0.0.0.0:7001", Upstreams: []gateway.Upstream{{Name: "x", URL: "http://127.0.0.1:7001/v1"}}},
		`gateway: upstream "y": url: is the gateway's own address; name the provider`:                         {Upstreams: []gateway.Upstream{{Name: "y", URL: "http://localhost:7777"}}},
		`gateway: upstream "localhost:1": keep_alive: must be a duration of at least 1 ms, such as "8s"`:      one(gateway.Upstream{Settings: gateway.Settings{KeepAlive: 5}}),
		`gateway: upstream "localhost:1": reask_timeout: must be a duration of at least 1 ms, such as "8s"`:   one(gateway.Upstream{Settings: gateway.Settings{ReaskTimeout: 5}}),
		`gateway: upstream "localhost:1": timeouts: must be durations of at least 1 ms, such as "10s"`:        one(gateway.Upstream{Timeouts: gateway.Timeouts{Connect: 5}}),
		`gateway: upstream "localhost:1/a/": prefix: must begin with a slash and not end with one, got "/a/"`: one(gateway.Upstream{Prefix: "/a/"}),
	} {
		require.EqualError(t, c.Validate(), want)
	}
}
