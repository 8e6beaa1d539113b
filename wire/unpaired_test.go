package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/wire"
)

// Response.Unpaired is set for an answer that holds one half of what a provider-executed tool
// did: a call without its result, or a result without its call.
func TestUnpaired(t *testing.T) {
	t.Parallel()
	message := func(blocks ...string) string {
		return `{"id":"m1","type":"message","role":"assistant","model":"m","content":[` + strings.Join(blocks, ",") + `],"stop_reason":"pause_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	}
	response := func(items ...string) string {
		return `{"id":"r1","object":"response","status":"completed","model":"m","output":[` + strings.Join(items, ",") + `]}`
	}
	content := func(parts ...string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[` + strings.Join(parts, ",") + `]},"finishReason":"STOP"}]}`
	}
	const (
		search   = `{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}`
		found    = `{"type":"web_search_tool_result","tool_use_id":"s1","content":[]}`
		remote   = `{"type":"mcp_tool_use","id":"s2","name":"x","server_name":"y","input":{}}`
		answered = `{"type":"mcp_tool_result","tool_use_id":"s2","is_error":false,"content":[]}`
		text     = `{"type":"text","text":"Well."}`
		words    = `{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":"Well.","annotations":[]}]}`
	)
	for name, c := range map[string]struct {
		codec wire.Codec
		body  string
		want  bool
	}{
		"anthropic: text":                    {wire.Anthropic(), message(text), false},
		"anthropic: a pair":                  {wire.Anthropic(), message(search, text, found), false},
		"anthropic: two pairs":               {wire.Anthropic(), message(search, remote, answered, found), false},
		"anthropic: a call":                  {wire.Anthropic(), message(text, search), true},
		"anthropic: a call of an MCP server": {wire.Anthropic(), message(search, found, remote), true},
		"anthropic: a result":                {wire.Anthropic(), message(found, text), true},
		"anthropic: a result of another":     {wire.Anthropic(), message(search, answered), true},
		"responses: text":                    {wire.OpenAIResponses(), response(words), false},
		"responses: a finished search":       {wire.OpenAIResponses(), response(`{"id":"w","type":"web_search_call","status":"completed"}`), false},
		"responses: a search":                {wire.OpenAIResponses(), response(`{"id":"w","type":"web_search_call","status":"searching"}`, words), true},
		"responses: code":                    {wire.OpenAIResponses(), response(`{"id":"w","type":"code_interpreter_call","status":"in_progress","code":"1"}`), true},
		"responses: an image":                {wire.OpenAIResponses(), response(`{"id":"w","type":"image_generation_call","status":"generating","result":null}`), true},
		"responses: an image that came":      {wire.OpenAIResponses(), response(`{"id":"w","type":"image_generation_call","status":"generating","result":"aGk="}`), false},
		"responses: an output":               {wire.OpenAIResponses(), response(`{"id":"o","type":"shell_call_output","call_id":"c","output":[]}`), true},
		"responses: an output with its call": {wire.OpenAIResponses(), response(`{"id":"c","type":"shell_call","call_id":"c","action":{}}`,
			`{"id":"o","type":"shell_call_output","call_id":"c","output":[]}`), false},
		"responses: a search that only began": {wire.OpenAIResponses(), "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r1\",\"status\":\"in_progress\",\"output\":[]}}\n\n" +
			"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"sequence_number\":1,\"output_index\":0,\"item\":{\"id\":\"w\",\"type\":\"web_search_call\",\"status\":\"in_progress\"}}\n\n" +
			"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":" + response() + "}\n\n", true},
		"gemini: text":          {wire.Gemini(), content(`{"text":"Well."}`), false},
		"gemini: code":          {wire.Gemini(), content(`{"executableCode":{"language":"PYTHON","code":"1"}}`), true},
		"gemini: code that ran": {wire.Gemini(), content(`{"executableCode":{"language":"PYTHON","code":"1"}}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK"}}`), false},
		"gemini: a tool":        {wire.Gemini(), content(`{"toolCall":{"id":"t1","toolType":"GOOGLE_SEARCH_WEB"}}`, `{"toolCall":{"id":"t2"}}`, `{"toolResponse":{"id":"t2"}}`), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp, err := c.codec.DecodeResponse(nil, []byte(c.body))
			require.NoError(t, err)
			require.Equal(t, c.want, resp.Unpaired)
		})
	}
}
