package wire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

// streamsOfPieces are streams that end with a call whose arguments come in pieces, each in an
// event of its own. The text between separates two events.
var streamsOfPieces = map[string]struct {
	codec wire.Codec
	write func(pieces []string, between string) string
}{
	"chat": {wire.OpenAIChat(), func(pieces []string, between string) string {
		event := func(delta, finish string) string {
			return `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + `}]}` + "\n\n"
		}
		out := event(`"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"pay","arguments":""}}]`, "null")
		for _, p := range pieces {
			out += event(`"tool_calls":[{"index":0,"function":{"arguments":"`+p+`"}}]`, "null") + between
		}
		return out + event("", `"tool_calls"`) + "data: [DONE]\n\n"
	}},
	"anthropic": {wire.Anthropic(), func(pieces []string, between string) string {
		out := eventStream(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"pay","input":{}}}`)
		for _, p := range pieces {
			out += eventStream(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+p+`"}}`) + between
		}
		return out + eventStream(`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":4}}`, `{"type":"message_stop"}`)
	}},
	"responses": {wire.OpenAIResponses(), func(pieces []string, between string) string {
		out := eventStream(`{"type":"response.created","sequence_number":0,"response":{"id":"r1","status":"in_progress","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":`+payCall("")+`}`)
		for i, p := range pieces {
			out += eventStream(fmt.Sprintf(`{"type":"response.function_call_arguments.delta","sequence_number":%d,"output_index":0,"item_id":"fc_1","delta":"%s"}`, i+2, p)) + between
		}
		return out + eventStream(`{"type":"response.output_item.done","sequence_number":90,"output_index":0,"item":`+payCall(strings.Join(pieces, ""))+`}`,
			`{"type":"response.completed","sequence_number":91,"response":{"id":"r1","status":"completed","output":[`+payCall(strings.Join(pieces, ""))+`]}}`)
	}},
}

// A piece of a call that repeats the event before it is read as one that does not: a
// comment between two events changes nothing, whatever the pieces are.
func TestRepeatedPieces(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{`{\"amount\":`, `5}`, `a b`, `\\`, `\"`, `\n`, `\ud83d`, `\ude00`, `\u00e`, `\u0063all`, `\x`, `\`, "é", "\u2028", "\xff", "\x01", "", `"`, `","arguments":"x`, "\ufeff", `tool_calls`})
	for name, s := range streamsOfPieces {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				pieces := rapid.SliceOfN(piece, 1, 8).Draw(t, "pieces")
				read := func(body string) (*middleware.Response, error) {
					stream := s.codec.NewStream(nil, nil)
					if _, err := stream.Write([]byte(body)); err != nil {
						return nil, err
					}
					return stream.Close()
				}
				want, wantErr := read(s.write(pieces, ": x\n\n"))
				got, err := read(s.write(pieces, ""))
				require.Equal(t, wantErr == nil, err == nil, "%v, and %v", wantErr, err)
				if err == nil {
					require.Equal(t, want.Message.ToolCalls[0].Arguments, got.Message.ToolCalls[0].Arguments)
					require.Len(t, got.Message.ToolCalls, len(want.Message.ToolCalls))
				}
			})
		})
	}
}
