package gemini_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func TestFreshRequest(t *testing.T) {
	t.Parallel()
	warm := 0.25
	call := middleware.ToolCall{ID: "c1", Name: "wind", Arguments: `{"n":12345678901234567890}`}
	placed := middleware.ToolCall{ID: "toolmend_2", Name: "tide", Arguments: `oops`}
	assistant := middleware.Assistant("Let me look.", call, placed)
	assistant.Parts = append(assistant.Parts, middleware.Part{Kind: middleware.PartReasoning, Text: "secret", Native: &middleware.Native{Dialect: "anthropic-messages", Raw: "{}"}})
	failed := middleware.ToolReply(placed, "no")
	failed.IsError, failed.ToolName = true, ""
	shown := middleware.ToolReply(call, "see")
	shown.Parts = append(shown.Parts, middleware.Part{Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte{1}})
	req := &middleware.Request{
		Model: "gemini-x",
		Messages: []middleware.Message{
			middleware.System("Be kind."), middleware.System("Be brief."),
			{Role: middleware.RoleUser, Parts: []middleware.Part{{Text: "Wind?"}, {Kind: middleware.PartMedia, MediaType: "image/png", URL: "gs://b/x.png"}}},
			assistant, shown, failed, middleware.User("And?"),
		},
		Tools:       []middleware.Tool{{Name: "wind", Description: "Wind.", Parameters: []byte(`{"type": "object"}`), Strict: true}, {Name: "tide"}},
		ToolChoice:  middleware.ToolChoice{Name: "wind"},
		Temperature: &warm,
		MaxTokens:   50,
		Stop:        []string{"END"},
		Params:      json.RawMessage(`{"generationConfig":{"topK":4,"temperature":1.0},"safetySettings":[],"tool_config":{"includeServerSideToolInvocations":true}}`),
	}
	require.JSONEq(t, `{
		"systemInstruction":{"parts":[{"text":"Be kind."},{"text":"Be brief."}]},
		"contents":[
			{"role":"user","parts":[{"text":"Wind?"},{"fileData":{"mimeType":"image/png","fileUri":"gs://b/x.png"}}]},
			{"role":"model","parts":[{"text":"Let me look."},{"functionCall":{"id":"c1","name":"wind","args":{"n":12345678901234567890}}},{"functionCall":{"name":"tide","args":{}}}]},
			{"role":"user","parts":[
				{"functionResponse":{"id":"c1","name":"wind","response":{"output":"see"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AQ=="}}]}},
				{"functionResponse":{"name":"tide","response":{"error":"no"}}}]},
			{"role":"user","parts":[{"text":"And?"}]}],
		"tools":[{"functionDeclarations":[{"name":"wind","description":"Wind.","parametersJsonSchema":{"type":"object"}},{"name":"tide"}]}],
		"generationConfig":{"topK":4,"temperature":1.0,"maxOutputTokens":50,"stopSequences":["END"]},
		"safetySettings":[],
		"tool_config":{"includeServerSideToolInvocations":true,"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["wind"]}}
	}`, encodeRequest(t, req))
}

// Items that came from this wire keep their own form in a fresh request.
func TestFreshFromNative(t *testing.T) {
	t.Parallel()
	old := decodeRequest(t, fullRequest)
	req := &middleware.Request{Messages: old.Messages, Tools: old.Tools}
	body := encodeRequest(t, req)
	for _, want := range []string{`"thoughtSignature": "c2ln"`, `"thought": true`, `"thoughtSignature": "dHdv"`, `"nullable": true`, `{"googleSearch":{}}`, `12345678901234567890`} {
		require.Contains(t, body, want)
	}
	again := decodeRequest(t, body)
	require.Equal(t, withoutNative(old.Messages), withoutNative(again.Messages))
	require.Len(t, again.Tools, 2)

	alone := &middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleAssistant, Parts: old.Messages[2].Parts[:1], ToolCalls: old.Messages[2].ToolCalls[:1]}}}
	require.JSONEq(t, `{"contents":[{"role":"model","parts":[{"text":"thinking","thought":true},`+
		`{"functionCall":{"name":"wind","args":{"city":"Bergen","n":12345678901234567890}},"thoughtSignature":"c2ln"}]}]}`, encodeRequest(t, alone))
}

