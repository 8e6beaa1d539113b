package chat_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestFreshRequest(t *testing.T) {
	t.Parallel()
	half := 0.5
	call := middleware.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}
	req := &middleware.Request{
		Model: "m",
		Messages: []middleware.Message{
			middleware.System("S"),
			{Role: middleware.RoleUser, Parts: []middleware.Part{
				{Text: "Look"}, {Kind: middleware.PartMedia, URL: "https://x/y.png"},
				{Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte{0, 1, 2}},
				{Kind: middleware.PartMedia, MediaType: "audio/x-wav", Data: []byte{0, 1, 2}},
				{Kind: middleware.PartMedia, MediaType: "video/mp4", URL: "https://x/y.mp4"},
				{Kind: middleware.PartMedia, MediaType: "application/pdf", Data: []byte{0, 1, 2}}}},
			{Role: middleware.RoleAssistant, Parts: []middleware.Part{
				{Kind: middleware.PartReasoning, Text: "of another provider", Native: &middleware.Native{Dialect: "other", Raw: "{}"}},
				{Text: "A"}, {Text: "B"}}},
			middleware.Assistant("", call, middleware.ToolCall{ID: "c2", Name: "sql", Arguments: "select", Kind: middleware.KindCustom}),
			middleware.ToolReply(call, "1"),
		},
		Tools: []middleware.Tool{
			{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type": "object"}`), Strict: true}, {Name: "sql", Kind: middleware.KindCustom}},
		ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}, Temperature: &half, MaxTokens: 9, Stop: []string{"X"},
		Params: json.RawMessage(`{"seed": 1.0, "temperature": 0.10}`),
		Sink:   func(middleware.Event) error { return nil },
	}
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.JSONEq(t, `{"model":"m","messages":[{"role":"system","content":"S"},`+
		`{"role":"user","content":[{"type":"text","text":"Look"},{"type":"image_url","image_url":{"url":"https://x/y.png"}},`+
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,AAEC"}},{"type":"input_audio","input_audio":{"data":"AAEC","format":"wav"}},`+
		`{"type":"video_url","video_url":{"url":"https://x/y.mp4"}},{"type":"file","file":{"filename":"file.pdf","file_data":"data:application/pdf;base64,AAEC"}}]},`+
		`{"role":"assistant","content":"AB"},`+
		`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},`+
		`{"id":"c2","type":"custom","custom":{"name":"sql","input":"select"}}]},`+
		`{"role":"tool","tool_call_id":"c1","content":"1"}],`+
		`"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type": "object"},"strict":true}},{"type":"custom","custom":{"name":"sql"}}],`+
		`"tool_choice":"required","temperature":0.10,"max_completion_tokens":9,"stop":["X"],"stream":true,"stream_options":{"include_usage":true},"seed":1.0}`, string(got))

	again := decodeRequest(t, string(got))
	require.Equal(t, withoutNative(req.Messages[3]), withoutNative(again.Messages[3]))
	require.Equal(t, middleware.ToolRequired, again.ToolChoice.Mode)
}

func TestFreshParams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ params, want string }{
		"none":           {"", `{"messages":[],"max_completion_tokens":9}`},
		"the older name": {`{"max_tokens":5}`, `{"messages":[],"max_tokens":5}`},
		"the newer name": {`{"max_completion_tokens":5}`, `{"messages":[],"max_completion_tokens":5}`},
	} {
		got, err := chat.Format{}.EncodeRequest(&middleware.Request{MaxTokens: 9, Params: json.RawMessage(c.params)})
		require.NoError(t, err, name)
		require.JSONEq(t, c.want, string(got), name)
	}
	_, err := chat.Format{}.EncodeRequest(&middleware.Request{Params: json.RawMessage(`[]`)})
	require.ErrorIs(t, err, codec.ErrUnencodable)
	nan := math.NaN()
	got, err := chat.Format{}.EncodeRequest(&middleware.Request{Temperature: &nan})
	require.NoError(t, err)
	require.True(t, json.Valid(got))
}

// What has a Native of this format is written from it in a fresh request too,
// reasoning with all its members.
func TestFreshFromNative(t *testing.T) {
	t.Parallel()
	old := decodeRequest(t, requests["everything"])
	req := &middleware.Request{Model: "n", Messages: old.Messages, Tools: old.Tools}
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	for _, m := range old.Messages {
		require.Contains(t, string(got), m.Native.Raw)
	}
	for _, tool := range old.Tools {
		require.Contains(t, string(got), tool.Native.Raw)
	}

	m := old.Messages[2]
	m.Native = nil
	got, err = chat.Format{}.EncodeRequest(&middleware.Request{Messages: []middleware.Message{m}})
	require.NoError(t, err)
	require.Equal(t, `{"messages":[{"role":"assistant","content":null,"reasoning_content":"Think.","tool_calls":[`+
		m.ToolCalls[0].Native.Raw+`,`+m.ToolCalls[1].Native.Raw+`]}]}`, string(got))
}

// A turn in the old form is answered in the old form, whatever body it goes to.
func TestFreshOldTurn(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, requests["old"])
	resp, err := codec.Decode(chat.Format{}.NewStream(req, nil), []byte(answers["old"]))
	require.NoError(t, err)
	require.Equal(t, "toolmend_2", resp.Message.ToolCalls[0].ID)
	got, err := chat.Format{}.EncodeRequest(req.With(resp.Message, middleware.ToolReply(resp.Message.ToolCalls[0], "no")))
	require.NoError(t, err)
	require.Contains(t, string(got), `"content":"rain"},{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}},`+
		`{"role":"function","name":"weather","content":"no"}]`)
	require.Equal(t, "toolmend_2", decodeRequest(t, string(got)).Messages[4].ToolCallID)

	m := resp.Message
	m.Native = nil
	got, err = chat.Format{}.EncodeRequest(&middleware.Request{Messages: []middleware.Message{m}})
	require.NoError(t, err)
	require.Equal(t, `{"messages":[{"role":"assistant","content":null,"function_call":{"name":"weather","arguments":"{}"}}]}`, string(got))
}
