package anthropic_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// A block that the client has in part, because an event in the middle of it is held, is
// completed when the answer is accepted: whatever its type, and whatever brings its pieces.
func TestBlockInterruptedByAHeldEvent(t *testing.T) {
	t.Parallel()
	held := "data: {\"x\":1}\n\n" // clients read an event without a type in different ways
	for name, block := range map[string][]string{
		"text":                             {textBlockStart(0), textDelta(0, "Hel"), textDelta(0, "lo"), blockStop(0)},
		"text with pieces of another type": {textBlockStart(0), blockDelta(0, "later_delta", "later", "Hel"), textDelta(0, "one"), blockDelta(0, "later_delta", "later", "lo"), blockStop(0)},
		"a provider's tool":                {blockStart(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), inputDelta(0, `{"q`), inputDelta(0, `":1}`), blockStop(0)},
		"a provider's tool, no JSON":       {blockStart(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), inputDelta(0, `{"q`), inputDelta(0, `":`), blockStop(0)},
		"unknown, input":                   {blockStart(0, `{"type":"later","id":"s","input":{}}`), inputDelta(0, `{"\u0071":`), inputDelta(0, ` 5.0}`), blockStop(0)},
		"unknown, input, no JSON":          {blockStart(0, `{"type":"later","id":"s","input":{}}`), inputDelta(0, `{"q":`), inputDelta(0, ` 5.0`), blockStop(0)},
		"unknown, text":                    {blockStart(0, `{"type":"later","text":"A"}`), textDelta(0, "b"), textDelta(0, "c"), blockStop(0)},
		"unknown, pieces of another type": {blockStart(0, `{"type":"later"}`), blockDelta(0, "later_delta", "later", "a"), blockDelta(0, "later_delta", "later", "b"),
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"later_delta","later":"c","other":"d"}}`), blockStop(0)},
		"unknown, whole": {blockStart(0, `{"type":"later_tool_result","tool_use_id":"s","content":[]}`), blockStop(0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := messageStream(strings.Join(block, ""), called(1, "t1", `{"n":1}`), messageEnd("tool_use", 3))
			want := decodeResponse(t, whole)
			for at := range len(block) + 1 {
				for _, tools := range [][]middleware.Tool{nil, {{Name: "a"}}} {
					body := messageStream(strings.Join(block[:at], ""), held, strings.Join(block[at:], ""), called(1, "t1", `{"n":1}`), messageEnd("tool_use", 3))
					s := format.NewStream(&middleware.Request{Tools: tools}, nil)
					_, err := s.Write([]byte(body))
					require.NoError(t, err)
					resp, err := s.Close()
					require.NoError(t, err)
					for sent := range allowedSent(t, body, tools) {
						rest, err := s.Rest(len(sent), resp)
						require.NoError(t, err, "%d pieces before the held event, after %q", at, sent)
						requireSameAnswer(t, want, decodeResponse(t, sent+string(rest)))
					}
				}
			}
		})
	}
}

// allowedSent returns what a client may have got when it takes the stream event by event.
func allowedSent(t *testing.T, body string, tools []middleware.Tool) map[string]bool {
	t.Helper()
	s := format.NewStream(&middleware.Request{Tools: tools}, nil)
	out := map[string]bool{"": true}
	for event := range strings.SplitAfterSeq(body, "\n\n") {
		_, err := s.Write([]byte(event))
		require.NoError(t, err)
		out[shownOf(s)] = true
	}
	return out
}

// Hostile answers whose unknown block was shown in part and could not be completed.
func TestUnknownBlocksOfHostileAnswers(t *testing.T) {
	t.Parallel()
	start := "\ufeffevent: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"x\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n"
	on := func(kind, rest string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + rest + "}\n\n"
	}
	end := on("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}`) + on("message_stop", "")
	for name, x := range map[string]struct{ body, want string }{
		"an event without a type between two deltas": {strings.Replace(start, `start",`, "start\",\ndata: ", 1) +
			on("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`) + on("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"one"}`) +
			on("content_block_stop", `,"index":0`) + on("ping", "") +
			on("content_block_start", `,"index":1,"content_block":{"type":"content_block_start","id":"c1","name":"pay","input":{}}`) +
			on("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"\\u0061mount\":"}`) + "data: {\"error\":\"m\"}\n\n" +
			on("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":" 5.0}"}`) + on("content_block_stop", `,"index":1`) + end, `" 5.0}"`},
		"a stop of another index before the delta": {start +
			on("content_block_start", `,"index":0,"content_block":{"type":"message_stop","text":""}`) + "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\ndata: \"index\":1}\n\n" +
			on("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"one"}`) + on("content_block_stop", `,"index":0`) +
			on("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"c1","name":"pay","input":{}}`) +
			on("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{\"\\u0061mount\": 5.0"}`) +
			on("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"}"}`) + on("content_block_stop", `,"index":1`) +
			on("content_block_start", `,"index":2,"content_block":{"type":"tool_use","name":"ping","input":{}}`) +
			on("content_block_delta", `,"index":2,"delta":{"type":"input_json_delta","partial_json":""}`) + on("content_block_stop", `,"index":2`) + end, `"text":"one"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left, resp, err := leaves(x.body)
			require.NoError(t, err)
			require.NotNil(t, resp)
			require.Empty(t, wrongUnit(left))
			require.Contains(t, left, x.want)
		})
	}
}
