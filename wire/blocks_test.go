package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/casefile"
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

// requireReads requires that body holds one call, pay with 5, and that a client reads the
// same from what is written of it.
func requireReads(t *testing.T, body string) *middleware.Response {
	t.Helper()
	resp, err := wire.Anthropic().DecodeResponse(nil, []byte(body))
	require.NoError(t, err)
	out, err := wire.Anthropic().EncodeResponse(resp)
	require.NoError(t, err)
	for _, body := range []string{body, string(out)} {
		got, err := wire.Anthropic().DecodeResponse(nil, []byte(body))
		require.NoError(t, err)
		require.Len(t, got.Message.ToolCalls, 1)
		require.Equal(t, "pay", got.Message.ToolCalls[0].Name)
		require.JSONEq(t, `{"amount":5}`, got.Message.ToolCalls[0].Arguments)
		require.Equal(t, resp.Message.Text(), got.Message.Text())
	}
	return resp
}

// Calls that are whole in message_start are read, changed and taken out, and written as
// ordinary blocks.
func TestAnthropicContentInTheStart(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	s := wire.Anthropic().NewStream(nil, nil)
	_, err := s.Write([]byte(body))
	require.NoError(t, err)
	require.Zero(t, s.Safe(), "a call is held")
	resp := requireReads(t, body)
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
	got := requireReads(t, string(out))
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

// Official SDKs give a delta to the block of its index, or to the block that started last; the
// first delta replaces the block's input, or follows it. A call is read by the index, and
// written so that this makes no difference.
func TestAnthropicStreamsOfTwoReadings(t *testing.T) {
	t.Parallel()
	second := atIndex("1", edited(t, payOpen, "call_1", "call_2"))
	text := `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	const good, none = `{"amount":5}`, `{}`
	for name, c := range map[string]struct {
		body  string
		calls []string // nil: unreadable
	}{
		"deltas":                                      {messageStream("", payOpen, payDelta, payStop), []string{good}},
		"the whole input":                             {messageStream("", edited(t, payOpen, `"input":{}`, `"input":{"amount":5}`), payStop), []string{good}},
		"input and deltas":                            {messageStream("", edited(t, payOpen, `"input":{}`, `"input":{"amount":99999}`), payDelta, payStop), []string{good}},
		"deltas of the first of two":                  {messageStream("", payOpen, second, payDelta, payStop, atIndex("1", payDelta)), []string{good, good}},
		"deltas of a text before a call":              {messageStream("", text, atIndex("1", payOpen), payDelta), []string{none}},
		"indices in another order":                    {messageStream("", atIndex("1", payOpen), edited(t, second, `"index":1`, `"index":0`), payDelta), []string{none, good}},
		"an index that leaves one out":                {messageStream("", atIndex("1", payOpen), atIndex("1", payDelta)), []string{good}},
		"a delta behind the block":                    {messageStream("", payOpen, payStop, payDelta), []string{good}},
		"a delta behind the message":                  {messageStream("", payOpen) + eventStream(payDelta), []string{good}},
		"a block in the place of one that came whole": {messageStream(payBlock, payOpen, payDelta), nil},
		"a delta of one that came whole":              {messageStream(edited(t, payBlock, good, none), payDelta), []string{good}},
		"the stop of one that came whole":             {messageStream(payBlock, payStop), []string{good}},
		"a delta whose text is null":                  {messageStream("", payOpen, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":null}}`, payDelta), []string{good}},
		"a delta without its text":                    {messageStream("", payOpen, `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta"}}`, payDelta), []string{good}},
		"a delta without a type":                      {messageStream("", payOpen, edited(t, payDelta, `"type":"input_json_delta",`, ``)), []string{none}},
		"a delta of another type":                     {messageStream("", payOpen, edited(t, payDelta, `input_json_delta`, `input_delta`)), []string{none}},
		"a delta that renames the call":               {messageStream("", payOpen, payDelta, `{"type":"content_block_delta","index":0,"delta":{"type":"name_delta","name":"x"}}`), []string{good}},
		"an event named otherwise":                    {eventStream(messageStart("")) + "event: content_block_start\n" + edited(t, eventStream(`{"x":0,`+payOpen[1:]), `"type":"content_block_start"`, `"type":"ping"`) + eventStream(messageEnd, `{"type":"message_stop"}`), nil},
		"a delta without the name of the event":       {edited(t, messageStream("", payOpen, payDelta, payStop), "event: content_block_delta\n", ""), []string{good}},
		"a text that starts without a type":           {edited(t, messageStream("", text, atIndex("1", payOpen), atIndex("1", payDelta)), `"type":"content_block_start",`, ``), []string{good}},
		"an event that is not JSON":                   {messageStream("", edited(t, payOpen, `"index"`, `index`)), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := wire.Anthropic().DecodeResponse(nil, []byte(c.body))
			if c.calls == nil {
				require.ErrorIs(t, err, wire.ErrShape)
				return
			}
			require.NoError(t, err)
			out, err := wire.Anthropic().EncodeResponse(resp)
			require.NoError(t, err)
			again, err := wire.Anthropic().DecodeResponse(nil, out)
			require.NoError(t, err)
			for _, resp := range []*middleware.Response{resp, again} {
				var calls []string
				for _, call := range resp.Message.ToolCalls {
					calls = append(calls, call.Arguments)
				}
				require.Equal(t, c.calls, calls)
			}
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
	requireReads(t, body)
	s := wire.Anthropic().NewStream(nil, nil)
	_, err := s.Write([]byte(body))
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
		later := requireReads(t, space+strings.ReplaceAll(messageStream("", payOpen, payDelta, payStop), "\n", "\r\n"))
		rest, err := s.Rest(later)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(rest), "event: content_block_start"), "%q", rest)
	}
}

// A server may send the usage before the last block, or end the message there: a later call is
// written after all blocks, as clients count them.
func TestAnthropicCallBehindBlocksAfterTheEnd(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		messageStream("", messageEnd, payOpen, payDelta, payStop),
		eventStream(messageStart(""), messageEnd, `{"type":"message_stop"}`, payOpen, payDelta, payStop),
	} {
		resp := requireReads(t, body)
		resp.Message.ToolCalls = append(resp.Message.ToolCalls, middleware.ToolCall{ID: "call_2", Name: "ping", Arguments: "{}"})
		out, err := wire.Anthropic().EncodeResponse(resp)
		require.NoError(t, err)
		resp, err = wire.Anthropic().DecodeResponse(nil, out)
		require.NoError(t, err)
		require.Len(t, resp.Message.ToolCalls, 2)
		require.Equal(t, "ping", resp.Message.ToolCalls[1].Name)
	}
}

// Clients that read the names of events and clients that read their types would number the
// blocks of a call differently after a stream that has both: an event with a name after events
// without one is not shown.
func TestAnthropicCallsBehindEventsWithoutNames(t *testing.T) {
	t.Parallel()
	s := wire.Anthropic().NewStream(nil, nil)
	first := edited(t, messageStream("", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hi."}}`, payStop), "event: message_start\n", "")
	_, err := s.Write([]byte(first))
	require.NoError(t, err)
	shown := string(s.Take())
	require.NotContains(t, shown, "Hi.")
	_, err = s.Close()
	require.NoError(t, err)
	later := requireReads(t, messageStream("", payOpen, payDelta, payStop))
	rest, err := s.Rest(later)
	require.NoError(t, err)
	require.NotContains(t, string(rest), "event:")
	requireReads(t, shown+string(rest))
}
