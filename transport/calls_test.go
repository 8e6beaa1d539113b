package transport_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// TestNothingButCalls: an answer without text is not shown before the chain has
// decided, so nothing has to be spliced, and what is raised keeps its status.
func TestNothingButCalls(t *testing.T) {
	t.Parallel()
	stream := func(arguments string) string {
		return `data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}` + "\n\n" +
			`data: {"id":"c","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":"` + arguments + `"}}]}}]}` + "\n\n" +
			`data: {"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\ndata: [DONE]\n\n"
	}
	bad, good := stream(`{}`), stream(`{\"n\":1}`)
	question := `{"model":"m","stream":true,"messages":[{"role":"user","content":"add"}],"tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","required":["n"]}}}]}`
	raise := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})

	r := post(t, t.Context(), serve(t, events(bad), events(good)).URL, question)
	r.URL.Path = "/v1/chat/completions"
	resp, err := hooked(t, transport.New(transport.Options{}, raise))(r)
	require.NoError(t, err)
	got, err := wire.OpenAIChat().DecodeResponse(nil, []byte(read(t, resp)))
	require.NoError(t, err)
	require.Equal(t, `{"n":1}`, got.Message.ToolCalls[0].Arguments)

	r = post(t, t.Context(), serve(t, events(bad), events(bad)).URL, question)
	r.URL.Path = "/v1/chat/completions"
	resp, err = hooked(t, transport.New(transport.Options{}, raise))(r)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, resp.StatusCode)
	require.ErrorIs(t, transport.Cause(resp), argsvalidate.ErrExhausted)
	require.Contains(t, read(t, resp), `"error"`)
}