func TestFreshRefuses(t *testing.T) {
	t.Parallel()
	user := []middleware.Message{middleware.User("x")}
	for name, req := range map[string]*middleware.Request{
		"Params":            {Messages: user, Params: json.RawMessage(`[]`)},
		"Params' config":    {Messages: user, Params: json.RawMessage(`{"generationConfig":1}`), MaxTokens: 1},
		"Params' choice":    {Messages: user, Params: json.RawMessage(`{"tool_config":{"functionCallingConfig":"ANY"}}`), ToolChoice: middleware.ToolChoice{Name: "a"}},
		"an opaque part":    {Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartOpaque, Native: &middleware.Native{Dialect: "x"}}}}}},
		"media of nothing":  {Messages: []middleware.Message{{Role: middleware.RoleUser, Parts: []middleware.Part{{Kind: middleware.PartMedia}}}}},
		"an unknown role":   {Messages: []middleware.Message{{Role: "critic"}}},
		"a late system":     {Messages: append(user, middleware.System("x"))},
		"a hosted tool":     {Messages: user, Tools: []middleware.Tool{{Name: "web_search", Kind: middleware.KindHosted}}},
		"a schema, no JSON": {Messages: user, Tools: []middleware.Tool{{Name: "a", Parameters: []byte(`{`)}}},
	} {
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable, name)
	}
}

func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{"contents":[{"role":"model","parts":[{"text":""}]}]}`, encodeRequest(t, &middleware.Request{Messages: []middleware.Message{{Role: middleware.RoleAssistant}}}),
		"the server refuses a content without parts")
}

func TestAuthorize(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	format.Authorize(h, "")
	require.Empty(t, h)
	format.Authorize(h, "k")
	require.Equal(t, http.Header{"X-Goog-Api-Key": {"k"}}, h)
}

func TestToolsInSeveralElements(t *testing.T) {
	t.Parallel()
	const body = `{"contents":[],"tools":[{"functionDeclarations":[{"name":"a"}],"urlContext":{}},{"function_declarations":{"name":"b"}},{"codeExecution":null}]}`
	names := func(req *middleware.Request) (out []string) {
		for _, tool := range req.Tools {
			out = append(out, tool.Name)
		}
		return out
	}
	req := decodeRequest(t, body)
	require.Equal(t, []string{"urlContext", "a", "b"}, names(req))
	req.Tools = append(req.Tools[1:], middleware.Tool{Name: "c"})
	require.Equal(t, `{"contents":[],"tools":[{"functionDeclarations":[{"name":"a"}]},{"function_declarations":[{"name":"b"},{"name":"c"}]}]}`, encodeRequest(t, req))
	req.Tools = nil
	require.Equal(t, `{"contents":[]}`, encodeRequest(t, req))
	req.Tools = []middleware.Tool{{Name: "c"}}
	require.Equal(t, []string{"c"}, names(decodeRequest(t, encodeRequest(t, req))))
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ own, want string }{
		"types":             {`{"type":"OBJECT","properties":{"a":{"type":"ARRAY","items":{"type":"INTEGER"}}}}`, `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}}}}`},
		"types by number":   {`{"type":6,"properties":{"type":{"type":1}}}`, `{"type":"object","properties":{"type":{"type":"string"}}}`},
		"no type":           {`{"type":"TYPE_UNSPECIFIED","title":"t"}`, `{"title":"t"}`},
		"nullable":          {`{"type":"STRING","nullable":true,"format":"date-time"}`, `{"type":["string","null"],"format":"date-time"}`},
		"not nullable":      {`{"type":"STRING","nullable":false}`, `{"type":"string"}`},
		"a nullable choice": {`{"nullable":true,"anyOf":[{"type":"STRING"}]}`, `{"anyOf":[{"type":"string"},{"type":"null"}]}`},
		"a nullable enum":   {`{"type":"STRING","nullable":true,"enum":["a"]}`, `{"type":["string","null"],"enum":["a",null]}`},
		"an enum of counts": {`{"type":"INTEGER","enum":["1","x"]}`, `{"type":"integer","enum":[1,"x"]}`},
		"counts":            {`{"type":"ARRAY","minItems":"2","max_items":"3"}`, `{"type":"array","minItems":2,"maxItems":3}`},
		"snake case":        {`{"any_of":[{"type":"STRING","min_length":"1"}],"property_ordering":["a"]}`, `{"anyOf":[{"type":"string","minLength":1}]}`},
		"property names":    {`{"type":"OBJECT","properties":{"any_of":{"type":"STRING"},"nullable":{"type":"BOOLEAN"}},"propertyOrdering":["nullable"]}`, `{"type":"object","properties":{"any_of":{"type":"string"},"nullable":{"type":"boolean"}}}`},
		"JSON Schema":       {`{"type":["string","null"],"$defs":{"a":{"type":"OBJECT"}},"additionalProperties":false}`, `{"type":["string","null"],"$defs":{"a":{"type":"object"}},"additionalProperties":false}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f","parameters":` + c.own + `}]}]}`
			req := decodeRequest(t, body)
			require.Equal(t, c.want, string(req.Tools[0].Parameters))
			req.Tools[0].Description = "d"
			require.Contains(t, encodeRequest(t, req), c.own, "the wire keeps its own form")
		})
	}
	req := decodeRequest(t, `{"contents":[],"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g","parameters_json_schema":{"type": "object"}}]}]}`)
	require.Nil(t, req.Tools[0].Parameters)
	require.Equal(t, `{"type": "object"}`, string(req.Tools[1].Parameters))
}
