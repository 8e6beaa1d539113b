package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

// The id of an answer is read, whole and streamed.
func TestIDOfAnAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		codec         wire.Codec
		whole, stream string
	}{
		"chat": {wire.OpenAIChat(), `{"id":"r1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}]}`,
			"data: {\"id\":\"r1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"},
		"anthropic": {wire.Anthropic(), `{"id":"r1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`,
			"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"r1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[]}}\n\n" +
				"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"},
		"responses": {wire.OpenAIResponses(), `{"id":"r1","object":"response","status":"completed","model":"m","output":[]}`, ""},
		"gemini":    {wire.Gemini(), `{"responseId":"r1","candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"finishReason":"STOP"}]}`, ""},
	} {
		for _, body := range []string{c.whole, c.stream} {
			if body == "" {
				continue
			}
			resp, err := c.codec.DecodeResponse(nil, []byte(body))
			require.NoError(t, err, name)
			require.Equal(t, "r1", resp.ID, name)
		}
	}
}
