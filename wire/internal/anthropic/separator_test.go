package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/anthropic"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Regression: arguments after a last event without its empty line made one event of the two.
func TestArgumentsBehindAnUnterminatedEvent(t *testing.T) {
	t.Parallel()
	body := `data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}

data: {"type":"message_stop"}

data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"f","input":{}}}`
	f := anthropic.Format{}
	resp, err := codec.Decode(f.NewStream(&middleware.Request{}, nil), []byte(body))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1)
	resp.Message.ToolCalls[0].Arguments = `{"a":1}`
	out, err := f.EncodeResponse(resp)
	require.NoError(t, err)
	again, err := codec.Decode(f.NewStream(&middleware.Request{}, nil), out)
	require.NoError(t, err)
	require.Equal(t, `{"a":1}`, again.Message.ToolCalls[0].Arguments, string(out))
}
