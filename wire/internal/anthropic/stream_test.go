package anthropic_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// event returns an event with spaces at the end of its data, as the provider pads
// events: one that is written anew has none.
func event(kind, data string) string { return "event: " + kind + "\ndata: " + data + "  \n\n" }

// messageStream returns a stream of those events with a start of its own.
func messageStream(events ...string) string { return messageStreamOf("msg_1", events...) }

// messageStreamOf is messageStream for a message of that id.
func messageStreamOf(id string, events ...string) string {
	return event("message_start", `{"type":"message_start","message":{"id":"`+id+`","type":"message","role":"assistant","model":"m-2","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}`) +
		event("ping", `{"type": "ping"}`) + strings.Join(events, "")
}

func blockStart(n int, block string) string {
	return event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, block))
}

func textBlockStart(n int) string { return blockStart(n, `{"type":"text","text":""}`) }

func toolBlockStart(n int, id, name string) string {
	return blockStart(n, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{},"caller":{"type":"direct"}}`, id, name))
}

func blockDelta(n int, kind, key, text string) string {
	return event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, n, kind, key, rawjson.Quote(text)))
}

func textDelta(n int, text string) string { return blockDelta(n, "text_delta", "text", text) }
func inputDelta(n int, text string) string {
	return blockDelta(n, "input_json_delta", "partial_json", text)
}

func blockStop(n int) string {
	return event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n))
}

func messageEnd(reason string, output int) string {
	return event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, output)) +
		event("message_stop", `{"type":"message_stop"}`)
}

// talk is an answer with reasoning, text with a citation and two calls.
var talk = messageStream(
	blockStart(0, `{"type":"thinking","thinking":"","signature":""}`), blockDelta(0, "thinking_delta", "thinking", "h"), blockDelta(0, "thinking_delta", "thinking", "m"),
	blockDelta(0, "signature_delta", "signature", "sig=="), blockStop(0),
	blockStart(1, `{"type":"text","text":"","citations":[]}`), textDelta(1, "Hel"), textDelta(1, ""),
	event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`), textDelta(1, "lo"), blockStop(1),
	toolBlockStart(2, "t1", "a"), inputDelta(2, ""), inputDelta(2, `{"n":`), inputDelta(2, ` 1.0}`), blockStop(2),
	event("novel", `{"type":"novel","x":1}`),
	toolBlockStart(3, "t2", "b"), blockStop(3),
	messageEnd("tool_use", 20))

func TestDecodeStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, talk)
	require.Equal(t, "m-2", resp.Model)
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, middleware.Usage{InputTokens: 14, Cached: 4, OutputTokens: 20}, resp.Usage, "the last figures count")
	require.Equal(t, "Hello", resp.Message.Text())
	require.Equal(t, "hm", resp.Message.Parts[0].Text)
	require.Len(t, resp.Message.ToolCalls, 2)
	require.Equal(t, `{"n": 1.0}`, resp.Message.ToolCalls[0].Arguments)
	require.Equal(t, `{}`, resp.Message.ToolCalls[1].Arguments)
	require.JSONEq(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig=="},
		{"type":"text","text":"Hello","citations":[{"cited_text":"x"}]},
		{"type":"tool_use","id":"t1","name":"a","input":{"n": 1.0},"caller":{"type":"direct"}},
		{"type":"tool_use","id":"t2","name":"b","input":{},"caller":{"type":"direct"}}]}`, resp.Message.Native.Raw)
	requireSameAnswer(t, resp, decodeResponse(t, encodeResponse(t, resp)))
	require.Equal(t, encodeResponse(t, resp), encodeResponse(t, throughJSON(t, resp)))
}

// requireSameAnswer requires that a client reads the same from both, usage and reasoning
// with its signature included.
func requireSameAnswer(t tester, want, got *middleware.Response) {
	t.Helper()
	require.Equal(t, withoutNative(want.Message), withoutNative(got.Message))
	require.Equal(t, want.FinishReason, got.FinishReason)
	require.Equal(t, want.Usage, got.Usage)
	require.Equal(t, want.Model, got.Model)
	require.JSONEq(t, want.Message.Native.Raw, got.Message.Native.Raw)
}

func TestArgumentsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, messageStream(toolBlockStart(0, "t1", "a"), inputDelta(0, `{"n":`), inputDelta(0, ` oops`), blockStop(0), messageEnd("tool_use", 2)))
	require.Equal(t, `{"n": oops`, resp.Message.ToolCalls[0].Arguments)
	require.Contains(t, resp.Message.Native.Raw, `"input":{}`)
	resp.Message.ToolCalls[0].Arguments = `{"still": oops`
	require.Equal(t, `{"still": oops`, decodeResponse(t, encodeResponse(t, resp)).Message.ToolCalls[0].Arguments, "a stream has text")
}

func TestServerRunCalls(t *testing.T) {
	t.Parallel()
	body := messageStream(blockStart(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), inputDelta(0, `{"query":`), inputDelta(0, `"q"}`), blockStop(0),
		blockStart(1, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`), blockStop(1),
		blockStart(2, `{"type":"compaction","content":null}`), blockDelta(2, "compaction_delta", "content", "all "), blockDelta(2, "compaction_delta", "content", "so far"), blockStop(2),
		messageEnd("pause_turn", 3))
	resp := decodeResponse(t, body)
	require.Empty(t, resp.Message.ToolCalls)
	require.Len(t, resp.Message.Parts, 3)
	for i, want := range []string{`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`, `{"type":"compaction","content":"all so far"}`} {
		require.Equal(t, middleware.PartOpaque, resp.Message.Parts[i].Kind)
		require.Equal(t, want, resp.Message.Parts[i].Native.Raw)
	}
}

// requireEdit requires that the edit of section "before" of the test's file is
// section "after", and that what was written is read as it was meant.
func requireEdit(t *testing.T, edit func(*middleware.Response)) {
	t.Helper()
	resp := decodeResponse(t, casefile.Body(t, "before"))
	again := throughJSON(t, resp)
	edit(resp)
	body := encodeResponse(t, resp)
	casefile.Expect(t, "after", body)
	got := decodeResponse(t, body)
	require.Equal(t, withoutNative(resp.Message), withoutNative(got.Message))
	require.Equal(t, resp.Usage, got.Usage)
	require.Equal(t, resp.Model, got.Model)
	require.Equal(t, body, encodeResponse(t, got))
	edit(again)
	require.Equal(t, body, encodeResponse(t, again), "after storage")
}

func TestStreamEdits(t *testing.T) {
	t.Parallel()
	type resp = *middleware.Response
	edits := map[string]func(resp){
		"arguments":                       func(r resp) { r.Message.ToolCalls[0].Arguments = `{"a":2}` },
		"arguments where there were none": func(r resp) { r.Message.ToolCalls[1].Arguments = `{"a":2}` },
		"id and name":                     func(r resp) { r.Message.ToolCalls[0].ID, r.Message.ToolCalls[0].Name = "n1", "c" },
		"another name where there were no arguments": func(r resp) { r.Message.ToolCalls[1].Name = "c" },
		"text":                    func(r resp) { r.Message.Parts[1].Text = "Bye" },
		"finish":                  func(r resp) { r.FinishReason = middleware.FinishStop },
		"model":                   func(r resp) { r.Model = "m-9" },
		"usage stands at the end": func(r resp) { r.Usage = middleware.Usage{InputTokens: 28, Cached: 8, OutputTokens: 40} },
		"a call less":             func(r resp) { r.Message.ToolCalls = r.Message.ToolCalls[:1] },
		"the first call less":     func(r resp) { r.Message.ToolCalls = r.Message.ToolCalls[1:] },
		"no calls":                func(r resp) { r.Message.ToolCalls = nil },
		"a call more": func(r resp) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "t3", Name: "c", Arguments: "{\"x\":\n1}"})
		},
	}
	casefile.OneForEach(t, maps.Keys(edits))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEdit(t, edit)
		})
	}
}

func TestReorderedStream(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, talk)
	calls := resp.Message.ToolCalls
	calls[0], calls[1] = calls[1], calls[0]
	got := decodeResponse(t, encodeResponse(t, resp))
	require.Equal(t, "t2", got.Message.ToolCalls[0].ID)
	require.Equal(t, `{"n": 1.0}`, got.Message.ToolCalls[1].Arguments)
}

