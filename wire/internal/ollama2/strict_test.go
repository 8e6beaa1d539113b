package ollama2_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/ollama2"
)

// Without ids the server gives results to the calls in order: those in another
// order would answer the wrong calls.
func TestResultsInAnotherOrder(t *testing.T) {
	t.Parallel()
	const body = `{"model":"m","messages":[{"role":"user","content":"Wind?"},{"role":"assistant","content":"","tool_calls":[` +
		`{"function":{"name":"wind","arguments":{"n":1}}},{"function":{"name":"wind","arguments":{"n":2}}}]}]}`
	first := middleware.Message{Role: middleware.RoleTool, ToolCallID: "toolmend_1", Parts: []middleware.Part{{Text: "one"}}}
	second := middleware.Message{Role: middleware.RoleTool, ToolCallID: "toolmend_2", Parts: []middleware.Part{{Text: "two"}}}
	req, err := ollama2.Format{}.DecodeRequest([]byte(body))
	require.NoError(t, err)
	_, err = ollama2.Format{}.EncodeRequest(req.With(second, first))
	require.ErrorIs(t, err, codec.ErrUnencodable)
	_, err = ollama2.Format{}.EncodeRequest(req.With(second))
	require.ErrorIs(t, err, codec.ErrUnencodable)

	again, err := ollama2.Format{}.EncodeRequest(req.With(first, second))
	require.NoError(t, err)
	got, err := ollama2.Format{}.DecodeRequest(again)
	require.NoError(t, err)
	require.Equal(t, "toolmend_2", got.Messages[3].ToolCallID)
	got.Messages[2], got.Messages[3] = got.Messages[3], got.Messages[2]
	_, err = ollama2.Format{}.EncodeRequest(got)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

// A gateway puts the server's error into an object: what the model wrote is
// kept out of its text there too.
func TestRefusalInAnObject(t *testing.T) {
	t.Parallel()
	err := ollama2.Format{}.DecodeError(http.StatusInternalServerError, nil,
		[]byte(`{"error":{"message":"error parsing tool call: raw='{\"secret\": 1', err=unexpected end of JSON input","type":"api_error"}}`))
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	require.Equal(t, `{"secret": 1`, err.Output)
	require.Equal(t, "api_error", err.Code)
	require.NotContains(t, err.Error(), "secret")
}
