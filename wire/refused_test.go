package wire_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

// A message is marked as a refusal, whole or streamed.
func TestRefused(t *testing.T) {
	t.Parallel()
	chunk := func(delta string) string {
		return `data: {"id":"a","object":"chat.completion.chunk","choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n"
	}
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
		want  bool
	}{
		"chat":             {wire.OpenAIChat(), `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":null,"refusal":"No."}}]}`, true},
		"chat, not":        {wire.OpenAIChat(), `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"The \"refusal\"","refusal":null}}]}`, false},
		"chat, streamed":   {wire.OpenAIChat(), chunk(`{"role":"assistant","refusal":"N"}`) + chunk(`{"refusal":"o."}`) + "data: [DONE]\n\n", true},
		"responses":        {wire.OpenAIResponses(), `{"object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"refusal","refusal":"No."}]}]}`, true},
		"responses, not":   {wire.OpenAIResponses(), `{"object":"response","status":"completed","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"refusal"}]}]}`, false},
		"another format's": {wire.Anthropic(), `{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"refusal"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := c.codec.DecodeResponse(nil, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.want, resp.Message.Refused())
		})
	}
}
