package gateway

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	askedModel = `{"model":"m","messages":[{"role":"user","content":"1?"}],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}}}]}`
	validCall  = `{"n":1}`
	mendedCall = `{"n":"1"}`
	brokenCall = `{"m":1}`
)

// calls is a chat answer with calls of add.
func calls(arguments ...string) string {
	var all []string
	for i, a := range arguments {
		all = append(all, fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"add","arguments":%q}}`, i, a))
	}
	return `{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[` + strings.Join(all, ",") +
		`]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`
}

// written is a chat answer with a text.
func written(text string) string {
	return fmt.Sprintf(`{"id":"r","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}]}`, text)
}

// auto reads calls from the text of an answer.
var auto = Settings{Rescue: []string{"auto"}}

// streamed is calls as a stream.
func streamed(arguments string) string {
	return fmt.Sprintf("data: {\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"add\",\"arguments\":%q}}]}}]}\n\n"+
		"data: {\"id\":\"r\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n", arguments)
}

func zipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// noted is an observer that keeps the exchanges.
type noted struct {
	mu  sync.Mutex
	all []*exchange
}

func (n *noted) observed(x *exchange) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.all = append(n.all, x)
}

// observing is a gateway in the mode Observe in front of h.
type observing struct {
	*Gateway
	*httptest.Server
	noted
	upstream *httptest.Server
	pipeline *pipeline
	stream   bool // ask for a stream
}

func observe(t *testing.T, s Settings, h http.HandlerFunc, o Options) *observing {
	up := httptest.NewServer(h)
	t.Cleanup(up.Close)
	s.Mode = Observe
	g, err := New(Config{Settings: s, Upstreams: []Upstream{{Name: "up", URL: up.URL}}}, o)
	require.NoError(t, err)
	v := &observing{Gateway: g, upstream: up, pipeline: g.state.Load().upstreams[0].pipeline}
	v.pipeline.observers = append(v.pipeline.observers, &v.noted)
	v.Server = httptest.NewServer(g)
	t.Cleanup(func() { v.Server.Close(); require.NoError(t, g.Close()) })
	return v
}

// ends closes the gateway and returns the exchanges.
func (v *observing) ends(t *testing.T) []*exchange {
	v.Server.Close()
	require.NoError(t, v.Gateway.Close())
	require.Zero(t, v.copies.reserved.Load(), "all memory was given back")
	return v.all
}

// ask sends a chat request and returns the answer.
func (v *observing) ask(t *testing.T, header ...string) (*http.Response, string) {
	body := askedModel
	if v.stream {
		body = strings.Replace(body, "{", `{"stream":true,`, 1)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, v.URL+"/v1/chat/completions", strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
	defer client.CloseIdleConnections()
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(b)
}

func answering(status int, kind, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", kind)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}
