package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

// TestCodecs: the list names each format once.
func TestCodecs(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range wire.Codecs() {
		require.False(t, seen[c.Dialect()], c.Dialect())
		seen[c.Dialect()] = true
	}
	for _, c := range []wire.Codec{wire.OpenAIChat(), wire.OpenAIResponses(), wire.Anthropic(), wire.Gemini(), wire.Ollama()} {
		require.True(t, seen[c.Dialect()], c.Dialect())
		require.Equal(t, c, c, "a codec can be compared")
	}
	wire.Codecs()[0] = nil
	require.NotNil(t, wire.Codecs()[0])
}

// TestEnded: a reader can stop at the mark of its format.
func TestEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		codec         wire.Codec
		open, ended   string
		stream, whole bool // results of IsStream
	}{
		"chat":      {wire.OpenAIChat(), "data: {\"choices\":[]}\n\n", "data: [DONE]\n\n", true, true},
		"responses": {wire.OpenAIResponses(), "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: response.failed\r\ndata: {\"type\":\"response.failed\",\"response\":{}}\r\n\r\n", true, true},
		"anthropic": {wire.Anthropic(), "event: ping\ndata: {\"type\":\"ping\"}\n\n", "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true, true},
		"ollama":    {wire.Ollama(), `{"message":{"role":"assistant","content":"a"},"done":false}` + "\n", `{"message":{"role":"assistant","content":""},"done":true}` + "\n", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.codec.NewStream(nil, nil)
			_, _ = s.Write([]byte(c.open))
			require.False(t, s.Ended())
			require.Equal(t, c.stream, s.IsStream())
			line := strings.TrimRight(c.ended, "\r\n")
			_, _ = s.Write([]byte(line))
			require.False(t, s.Ended(), "the line has not ended")
			_, _ = s.Write([]byte(c.ended[len(line):]))
			require.True(t, s.Ended())
			require.Equal(t, c.whole, s.IsStream())
		})
	}
}

// TestIsStream: one JSON text is not a stream, however it is spread over lines.
func TestIsStream(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		"":                              false,
		`{"message":{}}`:                false,
		"{\"message\":{}}\n":            false,
		"{\n\"message\":{}}":            false,
		"{\"message\":{}}\n{\"a\":1}\n": true,
		"[{\"a\":1},\n{\"b\":1}]":       false,
		": comment\n\n":                 true,
		"\ufeffdata: {}\n\n":            true,
		"id: 1\r\rdata: {}\r\r":         true,
		"<html>\n</html>":               false,
	} {
		s := wire.Ollama().NewStream(nil, nil)
		_, _ = s.Write([]byte(body))
		require.Equal(t, want, s.IsStream(), "%q", body)
	}
}

// TestFailure: the provider's error is found in the stream, and comes whole.
func TestFailure(t *testing.T) {
	t.Parallel()
	const (
		begin = "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"a\"}}]}"
		fails = "data: {\"error\":{\"message\":\"slow down\",\"code\":\"busy\"}}"
		bare  = "data: {\"error\":{\"message\":\"slow down\"}}"
		done  = "data: [DONE]"
	)
	for body, want := range map[string]string{
		begin + "\n\n" + fails + "\n\n":                          fails + "\n\n",
		begin + "\n\n" + fails + "\n\n" + done + "\n\n":          fails + "\n\n",
		begin + "\n\n" + fails:                                   fails + "\n\n",
		begin + "\r\n\r\n" + fails + "\r\n\r\n":                  fails + "\r\n\r\n",
		begin + "\r\r" + fails + "\r\r":                          fails + "\n\n",
		begin + "\n\n" + bare + "\n\n" + done + "\n\n":           bare + "\n\n",  // the end mark alone is an error too
		begin + "\n\nevent: error\n" + begin + "\n\n":            "",             // clients that ignore names read no error
		begin + "\n\n" + fails + "\n{\"a\":\n1}\n\n":             fails + "\n\n", // google-genai joins lines without a field
		begin + "\n\nevent: error\n" + fails + "\n\n":            "event: error\n" + fails + "\n\n",
		begin + "\n\n" + done + "\n\n":                           "",
		`{"error":{"message":"slow down","code":"busy"}}` + "\n": "",
	} {
		s := wire.OpenAIChat().NewStream(nil, nil)
		_, _ = s.Write([]byte(body))
		require.Empty(t, s.Failure(), "before Close")
		_, _ = s.Close()
		require.Equal(t, want, string(s.Failure()), "%q", body)
	}
}
