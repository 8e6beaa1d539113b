package toolmend_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
)

// Each model call speaks its provider's format: the path, the key's header, the answer.
func TestModels(t *testing.T) {
	t.Parallel()
	const chat = `{"choices":[{"message":{"role":"assistant","content":"Hello."},"finish_reason":"stop"}]}`
	for name, c := range map[string]struct {
		model                    func(toolmend.Endpoint) middleware.ModelCall
		path, header, key, reply string
	}{
		"OpenAI":     {toolmend.OpenAI, "/chat/completions", "Authorization", "Bearer k", chat},
		"Compatible": {toolmend.Compatible, "/chat/completions", "Authorization", "Bearer k", chat},
		"Anthropic": {
			toolmend.Anthropic, "/v1/messages", "X-Api-Key", "k",
			`{"type":"message","role":"assistant","content":[{"type":"text","text":"Hello."}],"stop_reason":"end_turn"}`,
		},
		"Gemini": {
			toolmend.Gemini, "/models/m:generateContent", "X-Goog-Api-Key", "k",
			`{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello."}]},"finishReason":"STOP"}]}`,
		},
		"Ollama": {
			toolmend.Ollama, "/api/chat", "Authorization", "Bearer k",
			`{"model":"m","message":{"role":"assistant","content":"Hello."},"done":true,"done_reason":"stop"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != c.path || r.Header.Get(c.header) != c.key {
					http.Error(w, r.URL.Path+" "+r.Header.Get(c.header), http.StatusNotFound)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, c.reply)
			}))
			t.Cleanup(server.Close)
			call := toolmend.Stack(toolmend.Options{})(c.model(toolmend.Endpoint{URL: server.URL, Key: "k", Model: "m"}))
			resp, err := call(t.Context(), &middleware.Request{Messages: []middleware.Message{middleware.User("Hi.")}})
			require.NoError(t, err)
			require.Equal(t, "Hello.", resp.Message.Text())
		})
	}
}

func TestCompatibleNeedsAURL(t *testing.T) {
	t.Parallel()
	require.PanicsWithError(t, "toolmend: Compatible needs Endpoint.URL, such as http://127.0.0.1:8080/v1",
		func() { toolmend.Compatible(toolmend.Endpoint{Model: "m"}) })
}
