package chat_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func decodeRequest(t testing.TB, body string) *middleware.Request {
	t.Helper()
	req, err := chat.Format{}.DecodeRequest([]byte(body))
	require.NoError(t, err)
	return req
}

func TestDecodeRequest(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, requests["everything"])
	require.Equal(t, "m", req.Model)
	require.Equal(t, 0.5, *req.Temperature)
	require.Equal(t, 100, req.MaxTokens)
	require.Equal(t, []string{"END"}, req.Stop)
	require.Equal(t, "weather", req.ToolChoice.Name)

	var got []middleware.Message
	for _, m := range req.Messages {
		require.Equal(t, "openai-chat", m.Native.Dialect)
		for _, p := range m.Parts {
			require.NotEmpty(t, p.Native.Raw)
		}
		got = append(got, withoutNative(m))
	}
	require.Equal(t, []middleware.Message{
		{Role: middleware.RoleSystem, Parts: []middleware.Part{{Text: "Be brief."}}},
		{Role: middleware.RoleUser, Parts: []middleware.Part{
			{Text: "Weather?"},
			{Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte{0, 1, 2}},
			{Kind: middleware.PartMedia, MediaType: "audio/mpeg", Data: []byte{0, 1, 2}},
			{Kind: middleware.PartOpaque}, {Kind: middleware.PartOpaque}}},
		{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: "Think."}},
			ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city": "Oslo"}`}, {ID: "c2", Name: "time"}}},
		{Role: middleware.RoleTool, ToolCallID: "c1", ToolName: "weather", Parts: []middleware.Part{{Text: "rain"}}},
		{Role: middleware.RoleTool, ToolCallID: "c2", ToolName: "time", Parts: []middleware.Part{{Text: "noon"}}},
	}, got)

	require.Len(t, req.Tools, 4)
	require.Equal(t, `{"type": "object"}`, string(req.Tools[0].Parameters))
	require.True(t, req.Tools[0].Strict)
	require.Equal(t, middleware.KindCustom, req.Tools[1].Kind)
	require.Equal(t, "sql", req.Tools[1].Name)
	require.Equal(t, middleware.KindHosted, req.Tools[2].Kind)
	require.Equal(t, middleware.KindFunction, req.Tools[3].Kind)
}

func TestDecodeOldRequest(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, requests["old"])
	require.Equal(t, "toolmend_1", req.Messages[1].ToolCalls[0].ID)
	require.Equal(t, "toolmend_1", req.Messages[2].ToolCallID)
	require.Equal(t, "weather", req.Messages[2].ToolName)
	require.Equal(t, middleware.RoleTool, req.Messages[2].Role)
	require.Equal(t, "weather", req.Tools[0].Name)
}

