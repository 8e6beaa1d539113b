package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire"
)

const (
	payBlock   = `{"type":"tool_use","id":"call_1","name":"pay","input":{"amount":5}}`
	payOpen    = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"pay","input":{}}}`
	payDelta   = `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"amount\":5}"}}`
	payStop    = `{"type":"content_block_stop","index":0}`
	messageEnd = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`
)

// messageStart returns the first event of a stream of Anthropic Messages.
func messageStart(content string) string {
	return `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m-1","content":[` + content + `],"stop_reason":null,"usage":{"input_tokens":1,"output_tokens":1}}}`
}

// messageStream is a stream of Anthropic Messages whose message starts with
// content.
func messageStream(content string, events ...string) string {
	return eventStream(append(append([]string{messageStart(content)}, events...), messageEnd, `{"type":"message_stop"}`)...)
}

// atIndex returns an event of the block 0 as one of another block.
func atIndex(index, event string) string {
	return strings.Replace(event, `"index":0`, `"index":`+index, 1)
}

// Calls that stand whole in message_start are read, changed and taken out there.
func TestAnthropicContentInTheStart(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	s := wire.Anthropic().NewStream(nil, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	require.Zero(t, s.Safe(), "a call is held")
	resp := requirePay(t, wire.Anthropic(), body)
	require.Equal(t, "Hi.", resp.Message.Text())

	changed := resp.Clone()
	changed.Message.ToolCalls[0].Arguments = `{"amount":6}`
	out, err := wire.Anthropic().EncodeResponse(changed)
	require.NoError(t, err)
	casefile.Expect(t, "changed", string(out))

	changed.Message.ToolCalls = nil
	out, err = wire.Anthropic().EncodeResponse(changed)
	require.NoError(t, err)
	require.NotContains(t, string(out), "call_1")
	casefile.Expect(t, "taken out", string(out))

	two := messageStream(payBlock, atIndex("1", edited(t, payOpen, "call_1", "call_2")), atIndex("1", payDelta), atIndex("1", payStop))
	resp, err = wire.Anthropic().DecodeResponse(nil, []byte(two))
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 2)
	resp.Message.ToolCalls = resp.Message.ToolCalls[1:]
	out, err = wire.Anthropic().EncodeResponse(resp)
	require.NoError(t, err)
	require.Contains(t, string(out), `"content":[]`)
	got := requirePay(t, wire.Anthropic(), string(out))
	require.Equal(t, "call_2", got.Message.ToolCalls[0].ID)
	require.Contains(t, string(out), `"type":"content_block_start","index":0`)

	text := messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Let me see."}}`, payStop, atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop))
	s = wire.Anthropic().NewStream(nil, nil)
	_, err = s.Write([]byte(text))
	require.NoError(t, err)
	shown := string(s.Take())
	_, err = s.Close()
	require.NoError(t, err)
	later, err := wire.Anthropic().DecodeResponse(nil, []byte(body))
	require.NoError(t, err)
	rest, err := s.Rest(later)
	require.NoError(t, err)
	spliced, err := wire.Anthropic().DecodeResponse(nil, []byte(shown+string(rest)))
	require.NoError(t, err)
	require.Len(t, spliced.Message.ToolCalls, 1)
	require.Equal(t, "Let me see.Hi.", spliced.Message.Text())
}