// Input that is whole in the start of its block is changed into deltas.
func TestStreamInputAtOnce(t *testing.T) {
	t.Parallel()
	arguments := map[string]string{"without deltas": `{"m":2}`, "an empty delta": `rubbish`, "and once more": `{"m":2}`, "only of nothing": `{"m":2}`}
	casefile.OneForEach(t, maps.Keys(arguments))
	for name, now := range arguments {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireEdit(t, func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = now })
			require.Equal(t, now, decodeResponse(t, casefile.Body(t, "after")).Message.ToolCalls[0].Arguments)
		})
	}
}

// Text in the start of its block, in part or whole, is changed into a delta.
func TestStreamTextAtOnce(t *testing.T) {
	t.Parallel()
	texts := map[string]string{"without deltas": "a", "and a delta": "ab"}
	casefile.OneForEach(t, maps.Keys(texts))
	for name, text := range texts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, text, decodeResponse(t, casefile.Body(t, "before")).Message.Text())
			requireEdit(t, func(r *middleware.Response) { r.Message.Parts[0].Text = "new" })
			require.Equal(t, "new", decodeResponse(t, casefile.Body(t, "after")).Message.Text())
		})
	}
}

// Blocks that run side by side are read, and written one after the other where
// something changed.
func TestInterleavedBlocks(t *testing.T) {
	t.Parallel()
	body := messageStream(textBlockStart(0), textBlockStart(1), textDelta(1, "b"), textDelta(0, "a"), blockStop(0), blockStop(1), strings.TrimRight(messageEnd("end_turn", 1), "\n"))
	resp := decodeResponse(t, body)
	require.Equal(t, "ab", resp.Message.Text())
	require.Equal(t, body, encodeResponse(t, resp))
	resp.Message.Parts[1].Text = "c"
	require.Equal(t, "ac", decodeResponse(t, encodeResponse(t, resp)).Message.Text())
}

// Data may be folded into lines between members.
func TestFoldedEvents(t *testing.T) {
	t.Parallel()
	body := casefile.Body(t, "before")
	resp := decodeResponse(t, body)
	require.Equal(t, `{"n": 1.0}`, resp.Message.ToolCalls[0].Arguments)
	requireSameAnswer(t, resp, decodeResponse(t, encodeResponse(t, resp)))
	resp.Message.ToolCalls[0].ID, resp.Message.ToolCalls[0].Arguments = "n", `{"a":2}`
	got := decodeResponse(t, encodeResponse(t, resp))
	require.Equal(t, withoutNative(resp.Message), withoutNative(got.Message))
}

// Lines may end with carriage returns, which few clients take for line ends: what is
// written ends them with line feeds.
func TestCarriageReturns(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		strings.ReplaceAll(talk, "\n", "\r"), // not in a file: one line of thousands of bytes
		": a\rb\n\n" + talk,
		strings.Replace(strings.ReplaceAll(talk, "\n", "\r"), "\r\r", "\r\r\n", 1),
	} {
		resp := decodeResponse(t, body)
		resp.Message.ToolCalls[0].Arguments = `{"a":2}`
		got := encodeResponse(t, resp)
		require.NotContains(t, got, "\r")
		require.Equal(t, withoutNative(resp.Message), withoutNative(decodeResponse(t, got).Message))
	}
}

func TestStreamUnencodable(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Response){
		"no UTF-8":         func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "\xff" },
		"signed reasoning": func(r *middleware.Response) { r.Message.Parts[0].Text = "x" },
		"fresh and no UTF-8": func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{Arguments: "\xff"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, talk)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
	resp := decodeResponse(t, messageStream(event("message_stop", `{"type":"message_stop"}`)))
	resp.FinishReason = middleware.FinishStop
	require.Equal(t, middleware.FinishStop, decodeResponse(t, encodeResponse(t, resp)).FinishReason, "in an event of its own")
}

