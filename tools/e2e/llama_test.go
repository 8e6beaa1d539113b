package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/gateway"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// exchanged is one answer of the server: its status, its type and its bytes.
type exchanged struct {
	status int
	kind   string
	body   bytes.Buffer
}

// tee is a proxy in front of the server that keeps what the server sends.
type tee struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*exchanged
}

func newTee(t *testing.T, server *url.URL) *tee {
	v := &tee{}
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(r *http.Response) error {
		x := &exchanged{status: r.StatusCode, kind: r.Header.Get("Content-Type")}
		v.mu.Lock()
		v.seen = append(v.seen, x)
		v.mu.Unlock()
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(r.Body, &x.body), r.Body}
		return nil
	}
	v.Server = httptest.NewServer(proxy)
	t.Cleanup(v.Close)
	return v
}

// taken returns what the server has sent since the last call.
func (v *tee) taken() []*exchanged {
	v.mu.Lock()
	defer v.mu.Unlock()
	seen := v.seen
	v.seen = nil
	return seen
}

// exchange sends a request and reads the answer to its end. The header has the trailers
// too.
func exchange(t *testing.T, url, body string) (status int, header http.Header, got string) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	header = resp.Header.Clone()
	for k, v := range resp.Trailer {
		header[k] = v
	}
	return resp.StatusCode, header, string(text)
}

// untouched are requests that are not model calls, or that the server refuses. Their
// answers pass the gateway as they are.
var untouched = map[string]struct{ path, body string }{
	"properties":     {"/props", ""},
	"models":         {"/v1/models", ""},
	"health":         {"/health", ""},
	"slots":          {"/slots", ""},
	"tokens":         {"/tokenize", `{"content": "How warm is it?"}`},
	"text":           {"/detokenize", `{"tokens": [1, 2, 3]}`},
	"a prompt":       {"/apply-template", `{"messages": [{"role": "user", "content": "Hello"}]}`},
	"completion":     {"/completion", `{"prompt": "One, two,", "n_predict": 4, "temperature": 0}`},
	"a stream":       {"/completion", `{"prompt": "One, two,", "n_predict": 4, "temperature": 0, "stream": true}`},
	"legacy":         {"/v1/completions", `{"prompt": "One, two,", "max_tokens": 4, "temperature": 0}`},
	"no such path":   {"/nothing/here", ""},
	"a refusal":      {"/v1/chat/completions", `{"max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}], "response_format": {"type": "nonsense"}}`},
	"no such schema": {"/v1/chat/completions", `{"max_tokens": 4, "messages": [{"role": "user", "content": "Hello"}], "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}}}]}`},
}

// TestLlamaServer tries the server of llama.cpp as an upstream.
func TestLlamaServer(t *testing.T) {
	address := os.Getenv("LLAMA_SERVER")
	if address == "" {
		t.Skip("LLAMA_SERVER is not set: it is the URL of a llama-server with a model, such as http://127.0.0.1:8080")
	}
	server, err := url.Parse(address)
	require.NoError(t, err)
	upstream := newTee(t, server)
	to, err := url.Parse(upstream.URL)
	require.NoError(t, err)
	auto := []string{"auto"}
	for name, open := range map[string]func(*url.URL, string) (http.Handler, error){
		"observe": serve(gateway.Settings{Mode: gateway.Observe}),
		"repair":  serve(gateway.Settings{Mode: gateway.Repair, Rescue: auto}),
		"enforce": serve(gateway.Settings{Rescue: auto}),
	} {
		t.Run(name, func(t *testing.T) {
			handler, err := open(to, "")
			require.NoError(t, err)
			if g, ok := handler.(*gateway.Gateway); ok {
				t.Cleanup(func() { _ = g.Close() })
			}
			through := httptest.NewServer(handler)
			t.Cleanup(through.Close)
			for name, c := range untouched {
				t.Run(name, func(t *testing.T) { passes(t, upstream, through.URL+c.path, c.body) })
			}
			for _, stream := range []string{"", `"stream": true, `} {
				t.Run("a call "+stream, func(t *testing.T) { calls(t, upstream, through.URL, name, stream, `"type": "integer"`) })
				t.Run("a wrong call "+stream, func(t *testing.T) {
					calls(t, upstream, through.URL, name, stream, `"type": "integer", "multipleOf": 1000003`)
				})
			}
		})
	}
}

// passes compares what the client gets with what the server sent.
func passes(t *testing.T, upstream *tee, url, body string) {
	upstream.taken()
	status, header, got := exchange(t, url, body)
	seen := upstream.taken()
	require.Len(t, seen, 1)
	require.Equal(t, seen[0].status, status)
	require.Equal(t, seen[0].kind, header.Get("Content-Type"))
	require.Equal(t, seen[0].body.String(), got)
	require.Empty(t, header.Get("X-Toolmend-Status"))
}

// calls asks for a tool call. days is the schema of a parameter: llama.cpp writes no
// grammar for multipleOf, so that the model cannot but get it wrong at first.
func calls(t *testing.T, upstream *tee, url, mode, stream, days string) {
	const question = "Will it rain in Oslo in the next 3 days?"
	schema := `{"type": "object", "properties": {"city": {"type": "string"}, "days": {` + days + `}}, "required": ["city", "days"]}`
	upstream.taken()
	status, header, got := exchange(t, url+"/v1/chat/completions", `{"model": "m", `+stream+`"temperature": 0, "seed": 1, "max_tokens": 64,
		"messages": [{"role": "user", "content": "`+question+`"}],
		"tools": [{"type": "function", "function": {"name": "get_weather", "description": "weather forecast", "parameters": `+schema+`}}]}`)
	seen := upstream.taken()
	require.Equal(t, http.StatusOK, status, got)
	for _, x := range seen {
		require.Equal(t, http.StatusOK, x.status, x.body.String()) // re-asks among them
	}
	if mode == "observe" {
		require.Len(t, seen, 1)
		require.Equal(t, seen[0].body.String(), got)
		require.Empty(t, header.Get("X-Toolmend-Status"))
		return
	}
	asked := &middleware.Request{
		Messages: []middleware.Message{middleware.User(question)},
		Tools:    []middleware.Tool{{Name: "get_weather", Parameters: []byte(schema)}},
	}
	if stream != "" {
		asked.Sink = func(middleware.Event) error { return nil }
	}
	resp, err := wire.OpenAIChat().DecodeResponse(asked, []byte(got))
	require.NoError(t, err, got)
	_, invalid := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), asked.Tools, resp.Message.ToolCalls...)
	t.Logf("%d model calls, status %q, %d calls, %q", len(seen), header.Get("X-Toolmend-Status"), len(resp.Message.ToolCalls), resp.Message.Text())
	switch header.Get("X-Toolmend-Status") {
	case "valid":
		require.NoError(t, invalid)
		require.NotEmpty(t, resp.Message.ToolCalls)
	case "invalid":
		require.Equal(t, map[string]int{"repair": 1, "enforce": 3}[mode], len(seen), "an invalid call is passed on when the attempts have run out")
	default:
		require.Empty(t, resp.Message.ToolCalls)
	}
	if mode == "repair" {
		require.Len(t, seen, 1)
		return
	}
	if len(seen) == 1 && len(resp.Message.ToolCalls) == 0 {
		t.Skip("the model called no tool")
	}
	if strings.Contains(days, "multipleOf") {
		require.Greater(t, len(seen), 1)
	}
}
