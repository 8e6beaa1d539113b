package anthropic_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestFreshRequest(t *testing.T) {
	t.Parallel()
	half, a := 0.5, middleware.ToolCall{ID: "1", Name: "a", Arguments: `{"n": 1.0}`}
	b := middleware.ToolCall{ID: "2", Name: "b", Arguments: "rubbish"}
	failed := middleware.ToolReply(b, "no")
	failed.IsError = true
	req := &middleware.Request{
		Model: "m",
		Messages: []middleware.Message{
			middleware.System("S"), middleware.User("U"),
			{Role: middleware.RoleAssistant, ToolCalls: []middleware.ToolCall{a, b}, Parts: []middleware.Part{
				{Kind: middleware.PartReasoning, Text: "another's", Native: &middleware.Native{Dialect: "x"}}, {Text: "T"}, {}}},
			middleware.ToolReply(a, "yes"), failed,
			{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "See"}, {Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte{0, 1, 2}},
				{Kind: middleware.PartMedia, URL: "https://i.example"}, {Kind: middleware.PartMedia, MediaType: "application/pdf", URL: "https://d.example"},
				{Kind: middleware.PartMedia, MediaType: "text/plain", Data: []byte("plain")}}},
			middleware.System("later"),
		},
		Tools:       []middleware.Tool{{Name: "a", Parameters: []byte(`{"type":"object"}`)}},
		ToolChoice:  middleware.ToolChoice{Name: "a"},
		Temperature: &half, Stop: []string{"E"},
		Params: []byte(`{"temperature":0.7,"thinking":{"type":"disabled"},"max_tokens":77}`),
		Sink:   func(middleware.Event) error { return nil },
	}
	require.JSONEq(t, `{"model":"m","max_tokens":77,"system":"S","messages":[{"role":"user","content":"U"},`+
		`{"role":"assistant","content":[{"type":"text","text":"T"},{"type":"tool_use","id":"1","name":"a","input":{"n": 1.0}},{"type":"tool_use","id":"2","name":"b","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"yes"},{"type":"tool_result","tool_use_id":"2","content":"no","is_error":true}]},`+
		`{"role":"user","content":[{"type":"text","text":"See"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAEC"}},`+
		`{"type":"image","source":{"type":"url","url":"https://i.example"}},{"type":"document","source":{"type":"url","url":"https://d.example"}},`+
		`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"plain"}}]},{"role":"system","content":"later"}],`+
		`"tools":[{"name":"a","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"a"},"temperature":0.7,"stop_sequences":["E"],"stream":true,"thinking":{"type":"disabled"}}`,
		encodeRequest(t, req))
}

func TestFreshDefaults(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"max_tokens":4096,"messages":[]}`, encodeRequest(t, &middleware.Request{}))
	require.Equal(t, `{"max_tokens":5,"messages":[],"tool_choice":{"type":"none"}}`, encodeRequest(t, &middleware.Request{MaxTokens: 5, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolNone}}))
	require.Equal(t, `{"max_tokens":4096,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1"}]}]}`,
		encodeRequest(t, &middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleTool, ToolCallID: "1"}}}))
	for name, req := range map[string]*middleware.Request{
		"Params":  {Params: []byte(`[]`)},
		"a role":  {Messages: []middleware.Message{{Role: "x"}}},
		"a part":  {Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartOpaque}}}}},
		"a call":  {Messages: []middleware.Message{middleware.Assistant("", middleware.ToolCall{Kind: middleware.KindCustom})}},
		"a tool":  {Tools: []middleware.Tool{{Kind: middleware.KindCustom}}},
		"no tool": {Tools: []middleware.Tool{{Native: &middleware.Native{Dialect: format.Dialect(), Raw: "1"}}}},
		"no URL":  {Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartMedia, MediaType: "image/png"}}}}},
	} {
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
}

// What was decoded here goes into another request with all that it has.
func TestNativeItemsInAFreshRequest(t *testing.T) {
	t.Parallel()
	req, resp := decodeRequest(t, conversation), decodeResponse(t, twoCalls)
	fresh := &middleware.Request{Messages: append(req.Messages[:1:1], resp.Message), Tools: req.Tools[1:]}
	require.Equal(t, `{"max_tokens":4096,"system":[{"type":"text","text":"S1","cache_control":{"type":"ephemeral"}}],"messages":[`+resp.Message.Native.Raw+`],`+
		`"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":2},{"type":"bash_20250124","name":"bash"}]}`, encodeRequest(t, fresh))
}

// A streamed answer for a client that wants no stream keeps what the provider wrote. Arguments
// that no object can hold are refused.
func TestStreamForAClientThatWantsNone(t *testing.T) {
	t.Parallel()
	body, contentType, err := format.EncodeAnswer("/v1/messages", []byte(asked), decodeResponse(t, messageStream(said(0, "Hi"), called(1, "t1", `{"n": 1.0}`),
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"later":1},"usage":{"output_tokens":9},"context_management":{"applied_edits":[]}}`),
		event("message_stop", `{"type":"message_stop"}`))))
	require.NoError(t, err)
	require.Equal(t, "application/json", contentType)
	require.JSONEq(t, `{"id":"msg_1","type":"message","role":"assistant","model":"m-2","content":[{"type":"text","text":"Hi"},
		{"type":"tool_use","id":"t1","name":"a","input":{"n":1.0},"caller":{"type":"direct"}}],"stop_reason":"tool_use","stop_sequence":null,"later":1,
		"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":9},"context_management":{"applied_edits":[]}}`, string(body))
	_, _, err = format.EncodeAnswer("/v1/messages", []byte(asked), decodeResponse(t, messageStream(called(0, "t1", `{"n":`), messageEnd("tool_use", 9))))
	require.ErrorIs(t, err, codec.ErrUnencodable)
}
