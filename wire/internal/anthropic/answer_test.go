package anthropic_test

import (
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func encodeResponse(t tester, resp *middleware.Response) string {
	t.Helper()
	body, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	return string(body)
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, twoCalls)
	require.Equal(t, middleware.RoleAssistant, resp.Message.Role)
	require.Equal(t, "m-2", resp.Model)
	require.Equal(t, middleware.FinishToolCalls, resp.FinishReason)
	require.Equal(t, middleware.Usage{InputTokens: 15, Cached: 3, CacheWrite: 2, OutputTokens: 7, Reasoning: 4}, resp.Usage)
	require.Equal(t, []middleware.PartKind{middleware.PartReasoning, middleware.PartText}, partKinds(resp.Message))
	require.Len(t, resp.Message.ToolCalls, 2)
	require.Equal(t, `{"big":12345678901234567890}`, resp.Message.ToolCalls[0].Arguments)
	require.NotContains(t, resp.Message.Native.Raw, `"text":""`, "history has no empty text")
	require.Equal(t, twoCalls, encodeResponse(t, resp))
	require.Equal(t, twoCalls, encodeResponse(t, throughJSON(t, resp)))
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	for wire, neutral := range map[string]middleware.FinishReason{
		"end_turn": middleware.FinishStop, "stop_sequence": middleware.FinishStopSequence, "tool_use": middleware.FinishToolCalls,
		"max_tokens": middleware.FinishLength, "model_context_window_exceeded": middleware.FinishLength,
		"refusal": middleware.FinishFilter, "pause_turn": "pause_turn", "new": "new",
	} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			body := `{"content":[],"stop_reason":"` + wire + `"}`
			resp := decodeResponse(t, body)
			require.Equal(t, neutral, resp.FinishReason)
			require.Equal(t, body, encodeResponse(t, resp))
			resp.FinishReason = "other"
			require.Equal(t, `{"content":[],"stop_reason":"other"}`, encodeResponse(t, resp))
		})
	}
	for neutral, wire := range map[middleware.FinishReason]string{
		middleware.FinishStop: `"end_turn"`, middleware.FinishToolCalls: `"tool_use"`, middleware.FinishLength: `"max_tokens"`,
		middleware.FinishFilter: `"refusal"`, middleware.FinishStopSequence: `"stop_sequence"`, "": "null",
	} {
		resp := decodeResponse(t, `{"content":[],"stop_reason":"x"}`)
		resp.FinishReason = neutral
		require.Equal(t, `{"content":[],"stop_reason":`+wire+`}`, encodeResponse(t, resp))
	}
}

func TestResponseEdits(t *testing.T) {
	t.Parallel()
	const second = `,{"type":"tool_use","id":"t2","name":"a","input":{},"caller":{"type":"direct"}}`
	for name, x := range map[string]struct {
		edit     func(*middleware.Response)
		old, now string
	}{
		"arguments":    {func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"a":"\n"}` }, `{"big":12345678901234567890}`, `{"a":"\n"}`},
		"id":           {func(r *middleware.Response) { r.Message.ToolCalls[1].ID = "n" }, `"t2"`, `"n"`},
		"name":         {func(r *middleware.Response) { r.Message.ToolCalls[1].Name = "b" }, `"t2","name":"a"`, `"t2","name":"b"`},
		"model":        {func(r *middleware.Response) { r.Model = "m-3" }, `"m-2"`, `"m-3"`},
		"finish":       {func(r *middleware.Response) { r.FinishReason = middleware.FinishLength }, `"stop_reason":"tool_use"`, `"stop_reason":"max_tokens"`},
		"call dropped": {func(r *middleware.Response) { r.Message.ToolCalls = r.Message.ToolCalls[:1] }, second, ``},
		"call added": {func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "t3", Name: "c", Arguments: "{}"})
		}, second, second + `,{"type":"tool_use","id":"t3","name":"c","input":{}}`},
		"text": {func(r *middleware.Response) { r.Message.Parts[1].Text = "T" }, `"text":""`, `"text":"T"`},
		"text added": {func(r *middleware.Response) {
			r.Message.Parts = append(r.Message.Parts, middleware.Part{Text: "U"})
		}, `{"type":"text","text":""}`, `{"type":"text","text":""},{"type":"text","text":"U"}`},
		"usage": {func(r *middleware.Response) {
			r.Usage = middleware.Usage{InputTokens: 100, Cached: 30, CacheWrite: 2, OutputTokens: 8, Reasoning: 5}
		}, `{"input_tokens":10,"cache_creation_input_tokens":2,"cache_read_input_tokens":3,"output_tokens":7,"output_tokens_details":{"thinking_tokens":4}}`,
			`{"input_tokens":68,"cache_creation_input_tokens":2,"cache_read_input_tokens":30,"output_tokens":8,"output_tokens_details":{"thinking_tokens":5}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := replaceOnce(t, twoCalls, x.old, x.now)
			for _, resp := range []*middleware.Response{decodeResponse(t, twoCalls), throughJSON(t, decodeResponse(t, twoCalls))} {
				x.edit(resp)
				require.Equal(t, want, encodeResponse(t, resp))
			}
		})
	}
}