// Official SDKs give a delta to the block of its index, or to the block that
// started last; they put the first delta in the place of the block's input, or
// behind it. A stream in which that makes a difference cannot be read.
func TestAnthropicStreamsOfTwoReadings(t *testing.T) {
	t.Parallel()
	requirePay(t, wire.Anthropic(), messageStream("", payOpen, payDelta, payStop))
	requirePay(t, wire.Anthropic(), messageStream("", edited(t, payOpen, `"input":{}`, `"input":{"amount":5}`), payStop))
	second := atIndex("1", edited(t, payOpen, "call_1", "call_2"))
	text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	for name, body := range map[string]string{
		"input and deltas":                            messageStream("", edited(t, payOpen, `"input":{}`, `"input":{"amount":99999}`), payDelta, payStop),
		"deltas of the first of two":                  messageStream("", payOpen, second, payDelta, payStop, atIndex("1", payDelta)),
		"deltas of a text before a call":              messageStream("", text, atIndex("1", payOpen), payDelta),
		"indices in another order":                    messageStream("", atIndex("1", payOpen), edited(t, second, `"index":1`, `"index":0`), payDelta),
		"an index that leaves one out":                messageStream("", atIndex("1", payOpen), atIndex("1", payDelta)),
		"a delta behind the block":                    messageStream("", payOpen, payStop, payDelta),
		"a delta behind the message":                  messageStream("", payOpen) + eventStream(payDelta),
		"a block in the place of one that came whole": messageStream(payBlock, payOpen, payDelta),
		"a delta of one that came whole":              messageStream(edited(t, payBlock, `{"amount":5}`, `{}`), payDelta),
		"the stop of one that came whole":             messageStream(payBlock, payStop),
		"a delta whose text is null":                  messageStream("", payOpen, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":null}}`, payDelta),
		"a delta without its text":                    messageStream("", payOpen, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}`, payDelta),
		"a delta without a type":                      messageStream("", payOpen, edited(t, payDelta, `"type":"input_json_delta",`, ``)),
		"a delta of another type":                     messageStream("", payOpen, edited(t, payDelta, `input_json_delta`, `input_delta`)),
		"a delta that renames the call":               messageStream("", payOpen, payDelta, `{"type":"content_block_delta","index":0,"delta":{"type":"name_delta","name":"x"}}`),
		"an event named otherwise":                    eventStream(messageStart("")) + "event: content_block_start\n" + edited(t, eventStream(`{"x":0,`+payOpen[1:]), `"type":"content_block_start"`, `"type":"ping"`) + eventStream(messageEnd, `{"type":"message_stop"}`),
		"a delta without the name of the event":       edited(t, messageStream("", payOpen, payDelta, payStop), "event: content_block_delta\n", ""),
		"a text that starts without a type":           edited(t, messageStream("", text, atIndex("1", payOpen), atIndex("1", payDelta)), `"type":"content_block_start",`, ``),
		"an event that is not JSON":                   messageStream("", edited(t, payOpen, `"index"`, `index`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := wire.Anthropic().DecodeResponse(nil, []byte(body))
			require.ErrorIs(t, err, wire.ErrShape)
		})
	}
}

// What is written into a stream whose events have no names has none either.
func TestAnthropicWithoutNames(t *testing.T) {
	t.Parallel()
	nameless := func(s string) string {
		for _, typ := range []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop"} {
			s = strings.ReplaceAll(s, "event: "+typ+"\n", "")
		}
		return s
	}
	text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`
	body := nameless(messageStream("", text, payStop, atIndex("1", payOpen), atIndex("1", payDelta), atIndex("1", payStop)))
	resp := requirePay(t, wire.Anthropic(), body)
	resp.Message.ToolCalls[0].Native = nil
	out, err := wire.Anthropic().EncodeResponse(resp)
	require.NoError(t, err)
	require.NotContains(t, string(out), "event:")

	s := wire.Anthropic().NewStream(nil, nil)
	_, err = s.Write([]byte(body))
	require.NoError(t, err)
	shown := string(s.Take())
	require.Contains(t, shown, "Hi.")
	_, err = s.Close()
	require.NoError(t, err)
	for _, later := range []string{messageStream("", payOpen, payDelta, payStop), `{"role":"assistant","content":[` + payBlock + `],"stop_reason":"tool_use"}`} {
		resp, err := wire.Anthropic().DecodeResponse(nil, []byte(later))
		require.NoError(t, err)
		rest, err := s.Rest(resp)
		require.NoError(t, err)
		require.NotContains(t, string(rest), "event:")
		got, err := wire.Anthropic().DecodeResponse(nil, []byte(shown+string(rest)))
		require.NoError(t, err)
		require.Len(t, got.Message.ToolCalls, 1)
	}
}

// White space in front of a later answer does not come between the events of
// one stream: a client that ends lines at LF only would not see the first field.
func TestAnthropicWhiteSpaceBeforeALaterAnswer(t *testing.T) {
	t.Parallel()
	s := wire.Anthropic().NewStream(nil, nil)
	first := messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`, payStop, atIndex("1", payOpen), atIndex("1", payStop))
	_, err := s.Write([]byte(first))
	require.NoError(t, err)
	require.Contains(t, string(s.Take()), "Hi.")
	_, err = s.Close()
	require.NoError(t, err)
	for _, space := range []string{"\r \n", "\n", "\r\n\r\n"} {
		later := requirePay(t, wire.Anthropic(), space+strings.ReplaceAll(messageStream("", payOpen, payDelta, payStop), "\n", "\r\n"))
		rest, err := s.Rest(later)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(rest), "event: content_block_start"), "%q", rest)
	}
}

// A server may tell the usage in front of the last block, or end the message
// there: a call that comes stands behind all blocks, as clients count them.
func TestAnthropicCallBehindBlocksAfterTheEnd(t *testing.T) {
	t.Parallel()
	added := func(body string) ([]byte, error) {
		resp := requirePay(t, wire.Anthropic(), body)
		resp.Message.ToolCalls = append(resp.Message.ToolCalls, middleware.ToolCall{ID: "call_2", Name: "ping", Arguments: "{}"})
		return wire.Anthropic().EncodeResponse(resp)
	}
	out, err := added(messageStream("", messageEnd, payOpen, payDelta, payStop))
	require.NoError(t, err)
	resp, err := wire.Anthropic().DecodeResponse(nil, out)
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 2)
	require.Equal(t, "ping", resp.Message.ToolCalls[1].Name)

	_, err = added(eventStream(messageStart(""), messageEnd, `{"type":"message_stop"}`, payOpen, payDelta, payStop))
	require.ErrorIs(t, err, wire.ErrUnencodable)
}

// Clients that go by the names of events and those that go by their types would
// number the blocks of a call differently behind a stream that has both.
func TestAnthropicCallsBehindEventsWithoutNames(t *testing.T) {
	t.Parallel()
	s := wire.Anthropic().NewStream(nil, nil)
	first := messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`, payStop)
	_, err := s.Write([]byte(edited(t, first, "event: message_start\n", "")))
	require.NoError(t, err)
	require.Contains(t, string(s.Take()), "Hi.")
	_, err = s.Close()
	require.NoError(t, err)
	_, err = s.Rest(requirePay(t, wire.Anthropic(), messageStream("", payOpen, payDelta, payStop)))
	require.ErrorIs(t, err, wire.ErrUnencodable)
}
