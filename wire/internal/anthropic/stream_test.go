package anthropic_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func event(kind, data string) string { return "event: " + kind + "\ndata: " + data + "  \n\n" }

// stream returns a stream of those events with a start of its own.
func stream(events ...string) string {
	return event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m-2","content":[],"stop_reason":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}`) +
		event("ping", `{"type": "ping"}`) + strings.Join(events, "")
}

func start(n int, block string) string {
	return event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, n, block))
}

func textStart(n int) string { return start(n, `{"type":"text","text":""}`) }

func toolStart(n int, id, name string) string {
	return start(n, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{},"caller":{"type":"direct"}}`, id, name))
}

func delta(n int, kind, key, text string) string {
	return event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, n, kind, key, rawjson.Quote(text)))
}

func textDelta(n int, text string) string  { return delta(n, "text_delta", "text", text) }
func inputDelta(n int, text string) string { return delta(n, "input_json_delta", "partial_json", text) }

func stop(n int) string {
	return event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, n))
}

func ended(reason string, output int) string {
	return event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, output)) +
		event("message_stop", `{"type":"message_stop"}`)
}

// fresh returns events as they are written where a block has changed.
func fresh(events ...string) string {
	return strings.ReplaceAll(strings.Join(events, ""), "  \n\n", "\n\n")
}

// talk is an answer with reasoning, text with a citation and two calls.
var (
	citation  = event("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}`)
	saidHello = start(1, `{"type":"text","text":"","citations":[]}`) + textDelta(1, "Hel") + textDelta(1, "") + citation + textDelta(1, "lo") + stop(1)
	firstCall = toolStart(2, "t1", "a") + inputDelta(2, "") + inputDelta(2, `{"n":`) + inputDelta(2, ` 1.0}`) + stop(2)
	talk      = stream(
		start(0, `{"type":"thinking","thinking":"","signature":""}`), delta(0, "thinking_delta", "thinking", "h"), delta(0, "thinking_delta", "thinking", "m"),
		delta(0, "signature_delta", "signature", "sig=="), stop(0),
		saidHello, firstCall,
		event("novel", `{"type":"novel","x":1}`),
		toolStart(3, "t2", "b"), stop(3),
		ended("tool_use", 20))
)

func TestDecodeStream(t *testing.T) {
	t.Parallel()
	resp := answered(t, talk)
	require.Equal(t, "m-2", resp.Model)
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, middleware.Usage{Input: 14, Cached: 4, Output: 20}, resp.Usage, "the last figures count")
	require.Equal(t, "Hello", resp.Message.Text())
	require.Equal(t, "hm", resp.Message.Parts[0].Text)
	require.Len(t, resp.Message.ToolCalls, 2)
	require.Equal(t, `{"n": 1.0}`, resp.Message.ToolCalls[0].Arguments)
	require.Equal(t, `{}`, resp.Message.ToolCalls[1].Arguments)
	require.JSONEq(t, `{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig=="},
		{"type":"text","text":"Hello","citations":[{"cited_text":"x"}]},
		{"type":"tool_use","id":"t1","name":"a","input":{"n": 1.0},"caller":{"type":"direct"}},
		{"type":"tool_use","id":"t2","name":"b","input":{},"caller":{"type":"direct"}}]}`, resp.Message.Native.Raw)
	require.Equal(t, talk, encoded(t, resp))
	require.Equal(t, talk, encoded(t, stored(t, resp)))
	again := stored(t, resp)
	again.Message.ToolCalls[1].Name = "c"
	require.Equal(t, replaceOnce(t, talk, toolStart(3, "t2", "b")+stop(3), fresh(toolStart(3, "t2", "c"), inputDelta(3, "{}"), stop(3))), encoded(t, again))
}

func TestArgumentsThatAreNoJSON(t *testing.T) {
	t.Parallel()
	resp := answered(t, stream(toolStart(0, "t1", "a"), inputDelta(0, `{"n":`), inputDelta(0, ` oops`), stop(0), ended("tool_use", 2)))
	require.Equal(t, `{"n": oops`, resp.Message.ToolCalls[0].Arguments)
	require.Contains(t, resp.Message.Native.Raw, `"input":{}`)
	resp.Message.ToolCalls[0].Arguments = `{"still": oops`
	require.Equal(t, `{"still": oops`, answered(t, encoded(t, resp)).Message.ToolCalls[0].Arguments, "a stream has text")
}

func TestServerRunCalls(t *testing.T) {
	t.Parallel()
	body := stream(start(0, `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`), inputDelta(0, `{"query":`), inputDelta(0, `"q"}`), stop(0),
		start(1, `{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`), stop(1),
		start(2, `{"type":"compaction","content":null}`), delta(2, "compaction_delta", "content", "all "), delta(2, "compaction_delta", "content", "so far"), stop(2),
		ended("pause_turn", 3))
	resp := answered(t, body)
	require.Empty(t, resp.Message.ToolCalls)
	require.Len(t, resp.Message.Parts, 3)
	for i, want := range []string{`{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}`,
		`{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"url":"u"}]}`, `{"type":"compaction","content":"all so far"}`} {
		require.Equal(t, middleware.PartOpaque, resp.Message.Parts[i].Kind)
		require.Equal(t, want, resp.Message.Parts[i].Native.Raw)
	}
}

