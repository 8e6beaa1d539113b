package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/wire"
)

// llamaFormats are the formats that llama-server speaks.
var llamaFormats = map[string]wire.Codec{"chat": wire.OpenAIChat(), "responses": wire.OpenAIResponses(), "anthropic": wire.Anthropic()}

func llamaError(message string) string {
	return `{"error":{"code":500,"message":"` + message + `","type":"server_error"}}`
}

// modelErrors returns an error as each format reads it: with an error status, and inside a
// stream with status 200.
func modelErrors(t *testing.T, c wire.Codec, body string) map[string]*middleware.ModelError {
	t.Helper()
	s := c.NewStream(nil, nil)
	_, err := io.WriteString(s, "data: "+body+"\n\n")
	require.NoError(t, err)
	_, err = s.Close()
	var streamed *middleware.ModelError
	require.ErrorAs(t, err, &streamed)
	return map[string]*middleware.ModelError{"status": c.DecodeError(500, nil, []byte(body)), "stream": streamed}
}

func TestUnparsedOutputIsAnInvalidToolCall(t *testing.T) {
	t.Parallel()
	for format, c := range llamaFormats {
		for name, f := range map[string]struct{ message, output string }{
			"earlier":         {`Failed to parse input at pos 13: <tool_call>\nfoo: \"bar\"`, "<tool_call>\nfoo: \"bar\""},
			"earlier, empty":  {`Failed to parse input at pos 0: `, ""},
			"earlier, in all": {`litellm.InternalServerError: Failed to parse input at pos 288`, ""},
			"native":          {`The model produced output that does not match the expected peg-native format`, ""},
			"gemma":           {`The model produced output that does not match the expected peg-gemma4 format`, ""},
		} {
			for where, e := range modelErrors(t, c, llamaError(f.message)) {
				t.Run(format+", "+name+", "+where, func(t *testing.T) {
					require.ErrorIs(t, e, middleware.ErrInvalidToolCall)
					require.Equal(t, f.output, e.Output)
					require.Equal(t, 500, e.StatusCode)
					require.False(t, retry.Transient(e), "the same request fails again")
					require.NotContains(t, e.Error(), "foo")
				})
			}
		}
	}
}

func TestRefusedHistory(t *testing.T) {
	t.Parallel()
	for format, c := range llamaFormats {
		for name, message := range map[string]string{
			"llama.cpp":    `Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 27: syntax error while parsing value - invalid string: missing closing quote; last read: '\"Oslo'`,
			"sglang":       `Failed to parse tool call arguments as JSON: '{\"city\": \"Oslo'. Error: EOF while parsing a string`,
			"ollama":       `invalid tool call arguments`,
			"model studio": `<400> InternalError.Algo.InvalidParameter: The \"function.arguments\" parameter of the code model must be in JSON format.`,
			"anthropic":    `messages.3.content.1.tool_use.input: Input should be a valid dictionary`,
			"jinja":        `Can only get item pairs from a mapping.`,
		} {
			for where, e := range modelErrors(t, c, llamaError(message)) {
				t.Run(format+", "+name+", "+where, func(t *testing.T) {
					require.ErrorIs(t, e, middleware.ErrInvalidHistory)
					require.NotErrorIs(t, e, middleware.ErrInvalidToolCall)
					require.False(t, retry.Transient(e), "the same request fails again")
					require.NotContains(t, e.Error(), "Oslo", "the message quotes the arguments")
				})
			}
		}
	}
	vllm := []byte(`{"error":{"message":"Expecting ',' delimiter: line 1 column 54 (char 53)","type":"BadRequestError","param":null,"code":400}}`)
	require.ErrorIs(t, wire.OpenAIChat().DecodeError(400, nil, vllm), middleware.ErrInvalidHistory)
	require.NotErrorIs(t, wire.OpenAIChat().DecodeError(500, nil, vllm), middleware.ErrInvalidHistory, "a server may have failed to parse something else")
	inner := []byte(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"Expecting value: line 1 column 38 (char 37)\"}"}}}`)
	require.ErrorIs(t, wire.OpenAIChat().DecodeError(400, nil, inner), middleware.ErrInvalidHistory)
}

// A refusal that quotes the key is still known as what it is.
func TestRefusedHistoryQuotesTheKey(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, llamaError("secret-key: invalid tool call arguments"))
	}))
	t.Cleanup(server.Close)
	call := wire.OpenAIChat().Model(wire.Endpoint{URL: server.URL, Key: "secret-key"})
	_, err := call(t.Context(), &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User("1?")}})
	require.ErrorIs(t, err, middleware.ErrInvalidHistory)
	require.NotContains(t, err.Error(), "secret-key")
}

func TestErrorsThatAreNeither(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		`The model produced output that does not match the expected Content-only format`, // no call can be in it
		`The model produced output that does not match the expected `,
		`Failed to parse input at position 7: x`,
		`Loading model`,
		`context size exceeded`,
	} {
		e := wire.OpenAIChat().DecodeError(503, nil, []byte(llamaError(message)))
		require.False(t, errors.Is(e, middleware.ErrInvalidToolCall) || errors.Is(e, middleware.ErrInvalidHistory), message)
		require.True(t, retry.Transient(e), message)
	}
}