func TestCallsComeAndGo(t *testing.T) {
	t.Parallel()
	resp := decodeResponse(t, twoCalls)
	resp.Message.ToolCalls = nil
	require.Contains(t, encodeResponse(t, resp), `"stop_reason":"end_turn"`)
	resp = decodeResponse(t, `{"content":[{"type":"text","text":"a"}],"stop_reason":"end_turn"}`)
	resp.Message.ToolCalls = []middleware.ToolCall{decodeResponse(t, twoCalls).Message.ToolCalls[1]}
	require.Equal(t, `{"content":[{"type":"text","text":"a"},{"type":"tool_use","id":"t2","name":"a","input":{},"caller":{"type":"direct"}}],"stop_reason":"tool_use"}`,
		encodeResponse(t, resp), "with all that the provider wrote")
	cut := decodeResponse(t, `{"content":[],"stop_reason":"max_tokens"}`)
	cut.Message.ToolCalls = []middleware.ToolCall{{ID: "1", Name: "a", Arguments: "{}"}}
	require.Contains(t, encodeResponse(t, cut), `"max_tokens"`)
}

func TestUsageAccounts(t *testing.T) {
	t.Parallel()
	const body = `{"content":[],"usage":{"output_tokens":1,"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3}}}`
	resp := decodeResponse(t, body)
	resp.Usage = middleware.Usage{InputTokens: 9, CacheWrite: 7, OutputTokens: 1, Reasoning: 1}
	require.Equal(t, `{"content":[],"usage":{"output_tokens":1,"cache_creation_input_tokens":7,"cache_creation":{"ephemeral_5m_input_tokens":4,"ephemeral_1h_input_tokens":3},"input_tokens":2,"output_tokens_details":{"thinking_tokens":1}}}`, encodeResponse(t, resp))
	for name, u := range map[string]middleware.Usage{
		"more cached than sent": {InputTokens: 1, Cached: 2, OutputTokens: 1},
		"less than the account": {InputTokens: 9, CacheWrite: 2, OutputTokens: 1},
	} {
		resp.Usage = u
		_, err := format.EncodeResponse(resp)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
	none := decodeResponse(t, `{"content":[]}`)
	none.Usage.OutputTokens = 5
	require.Equal(t, `{"content":[]}`, encodeResponse(t, none), "no figures are invented")
	empty := decodeResponse(t, `{"content":[],"usage":{}}`)
	empty.Usage = middleware.Usage{InputTokens: 3, OutputTokens: 4}
	require.Equal(t, `{"content":[],"usage":{"input_tokens":3,"output_tokens":4}}`, encodeResponse(t, empty))
}

func TestResponseUnencodable(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Response){
		"no object":          func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `[` },
		"a custom call":      func(r *middleware.Response) { r.Message.ToolCalls[0].Kind = middleware.KindCustom },
		"signed reasoning":   func(r *middleware.Response) { r.Message.Parts[0].Text = "other" },
		"fresh reasoning":    func(r *middleware.Response) { r.Message.Parts[0].Native = nil },
		"a second choice":    func(r *middleware.Response) { r.Choices = []middleware.Message{r.Message} },
		"a user's":           func(r *middleware.Response) { r.Message.Role = middleware.RoleUser },
		"no Native":          func(r *middleware.Response) { r.Native = nil },
		"a foreign Native":   func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "x", Raw: "{}"} },
		"a Native of no use": func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: format.Dialect(), Raw: "{}"} },
		"a call as a part":   func(r *middleware.Response) { r.Message.Parts[0].Native = r.Message.ToolCalls[0].Native },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, twoCalls)
			edit(resp)
			_, err := format.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A call of a stream may have arguments that are not JSON. They have no place in an answer
// that is one object.
func TestRubbishCannotMove(t *testing.T) {
	t.Parallel()
	streamed := decodeResponse(t, messageStream(toolBlockStart(0, "t1", "a"), inputDelta(0, `{"a`), blockStop(0), messageEnd("tool_use", 5)))
	resp := decodeResponse(t, twoCalls)
	resp.Message.ToolCalls[0] = streamed.Message.ToolCalls[0]
	_, err := format.EncodeResponse(resp)
	require.ErrorIs(t, err, codec.ErrUnencodable)
	require.Contains(t, encodeRequest(t, decodeRequest(t, asked).With(streamed.Message)), `"id":"t1","name":"a","input":{},"caller"`, "history has an object")
}

func TestResponseShape(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		body string
		err  error
	}{
		"HTML":                {`<html></html>`, codec.ErrShape},
		"a list":              {`[{"type":"message_start","message":{}},{"type":"message_stop"}]`, codec.ErrShape},
		"an empty list":       {`[]`, codec.ErrShape},
		"no content":          {`{"completion":"a"}`, codec.ErrShape},
		"content as text":     {`{"content":"a"}`, codec.ErrShape},
		"a call in a list":    {`{"content":[[{"type":"tool_use","id":"t","name":"a","input":{}}]]}`, codec.ErrShape},
		"two objects":         {`{"content":[]}{}`, codec.ErrShape},
		"an object cut off":   {`{"content":[`, codec.ErrIncomplete},
		"nothing":             {``, codec.ErrIncomplete},
		"events without end":  {messageStream(textBlockStart(0)), codec.ErrIncomplete},
		"events without head": {event("message_stop", `{"type":"message_stop"}`), codec.ErrShape},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := codec.Decode(format.NewStream(decodeRequest(t, asked), nil), []byte(x.body))
			require.ErrorIs(t, err, x.err)
		})
	}
}

// What is written is UTF-8, also where another block than a call has other bytes.
func TestWrittenAnswerIsUTF8(t *testing.T) {
	t.Parallel()
	resp, err := codec.Decode(format.NewStream(nil, nil), []byte(`{"id":"x","type":"message","role":"assistant","model":"m","content":[{"type":"message","id":"c1","input":{"a":"`+"\xff\xfe"+`"}}],`+
		`"stop_reason":"tool_use","usage":{}}`))
	require.NoError(t, err)
	out, err := format.EncodeResponse(resp)
	require.NoError(t, err)
	require.True(t, utf8.Valid(out), "%q", out)
}