func TestSinkAndSafe(t *testing.T) {
	t.Parallel()
	var events []middleware.Event
	s := format.NewStream(nil, func(e middleware.Event) error { events = append(events, e); return nil })
	call := strings.Index(talk, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":2")
	for i := range len(talk) {
		_, err := s.Write([]byte(talk[i : i+1]))
		require.NoError(t, err)
		require.LessOrEqual(t, s.Safe(), min(i+1, call))
	}
	require.Equal(t, call, s.Safe())
	require.Equal(t, []middleware.Event{{Kind: middleware.EventReasoning, Text: "h"}, {Kind: middleware.EventReasoning, Text: "m"},
		{Kind: middleware.EventText, Text: "Hel"}, {Kind: middleware.EventText, Text: "lo"}}, events)
	_, err := s.Close()
	require.NoError(t, err)

	events = nil
	s = format.NewStream(nil, func(e middleware.Event) error { events = append(events, e); return nil })
	_, err = codec.Decode(s, []byte(`{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"a","input":{}}]}`))
	require.NoError(t, err)
	require.Zero(t, s.Safe())
	require.Equal(t, []middleware.Event{{Kind: middleware.EventText, Text: "a"}}, events)

	gone := errors.New("gone")
	s = format.NewStream(nil, func(middleware.Event) error { return gone })
	_, err = s.Write([]byte(talk))
	require.ErrorIs(t, err, gone)
	_, err = s.Write([]byte(talk))
	require.ErrorIs(t, err, gone)
	_, err = s.Close()
	require.ErrorIs(t, err, gone)
}

func TestStreamShape(t *testing.T) {
	t.Parallel()
	of := func(data string) string { return "data: " + data + "\n\n" }
	for name, body := range map[string]string{
		"a start without a message":  of(`{"type":"message_start"}`),
		"a block before the message": textBlockStart(0) + messageStream(messageEnd("end_turn", 1)),
		"an end before the message":  messageEnd("end_turn", 1) + messageStream(),
		"a second start":             messageStream(messageStream()),
		"a block without an index":   messageStream(of(`{"type":"content_block_start","content_block":{"type":"text"}}`)),
		"an index below nothing":     messageStream(of(`{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}`)),
		"a block that is none":       messageStream(of(`{"type":"content_block_start","index":0}`)),
		"a block twice":              messageStream(textBlockStart(0), textBlockStart(0)),
		"a delta that is none":       messageStream(textBlockStart(0), of(`{"type":"content_block_delta","index":0,"delta":1}`)),
		"a delta before its block":   messageStream(textDelta(0, "a"), messageEnd("end_turn", 1)),
		"a delta behind its block":   messageStream(textBlockStart(0), textDelta(0, "a"), blockStop(0), toolBlockStart(1, "c", "pay"), textDelta(0, "b"), messageEnd("end_turn", 1)),
		"a delta of a whole block":   messageStream(blockStart(0, thinkingStart), blockStop(0), blockDelta(0, "thinking_delta", "thinking", "a"), messageEnd("end_turn", 1)),
		"a delta without a type":     messageStream(blockStart(0, `{}`), textDelta(0, "b"), messageEnd("end_turn", 1)),
		"a delta of another kind":    messageStream(blockStart(0, `{"type":"new"}`), toolBlockStart(1, "c", "pay"), textDelta(0, "b"), messageEnd("end_turn", 1)),
		"an input of 1":              messageStream(toolBlockStart(0, "c", "pay"), of(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":1}}`)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
}

// Comments, events of unknown kinds and [DONE] stay where nothing changes. What is written
// has the events of the message.
func TestUnknownEventsStay(t *testing.T) {
	t.Parallel()
	odd := casefile.Body(t, "before")
	require.Equal(t, odd, encodeResponse(t, decodeResponse(t, odd)))
	requireEdit(t, func(r *middleware.Response) { r.Message.Parts[0].Text = "b" })
}

// A call of a stream without any input is read as it is written: with an empty object.
func TestStreamedCallWithoutInput(t *testing.T) {
	t.Parallel()
	body := `data: {"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"m","content":[],"usage":{}}}` + "\n\n" +
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"now"}}` + "\n\n" +
		`data: {"type":"content_block_stop","index":0}` + "\n\n" +
		`data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}` + "\n\n" +
		`data: {"type":"message_stop"}` + "\n\n"
	for range 2 {
		resp, err := codec.Decode(format.NewStream(nil, nil), []byte(body))
		require.NoError(t, err)
		require.Equal(t, "{}", resp.Message.ToolCalls[0].Arguments)
		out, err := format.EncodeResponse(resp)
		require.NoError(t, err)
		body = string(out)
	}
}