// Each edit changes just these bytes.
func TestEditRequest(t *testing.T) {
	t.Parallel()
	half := 0.25
	for name, c := range map[string]struct {
		body     string
		edit     func(*middleware.Request)
		old, new string
	}{
		"nothing":        {"everything", func(*middleware.Request) {}, "", ""},
		"model":          {"everything", func(r *middleware.Request) { r.Model = "x" }, `"model": "m"`, `"model": "x"`},
		"temperature":    {"everything", func(r *middleware.Request) { r.Temperature = &half }, `0.50`, `0.25`},
		"no temperature": {"everything", func(r *middleware.Request) { r.Temperature = nil }, ` "temperature": 0.50,`, ``},
		"limit":          {"everything", func(r *middleware.Request) { r.MaxTokens = 7 }, `"max_tokens": 100`, `"max_tokens": 7`},
		"new limit":      {"plain", func(r *middleware.Request) { r.MaxTokens = 7 }, `}]}`, `}],"max_completion_tokens":7}`},
		"stop":           {"everything", func(r *middleware.Request) { r.Stop[0] = "X" }, `"END"`, `"X"`},
		"stops":          {"everything", func(r *middleware.Request) { r.Stop = []string{"A", "B"} }, `"END"`, `["A","B"]`},
		"choice":         {"everything", func(r *middleware.Request) { r.ToolChoice.Name = "time" }, `{"type": "function", "function": {"name": "weather"}}, "par`, `{"type":"function","function":{"name":"time"}}, "par`},
		"no choice":      {"everything", func(r *middleware.Request) { r.ToolChoice.Name = "" }, "\n  " + `"tool_choice": {"type": "function", "function": {"name": "weather"}},`, ""},
		"required":       {"plain", func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolRequired }, `}]}`, `}],"tool_choice":"required"}`},
		"custom choice":  {"everything", func(r *middleware.Request) { r.ToolChoice.Name = "sql" }, `{"type": "function", "function": {"name": "weather"}}, "par`, `{"type":"custom","custom":{"name":"sql"}}, "par`},
		"old choice":     {"old", func(r *middleware.Request) { r.ToolChoice.Name = "weather" }, `"auto"`, `{"name":"weather"}`},
		"old, none":      {"old", func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone }, `"auto"`, `"none"`},
		"text":           {"everything", func(r *middleware.Request) { r.Messages[1].Parts[0].Text = "<T>\n" }, `"text": "Weather?"`, `"text": "<T>\n"`},
		"whole text":     {"everything", func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "T" }, `"Be brief."`, `"T"`},
		"image":          {"everything", func(r *middleware.Request) { r.Messages[1].Parts[1].Data[0] = 1 }, `png;base64,AAEC`, `png;base64,AQEC`},
		"image elsewhere": {"everything", func(r *middleware.Request) {
			p := &r.Messages[1].Parts[1]
			p.Data, p.MediaType, p.URL = nil, "", "https://x/y"
		}, `data:image/png;base64,AAEC`, `https://x/y`},
		"sound": {"everything", func(r *middleware.Request) {
			p := &r.Messages[1].Parts[2]
			p.Data, p.MediaType = []byte{1, 1, 2}, "audio/wav"
		}, `{"data": "AAEC", "format": "mp3"}`, `{"data": "AQEC", "format": "wav"}`},
		"file":                    {"file", func(r *middleware.Request) { r.Messages[0].Parts[0].Data[0] = 1 }, `pdf;base64,AAEC`, `pdf;base64,AQEC`},
		"beside what has no type": {"odd", func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "T" }, `"a"`, `"T"`},
		"arguments":               {"everything", func(r *middleware.Request) { r.Messages[2].ToolCalls[0].Arguments = `{}` }, `"{\"city\": \"Oslo\"}"`, `"{}"`},
		"id":                      {"everything", func(r *middleware.Request) { r.Messages[2].ToolCalls[1].ID = "x" }, `"index": 1, "id": "c2"`, `"index": 1, "id": "x"`},
		"reply id":                {"everything", func(r *middleware.Request) { r.Messages[3].ToolCallID = "x" }, `"tool_call_id": "c1"`, `"tool_call_id": "x"`},
		"reply name":              {"everything", func(r *middleware.Request) { r.Messages[4].ToolName = "x" }, `"c2", "name": "time"`, `"c2", "name": "x"`},
		"a view":                  {"everything", func(r *middleware.Request) { r.Messages[3].ToolName = "x"; r.Messages[3].IsError = true }, "", ""},
		"no call":                 {"everything", func(r *middleware.Request) { r.Messages[2].ToolCalls = r.Messages[2].ToolCalls[:1] }, ",\n        {\"index\": 1, \"id\": \"c2\", \"function\": {\"name\": \"time\", \"arguments\": \"\"}}", ""},
		"no reasoning":            {"everything", func(r *middleware.Request) { r.Messages[2].Parts = nil }, ` "reasoning_content": "Think.",`, ``},
		"reasoning":               {"everything", func(r *middleware.Request) { r.Messages[2].Parts[0].Text = "X" }, `"Think."`, `"X"`},
		"redacted":                {"everything", func(r *middleware.Request) { p := &r.Messages[2].Parts[0]; p.Text, p.Native = "", nil }, ` "reasoning_content": "Think.",`, ``},
		"message away":            {"everything", func(r *middleware.Request) { r.Messages = r.Messages[1:] }, "{\"role\": \"developer\", \"content\": \"Be brief.\"},\n    ", ""},
		"message added":           {"plain", func(r *middleware.Request) { r.Messages = append(r.Messages, middleware.Assistant("Yes")) }, `"Hi"}`, `"Hi"},{"role":"assistant","content":"Yes"}`},
		"tool":                    {"everything", func(r *middleware.Request) { r.Tools[0].Description = "e"; r.Tools[0].Strict = false }, `"d", "parameters": {"type": "object"}, "strict": true`, `"e", "parameters": {"type": "object"}`},
		"schema":                  {"everything", func(r *middleware.Request) { r.Tools[0].Parameters = json.RawMessage(`{"type": "Object"}`) }, `{"type": "object"}, "strict`, `{"type": "Object"}, "strict`},
		"tool away":               {"everything", func(r *middleware.Request) { r.Tools = r.Tools[1:] }, "{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"description\": \"d\", \"parameters\": {\"type\": \"object\"}, \"strict\": true}},\n    ", ""},
		"old tool":                {"old", func(r *middleware.Request) { r.Tools = append(r.Tools, middleware.Tool{Name: "x"}) }, `}],"function_call"`, `},{"name":"x"}],"function_call"`},
		"old arguments":           {"old", func(r *middleware.Request) { r.Messages[1].ToolCalls[0].Arguments = "1" }, `"arguments":"{}"`, `"arguments":"1"`},
		"old id": {"old", func(r *middleware.Request) {
			r.Messages[1].ToolCalls[0].ID, r.Messages[2].ToolCallID = "toolmend_9", "toolmend_9"
		}, "", ""},
		"old call away":    {"old", func(r *middleware.Request) { r.Messages[1].ToolCalls = nil }, `,"function_call":{"name":"weather","arguments":"{}"}`, ``},
		"text beside call": {"old", func(r *middleware.Request) { r.Messages[1].Parts = middleware.Assistant("T").Parts }, `"content":null`, `"content":"T"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := requests[c.body]
			require.Contains(t, body, c.old)
			want := strings.Replace(body, c.old, c.new, 1)
			req := decodeRequest(t, body)
			c.edit(req)
			got, err := chat.Format{}.EncodeRequest(req)
			require.NoError(t, err)
			require.Equal(t, want, string(got))
			require.True(t, json.Valid(got))

			stored := throughJSON(t, decodeRequest(t, body))
			c.edit(stored)
			got, err = chat.Format{}.EncodeRequest(stored)
			require.NoError(t, err)
			require.Equal(t, want, string(got), "after storage")
		})
	}
}

func TestRefusedEdit(t *testing.T) {
	t.Parallel()
	twice := `{"model":"m","model":"n","messages":[{"role":"user","content":"a","content":"b"},` +
		`{"role":"assistant","reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a"}],"function_call":{"name":"f"},"tool_calls":[{"id":"c","function":{"name":"f"}}]}],"messages":[]}`
	for name, c := range map[string]struct {
		body string
		edit func(*middleware.Request)
	}{
		"member that appears twice": {twice, func(r *middleware.Request) { r.Model = "x" }},
		"messages twice":            {twice, func(r *middleware.Request) { r.Messages = []middleware.Message{middleware.User("x")} }},
		"content twice":             {strings.Replace(twice, `,"messages":[]`, "", 1), func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "x" }},
		"copy of reasoning":         {strings.Replace(twice, `,"messages":[]`, "", 1), func(r *middleware.Request) { r.Messages[1].Parts[0].Text = "x" }},
		"call in both forms":        {strings.Replace(twice, `,"messages":[]`, "", 1), func(r *middleware.Request) { r.Messages[1].ToolCalls[0].Name = "x" }},
		"opaque part changed":       {requests["everything"], func(r *middleware.Request) { r.Messages[1].Parts[4].Text = "x" }},
		"foreign opaque part": {requests["plain"], func(r *middleware.Request) {
			r.Messages[0].Parts = []middleware.Part{{Kind: middleware.PartOpaque, Native: &middleware.Native{Dialect: "other", Raw: "{}"}}}
		}},
		"hosted tool changed":  {requests["everything"], func(r *middleware.Request) { r.Tools[2].Name = "x" }},
		"fresh hosted tool":    {requests["plain"], func(r *middleware.Request) { r.Tools = []middleware.Tool{{Name: "x", Kind: middleware.KindHosted}} }},
		"schema for free text": {requests["everything"], func(r *middleware.Request) { r.Tools[1].Parameters = json.RawMessage(`{}`) }},
		"schema that is none":  {requests["everything"], func(r *middleware.Request) { r.Tools[0].Parameters = json.RawMessage(`{`) }},
		"second call in the old form": {requests["old"], func(r *middleware.Request) {
			r.Messages[1].ToolCalls = append(r.Messages[1].ToolCalls, middleware.ToolCall{Name: "x"})
		}},
		"id in the old form":       {requests["old"], func(r *middleware.Request) { r.Messages[1].ToolCalls[0].ID = "x" }},
		"required in the old form": {requests["old"], func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolRequired }},
		"built-in call": {requests["plain"], func(r *middleware.Request) {
			*r = *r.With(middleware.Assistant("", middleware.ToolCall{Kind: middleware.KindBuiltin}))
		}},
		"media of the assistant": {requests["plain"], func(r *middleware.Request) {
			*r = *r.With(middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{{Kind: middleware.PartMedia, URL: "u"}}})
		}},
		"no role":                        {requests["plain"], func(r *middleware.Request) { *r = *r.With(middleware.Message{}) }},
		"no role any more":               {requests["plain"], func(r *middleware.Request) { r.Messages[0].Role = "" }},
		"id of a reply, in the old form": {requests["old"], func(r *middleware.Request) { r.Messages[2].ToolCallID = "x" }},
		"a stored form that is broken": {requests["plain"], func(r *middleware.Request) {
			r.Messages[0].Native = &middleware.Native{Dialect: "openai-chat", Raw: "{"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, c.body)
			c.edit(req)
			_, err := chat.Format{}.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	for choice, want := range map[string]struct {
		choice middleware.ToolMode
		only   string
	}{
		`"auto"`: {}, `null`: {}, `"none"`: {choice: middleware.ToolNone}, `"required"`: {choice: middleware.ToolRequired},
		`"any"`: {choice: middleware.ToolRequired}, `{"type":"custom","custom":{"name":"x"}}`: {only: "x"},
		`{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[]}}`: {choice: middleware.ToolRequired},
		`{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`:     {},
	} {
		req := decodeRequest(t, `{"messages":[],"tool_choice":`+choice+`}`)
		require.Equal(t, want.choice, req.ToolChoice.Mode, choice)
		require.Equal(t, want.only, req.ToolChoice.Name, choice)
	}
	req := decodeRequest(t, `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"a":1}]}}}`)
	req.ToolChoice.Mode = middleware.ToolAuto
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, `{"messages":[],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"a":1}]}}}`, string(got))
}

// The choice is changed where it is read.
func TestBothChoices(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[],"functions":[{"name":"f"}],"tool_choice":"auto","function_call":"auto"}`)
	req.ToolChoice.Mode = middleware.ToolNone
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, middleware.ToolNone, decodeRequest(t, string(got)).ToolChoice.Mode)
}

// OpenAI refuses a request with both names of the limit.
func TestLimitBesideNull(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[],"max_completion_tokens":null,"max_tokens":5}`)
	req.MaxTokens = 7
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, `{"messages":[],"max_completion_tokens":null,"max_tokens":7}`, string(got))
}

// Without tools the members go that are refused without tools.
func TestLastToolGone(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, `{"messages":[],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","parallel_tool_calls":true,"n":1}`)
	req.Tools = nil
	got, err := chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, `{"messages":[],"n":1}`, string(got))

	req = decodeRequest(t, `{"messages":[],"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required"}}}`)
	req.Tools, req.ToolChoice = nil, middleware.ToolChoice{}
	got, err = chat.Format{}.EncodeRequest(req)
	require.NoError(t, err)
	require.Equal(t, `{"messages":[]}`, string(got))
}