func TestStreamEdits(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		edit    func(*middleware.Response)
		changes []string // pairs: what becomes what
	}{
		"arguments": {func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"a":2}` },
			[]string{firstCall, fresh(toolStart(2, "t1", "a"), inputDelta(2, `{"a":2}`), stop(2))}},
		"arguments where there were none": {func(r *middleware.Response) { r.Message.ToolCalls[1].Arguments = `{"a":2}` },
			[]string{toolStart(3, "t2", "b") + stop(3), fresh(toolStart(3, "t2", "b"), inputDelta(3, `{"a":2}`), stop(3))}},
		"id and name": {func(r *middleware.Response) { r.Message.ToolCalls[0].ID, r.Message.ToolCalls[0].Name = "n1", "c" },
			[]string{firstCall, fresh(toolStart(2, "n1", "c"), inputDelta(2, `{"n": 1.0}`), stop(2))}},
		"text": {func(r *middleware.Response) { r.Message.Parts[1].Text = "Bye" },
			[]string{saidHello, fresh(start(1, `{"type":"text","text":"","citations":[]}`), citation, textDelta(1, "Bye"), stop(1))}},
		"finish": {func(r *middleware.Response) { r.FinishReason = middleware.FinishStop }, []string{`"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`}},
		"model":  {func(r *middleware.Response) { r.Model = "m-9" }, []string{`"m-2"`, `"m-9"`}},
		"usage stands at the end": {func(r *middleware.Response) { r.Usage = middleware.Usage{Input: 28, Cached: 8, Output: 40} },
			[]string{`"usage":{"output_tokens":20}`, `"usage":{"output_tokens":40,"input_tokens":20,"cache_read_input_tokens":8}`}},
		"a call less": {func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[:1] },
			[]string{toolStart(3, "t2", "b") + stop(3), ""}},
		"the first call less": {func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[1:] },
			[]string{firstCall, "", toolStart(3, "t2", "b") + stop(3), fresh(toolStart(2, "t2", "b"), inputDelta(2, "{}"), stop(2))}},
		"no calls": {func(r *middleware.Response) { r.Message.ToolCalls = nil },
			[]string{firstCall, "", toolStart(3, "t2", "b") + stop(3), "",
				`"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`}},
		"a call more": {func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "t3", Name: "c", Arguments: "{\"x\":\n1}"})
		}, []string{stop(3), stop(3) + fresh(start(4, `{"type":"tool_use","id":"t3","name":"c","input":{}}`), inputDelta(4, "{\"x\":\n1}"), stop(4))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, want := answered(t, talk), talk
			x.edit(resp)
			for i := 0; i < len(x.changes); i += 2 {
				want = replaceOnce(t, want, x.changes[i], x.changes[i+1])
			}
			body := encoded(t, resp)
			require.Equal(t, want, body)
			require.Equal(t, body, encoded(t, answered(t, body)))
		})
	}
}

func TestReorderedStream(t *testing.T) {
	t.Parallel()
	resp := answered(t, talk)
	calls := resp.Message.ToolCalls
	calls[0], calls[1] = calls[1], calls[0]
	got := answered(t, encoded(t, resp))
	require.Equal(t, "t2", got.Message.ToolCalls[0].ID)
	require.Equal(t, `{"n": 1.0}`, got.Message.ToolCalls[1].Arguments)
	require.Equal(t, 1, strings.Count(encoded(t, resp), `"novel","x"`))
}

