package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

func TestWantsStream(t *testing.T) {
	t.Parallel()
	const gemini = "/v1beta/models/gemini-2.5-pro"
	for _, c := range []struct {
		name  string
		codec wire.Codec
		path  string
		body  string
		want  bool
	}{
		{"chat, said", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":true}`, true},
		{"chat, denied", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":false}`, false},
		{"chat, silent", wire.OpenAIChat(), "/v1/chat/completions", `{"model":"m"}`, false},
		{"chat, null", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":null}`, false},
		{"chat, in a tool's schema only", wire.OpenAIChat(), "/v1/chat/completions", `{"tools":[{"stream":true}]}`, false},
		{"chat, behind text like a member", wire.OpenAIChat(), "/v1/chat/completions", `{"user":"\\\"stream\\\":false,\\\\","a":{"b":[{"c":"]}"},{"stream":false}]},"d":[],"stream":true,"e":{}}`, true},
		{"chat, options of a stream only", wire.OpenAIChat(), "/v1/chat/completions", `{"stream_options":{}}`, false},
		{"chat, the key escaped", wire.OpenAIChat(), "/v1/chat/completions", `{"\u0073tream":true}`, true},
		{"chat, the key in capitals", wire.OpenAIChat(), "/v1/chat/completions", `{"STREAM":true}`, true},
		{"chat, with a long s", wire.OpenAIChat(), "/v1/chat/completions", `{"ſtream":true}`, true},
		{"chat, in mixed case", wire.OpenAIChat(), "/v1/chat/completions", `{"Stream":true}`, true},
		{"chat, the last one counts", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":true,"Stream":false}`, false},
		{"chat, taken back", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":true,"stream":null}`, false},
		{"chat, of another kind", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":true,"Stream":1}`, false},
		{"chat, no JSON", wire.OpenAIChat(), "/v1/chat/completions", `{"stream":true`, false},
		{"chat, a prefix of the path", wire.OpenAIChat(), "/stream-proxy/v1/chat/completions", `{}`, false},
		{"responses", wire.OpenAIResponses(), "/v1/responses", `{"stream":true}`, true},
		{"anthropic", wire.Anthropic(), "/v1/messages", `{"stream":true}`, true},
		{"anthropic on Vertex", wire.Anthropic(), "/v1/x/models/claude:streamRawPredict", `{}`, true},
		{"anthropic on Vertex, whole", wire.Anthropic(), "/v1/x/models/claude:rawPredict", `{}`, false},
		{"gemini", wire.Gemini(), gemini + ":streamGenerateContent", `{}`, true},
		{"gemini, with a query", wire.Gemini(), gemini + ":streamGenerateContent?alt=sse", `{}`, true},
		{"gemini, whole", wire.Gemini(), gemini + ":generateContent", `{}`, false},
		{"gemini, the model's name", wire.Gemini(), "/v1beta/models/streamer:generateContent?q=stream", `{}`, false},
		{"ollama", wire.Ollama(), "/api/chat", `{"model":"m"}`, true},
		{"ollama, denied", wire.Ollama(), "/api/chat", `{"stream":false}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, c.codec.WantsStream(c.path, []byte(c.body)))
		})
	}
}

func TestStreamCursor(t *testing.T) {
	t.Parallel()
	const text = `data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"}}]}` + "\n\n"
	const end = `data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" + "data: [DONE]\n\n"
	s := wire.OpenAIChat().NewStream(nil, nil)
	require.Empty(t, s.Take())
	_, err := s.Write([]byte(text[:20]))
	require.NoError(t, err)
	require.Empty(t, s.Take())
	_, err = s.Write([]byte(text[20:]))
	require.NoError(t, err)
	require.Equal(t, text, string(s.Take()))
	require.Equal(t, len(text), s.Taken())
	_, err = s.Write([]byte(end))
	require.NoError(t, err)
	require.Empty(t, s.Take(), "the end waits")
	require.Equal(t, len(text), s.Taken())
	resp, err := s.Close()
	require.NoError(t, err)
	rest, err := s.Rest(resp)
	require.NoError(t, err)
	require.Equal(t, end, string(rest))
}