func TestStreamInputAtOnce(t *testing.T) {
	t.Parallel()
	whole := start(0, `{"type":"tool_use","id":"t1","name":"a","input":{"n":1},"caller":{"type":"direct"}}`)
	for name, x := range map[string]struct{ block, now string }{
		"without deltas":  {whole + stop(0), `{"m":2}`},
		"an empty delta":  {whole + inputDelta(0, "") + stop(0), `rubbish`},
		"and once more":   {whole + inputDelta(0, `{"n":1}`) + stop(0), `{"m":2}`},
		"only of nothing": {toolStart(0, "t1", "a") + inputDelta(0, "") + inputDelta(0, "") + stop(0), `{"m":2}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answered(t, stream(x.block, ended("tool_use", 1)))
			resp.Message.ToolCalls[0].Arguments = x.now
			body := encoded(t, resp)
			require.Equal(t, stream(fresh(toolStart(0, "t1", "a"), inputDelta(0, x.now), stop(0)), ended("tool_use", 1)), body)
			require.Equal(t, x.now, answered(t, body).Message.ToolCalls[0].Arguments)
		})
	}
}

func TestStreamTextAtOnce(t *testing.T) {
	t.Parallel()
	at := start(0, `{"type":"text","text":"a"}`)
	for name, block := range map[string]string{"without deltas": at + stop(0), "and a delta": at + textDelta(0, "b") + stop(0)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answered(t, stream(block, ended("end_turn", 1)))
			require.Contains(t, []string{"a", "ab"}, resp.Message.Text())
			resp.Message.Parts[0].Text = "new"
			body := encoded(t, resp)
			require.Equal(t, stream(fresh(textStart(0), textDelta(0, "new"), stop(0)), ended("end_turn", 1)), body)
			require.Equal(t, "new", answered(t, body).Message.Text())
		})
	}
}

// Blocks that run side by side are read, and written one after the other where
// something changed.
func TestInterleavedBlocks(t *testing.T) {
	t.Parallel()
	body := stream(textStart(0), textStart(1), textDelta(1, "b"), textDelta(0, "a"), stop(0), stop(1), strings.TrimRight(ended("end_turn", 1), "\n"))
	resp := answered(t, body)
	require.Equal(t, "ab", resp.Message.Text())
	require.Equal(t, body, encoded(t, resp))
	resp.Message.Parts[1].Text = "c"
	require.Equal(t, "ac", answered(t, encoded(t, resp)).Message.Text())
}

func TestFoldedEvents(t *testing.T) {
	t.Parallel()
	body := strings.NewReplacer(`"id":"t1",`, "\"id\":\"t1\",\ndata: ", `"partial_json":" 1`, "\r\ndata:\"partial_json\":\" 1").Replace(talk)
	resp := answered(t, body)
	require.Equal(t, `{"n": 1.0}`, resp.Message.ToolCalls[0].Arguments)
	require.Equal(t, body, encoded(t, resp))
	resp.Message.ToolCalls[0].ID, resp.Message.ToolCalls[0].Arguments = "n", `{"a":2}`
	got := answered(t, encoded(t, resp))
	require.Equal(t, plain(resp.Message), plain(got.Message))
}

// A change of a stream whose lines end with carriage returns, which few clients
// take for line ends, is not written with line feeds: they would see that alone.
func TestChangeBetweenCarriageReturns(t *testing.T) {
	t.Parallel()
	body := strings.ReplaceAll(talk, "\n", "\r")
	resp := answered(t, body)
	resp.Message.ToolCalls[0].Arguments = `{"a":2}`
	got := encoded(t, resp)
	require.NotContains(t, got, "\n")
	require.Equal(t, plain(resp.Message), plain(answered(t, got).Message))

	resp = answered(t, ": a\rb\n\n"+talk) // all readers see the same here
	resp.Message.ToolCalls[0].Arguments = `{"a":2}`
	require.Equal(t, plain(resp.Message), plain(answered(t, encoded(t, resp)).Message))

	half := strings.Replace(strings.ReplaceAll(talk, "\n", "\r"), "\r\r", "\r\r\n", 1) // some see nothing
	resp = answered(t, half)
	resp.Message.ToolCalls[0].Arguments = `{"a":2}`
	_, err := format.EncodeResponse(resp)
	require.ErrorIs(t, err, codec.ErrUnencodable)
}

func TestStreamUnencodable(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Response){
		"no arguments at all": func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "" },
		"no UTF-8":            func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "\xff" },
		"signed reasoning":    func(r *middleware.Response) { r.Message.Parts[0].Text = "x" },
		"fresh and no UTF-8": func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{Arguments: "\xff"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answered(t, talk)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
	resp := answered(t, stream(event("message_stop", `{"type":"message_stop"}`)))
	resp.FinishReason = middleware.FinishStop
	_, err := format.EncodeResponse(resp)
	require.ErrorIs(t, err, codec.ErrUnencodable, "no event to hold it")
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
		"a block before the message": textStart(0) + stream(ended("end_turn", 1)),
		"an end before the message":  ended("end_turn", 1) + stream(),
		"a second start":             stream(stream()),
		"a block without an index":   stream(of(`{"type":"content_block_start","content_block":{"type":"text"}}`)),
		"an index below nothing":     stream(of(`{"type":"content_block_start","index":-1,"content_block":{"type":"text"}}`)),
		"a block that is none":       stream(of(`{"type":"content_block_start","index":0}`)),
		"a block twice":              stream(textStart(0), textStart(0)),
		"a delta that is none":       stream(textStart(0), of(`{"type":"content_block_delta","index":0,"delta":1}`)),
		"a delta before its block":   stream(textDelta(0, "a"), ended("end_turn", 1)),
		"an input of 1":              stream(textStart(0), of(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":1}}`)),
		"a member that stands twice": stream(start(0, `{"type":"text","text":"","text":""}`), textDelta(0, "a"), ended("end_turn", 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := format.DecodeResponse(nil, []byte(body))
			require.ErrorIs(t, err, codec.ErrShape)
		})
	}
	odd := stream(": comment\n\n", event("x", `[DONE]`), event("x", `{"type":"later"}`), event("x", `{}`), textStart(0), textDelta(0, "a"), stop(0), stop(7), ended("end_turn", 1), "data: [DONE]")
	require.Equal(t, odd, encoded(t, answered(t, odd)), "what is unknown stays")
	resp := answered(t, odd)
	resp.Message.Parts[0].Text = "b"
	require.Equal(t, replaceOnce(t, odd, textStart(0)+textDelta(0, "a")+stop(0), fresh(textStart(0), textDelta(0, "b"), stop(0))), encoded(t, resp))
}
