package gemini_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/gemini"
)

var format = gemini.Format{}

func decodeRequest(t testing.TB, body string) *middleware.Request {
	t.Helper()
	req, err := format.DecodeRequest([]byte(body))
	require.NoError(t, err)
	return req
}

func encodeRequest(t testing.TB, req *middleware.Request) string {
	t.Helper()
	body, err := format.EncodeRequest(req)
	require.NoError(t, err)
	return string(body)
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/v1beta/models/gemini-x:generateContent":                                                      true,
		"/gateway/v1beta/models/gemini-x:streamGenerateContent":                                        true,
		"/v1/projects/p/locations/l/publishers/google/models/gemini-x:streamGenerateContent?alt=sse":   true,
		"/v1beta/models/gemini-x:countTokens":                                                          false,
		"/v1beta/models/gemini-x:batchGenerateContent":                                                 false,
		"/v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict":                     false,
		"/v1beta/models/gemini-x:embedContent?next=/v1beta/models/gemini-x:generateContent&alt=sse&a=": false,
	} {
		require.Equal(t, want, format.Match(path, []byte(plainRequest)), path)
	}
	require.False(t, format.Match("/v1beta/models/gemini-x:generateContent", []byte("grant_type=x")))
}

func TestURL(t *testing.T) {
	t.Parallel()
	require.Equal(t, "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent", format.URL("", "gemini-x", false))
	require.Equal(t, "https://gw.example/v1/models/gemini-x:streamGenerateContent?alt=sse", format.URL("https://gw.example/v1/", "models/gemini-x", true))
	require.Equal(t, "https://gw.example/v1/tunedModels/mine:generateContent", format.URL("https://gw.example/v1", "tunedModels/mine", false))
	require.Equal(t, "https://gw.example/models/a%3Fb%23c:generateContent", format.URL("https://gw.example", "a?b#c", false))
}

func TestRequestView(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, fullRequest)
	require.Empty(t, req.Model)
	want := []middleware.Message{
		middleware.System("Be kind."),
		{Role: middleware.RoleUser, Parts: []middleware.Part{
			{Text: "Wind in Bergen and Oslo?"}, {Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte("\x89PNG")}}},
		{Role: middleware.RoleAssistant,
			Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: "thinking"}, {}},
			ToolCalls: []middleware.ToolCall{
				{ID: "toolmend_1", Name: "wind", Arguments: `{"city": "Bergen", "n": 12345678901234567890}`},
				{ID: "toolmend_2", Name: "wind", Arguments: `{"city":"Oslo"}`}}},
		{Role: middleware.RoleTool, ToolCallID: "toolmend_1", ToolName: "wind", Parts: []middleware.Part{{Text: "6 m/s"}}},
		{Role: middleware.RoleTool, ToolCallID: "toolmend_2", ToolName: "wind", IsError: true, Parts: []middleware.Part{{Text: "no such place"}}},
		middleware.User("So?"),
	}
	require.Equal(t, want, withoutNative(req.Messages))
	for _, m := range req.Messages {
		require.NotNil(t, m.Native)
		require.NotContains(t, m.Native.Raw, "googleSearch")
	}
	require.Equal(t, []string{"googleSearch", "wind"}, []string{req.Tools[0].Name, req.Tools[1].Name})
	require.Equal(t, middleware.KindHosted, req.Tools[0].Kind)
	require.JSONEq(t, `{"type":"object","properties":{"city":{"type":["string","null"]}}}`, string(req.Tools[1].Parameters))
	require.Equal(t, middleware.ToolRequired, req.ToolChoice.Mode)
	require.InDelta(t, 1.0, *req.Temperature, 0)
	require.Equal(t, 100, req.MaxTokens)
	require.Equal(t, []string{"END"}, req.Stop)
}

func TestSnakeCase(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, casefile.Body(t, "before"))
	require.Equal(t, []middleware.Message{
		middleware.System("Short."),
		middleware.User("Go"),
		{Role: middleware.RoleAssistant, ToolCalls: []middleware.ToolCall{{ID: "a1", Name: "wind", Arguments: "{}"}}},
		{Role: middleware.RoleTool, ToolCallID: "a1", ToolName: "wind", Parts: []middleware.Part{
			{Text: "calm"}, {Kind: middleware.PartMedia, MediaType: "image/png", Data: []byte("\x89PNG")}}},
	}, withoutNative(req.Messages))
	require.Equal(t, 5, req.MaxTokens)
	require.Equal(t, middleware.ToolNone, req.ToolChoice.Mode)
	req.MaxTokens, req.ToolChoice = 9, middleware.ToolChoice{Name: "wind"}
	req.Messages[2].ToolCalls[0].Arguments = `{"a":1}`
	req.Messages[3].Parts[0].Text = "storm"
	req.Messages[3].Parts[1].Data = []byte("\x89")
	casefile.Expect(t, "after", encodeRequest(t, req))
}

func TestNotARequest(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"nothing":             ``,
		"no object":           `[]`,
		"another format":      `{"messages":[]}`,
		"contents":            `{"contents":"x"}`,
		"a content":           `{"contents":["x"]}`,
		"role":                `{"contents":[{"role":1}]}`,
		"parts":               `{"contents":[{"parts":"x"}]}`,
		"a part":              `{"contents":[{"parts":[1]}]}`,
		"a call":              `{"contents":[{"parts":[{"functionCall":[]}]}]}`,
		"name of a call":      `{"contents":[{"role":"model","parts":[{"functionCall":{"name":1}}]}]}`,
		"a response":          `{"contents":[{"parts":[{"functionResponse":{"response":"x"}}]}]}`,
		"system":              `{"contents":[],"systemInstruction":"x"}`,
		"tools":               `{"contents":[],"tools":"x"}`,
		"declarations":        `{"contents":[],"tools":[{"functionDeclarations":1}]}`,
		"parameters":          `{"contents":[],"tools":[{"functionDeclarations":[{"parameters":1}]}]}`,
		"generationConfig":    `{"contents":[],"generationConfig":[]}`,
		"temperature":         `{"contents":[],"generationConfig":{"temperature":"hot"}}`,
		"stop":                `{"contents":[],"generationConfig":{"stopSequences":[1]}}`,
		"calling config":      `{"contents":[],"toolConfig":{"functionCallingConfig":1}}`,
		"deeper than allowed": `{"contents":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `}`,
	} {
		_, err := format.DecodeRequest([]byte(body))
		require.ErrorIs(t, err, codec.ErrShape, name)
	}
}

// Which call a result is for, where ids are missing on one side or on both.
func TestResultsFindTheirCalls(t *testing.T) {
	t.Parallel()
	call := func(id, name string) string {
		return `{"functionCall":{` + id + `"name":"` + name + `"}}`
	}
	result := func(id, name string) string {
		return `{"functionResponse":{` + id + `"name":"` + name + `","response":{"output":"x"}}}`
	}
	model := func(parts ...string) string { return `{"role":"model","parts":[` + strings.Join(parts, ",") + `]}` }
	user := func(parts ...string) string { return `{"role":"user","parts":[` + strings.Join(parts, ",") + `]}` }
	for name, c := range map[string]struct {
		contents []string
		want     []string
	}{
		"by id":               {[]string{model(call(`"id":"1",`, "a"), call(`"id":"2",`, "a")), user(result(`"id":"2",`, "a"), result(`"id":"1",`, "a"))}, []string{"2", "1"}},
		"by name":             {[]string{model(call("", "a"), call("", "b")), user(result("", "b"), result("", "a"))}, []string{"toolmend_2", "toolmend_1"}},
		"by order":            {[]string{model(call("", "a"), call("", "a")), user(result("", "a"), result("", "a"))}, []string{"toolmend_1", "toolmend_2"}},
		"the client's own id": {[]string{model(call("", "a"), call("", "b")), user(result(`"id":"x",`, "b"))}, []string{"toolmend_2"}},
		"an id left out":      {[]string{model(call(`"id":"1",`, "a")), user(result("", "a"))}, []string{"1"}},
		"in two contents":     {[]string{model(call("", "a"), call("", "a")), user(result("", "a")), user(result("", "a"))}, []string{"toolmend_1", "toolmend_2"}},
		"a turn in two":       {[]string{model(call("", "a")), model(call("", "b")), user(result("", "a"), result("", "b"))}, []string{"toolmend_1", "toolmend_2"}},
		"of the later turn":   {[]string{model(call("", "a")), user(`{"text":"no"}`), model(call("", "a")), user(result("", "a"))}, []string{"toolmend_2"}},
		"of no call":          {[]string{model(call(`"id":"1",`, "a")), user(result(`"id":"9",`, "a"))}, []string{"9"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, m := range decodeRequest(t, `{"contents":[`+strings.Join(c.contents, ",")+`]}`).Messages {
				if m.Role == middleware.RoleTool {
					got = append(got, m.ToolCallID)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

func TestRequestEdits(t *testing.T) {
	t.Parallel()
	half := 0.5
	for name, c := range map[string]struct {
		edit     func(*middleware.Request)
		old, new string
	}{
		"arguments":              {func(r *middleware.Request) { r.Messages[2].ToolCalls[1].Arguments = `{"city": "Ås"}` }, `{"city":"Oslo"}`, `{"city": "Ås"}`},
		"no object":              {func(r *middleware.Request) { r.Messages[2].ToolCalls[1].Arguments = `[1]` }, `{"city":"Oslo"}`, `{}`},
		"a real id":              {func(r *middleware.Request) { r.Messages[2].ToolCalls[1].ID = "x" }, `"args": {"city":"Oslo"}`, `"args": {"city":"Oslo"},"id":"x"`},
		"another place":          {func(r *middleware.Request) { r.Messages[2].ToolCalls[1].ID = "toolmend_9" }, ``, ``},
		"reasoning":              {func(r *middleware.Request) { r.Messages[2].Parts[0].Text = "hm" }, `"thinking"`, `"hm"`},
		"text":                   {func(r *middleware.Request) { r.Messages[5].Parts[0].Text = "<b>" }, `"So?"`, `"<b>"`},
		"media":                  {func(r *middleware.Request) { r.Messages[1].Parts[1].Data = []byte{1} }, `"iVBORw=="`, `"AQ=="`},
		"system":                 {func(r *middleware.Request) { r.Messages[0].Parts[0].Text = "Be brief." }, `"Be kind."`, `"Be brief."`},
		"a result":               {func(r *middleware.Request) { r.Messages[3].Parts[0].Text = "7 m/s" }, `"6 m/s"`, `"7 m/s"`},
		"now an error":           {func(r *middleware.Request) { r.Messages[3].IsError = true }, `{"result": "6 m/s"}`, `{"error":"6 m/s"}`},
		"no error":               {func(r *middleware.Request) { r.Messages[4].IsError = false }, `{"error": "no such place"}`, `{"output":"no such place"}`},
		"another system message": {func(r *middleware.Request) { *r = *r.WithSystem("Be brief.") }, `[{"text": "Be kind."}]`, `[{"text": "Be kind."},{"text":"Be brief."}]`},
		"no system message": {func(r *middleware.Request) { r.Messages = r.Messages[1:] }, `
  "systemInstruction": {"role": "user", "parts": [{"text": "Be kind."}]},`, ``},
		"a part less": {func(r *middleware.Request) { r.Messages[1].Parts = r.Messages[1].Parts[:1] }, `, {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}}`, ``},
		"a part more": {func(r *middleware.Request) {
			r.Messages[1].Parts = append(r.Messages[1].Parts, middleware.Part{Text: "!"})
		}, `"iVBORw=="}}`, `"iVBORw=="}},{"text":"!"}`},
		"a result less": {func(r *middleware.Request) { r.Messages = append(r.Messages[:4:4], r.Messages[5]) }, `
      {"functionResponse": {"name": "wind", "response": {"error": "no such place"}}},`, ``},
		"temperature":    {func(r *middleware.Request) { r.Temperature = &half }, `"temperature": 1.0`, `"temperature": 0.5`},
		"no temperature": {func(r *middleware.Request) { r.Temperature = nil }, `"temperature": 1.0, `, ``},
		"max tokens":     {func(r *middleware.Request) { r.MaxTokens = 7 }, `"maxOutputTokens": 100`, `"maxOutputTokens": 7`},
		"stop":           {func(r *middleware.Request) { r.Stop = []string{"a", `"`} }, `["END"]`, `["a","\""]`},
		"no tools":       {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone }, `"mode": "ANY"`, `"mode": "NONE"`},
		"one tool":       {func(r *middleware.Request) { r.ToolChoice = middleware.ToolChoice{Name: "wind"} }, `"mode": "ANY"`, `"mode": "ANY","allowedFunctionNames":["wind"]`},
		"any tool":       {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolAuto }, `"mode": "ANY"`, `"mode": "AUTO"`},
		"a tool less": {func(r *middleware.Request) { r.Tools = r.Tools[1:] }, `]},
    {"googleSearch": {}}
  ]`, `]}
  ]`},
		"a description": {func(r *middleware.Request) { r.Tools[1].Description = "Air." }, `"Wind."`, `"Air."`},
		"a schema": {func(r *middleware.Request) { r.Tools[1].Parameters = []byte(`{"type":"object"}`) },
			`"Wind.", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING", "nullable": true}}}`, `"Wind.","parametersJsonSchema":{"type":"object"}`},
		"a tool more": {func(r *middleware.Request) {
			r.Tools = append(r.Tools, middleware.Tool{Name: "tide", Parameters: []byte(`{}`)})
		},
			`"nullable": true}}}}]`, `"nullable": true}}}},{"name":"tide","parametersJsonSchema":{}}]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, fullRequest)
			c.edit(req)
			require.Equal(t, strings.Replace(fullRequest, c.old, c.new, 1), encodeRequest(t, req))
		})
	}
}

func TestRequestRefuses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*middleware.Request){
		"the model":             func(r *middleware.Request) { r.Model = "other" },
		"a late system message": func(r *middleware.Request) { *r = *r.With(middleware.System("late")) },
		"a custom call": func(r *middleware.Request) {
			*r = *r.With(middleware.Assistant("", middleware.ToolCall{Name: "a", Kind: middleware.KindCustom}))
		},
		"a custom tool": func(r *middleware.Request) {
			r.Tools = append(r.Tools, middleware.Tool{Name: "a", Kind: middleware.KindCustom})
		},
		"a hosted tool by name": func(r *middleware.Request) { r.Tools[0].Name = "urlContext" },
		"a strict tool":         func(r *middleware.Request) { r.Tools[1].Strict = true },
		"an opaque part":        func(r *middleware.Request) { r.Messages[1].Parts[0] = middleware.Part{Kind: middleware.PartOpaque} },
		"data without a type": func(r *middleware.Request) {
			r.Messages[1].Parts[0] = middleware.Part{Kind: middleware.PartMedia, Data: []byte{1}}
		},
		"a schema that is none": func(r *middleware.Request) { r.Tools[1].Parameters = []byte(`{`) },
		"a result of no tool":   func(r *middleware.Request) { *r = *r.With(middleware.Message{Role: middleware.RoleTool}) },
		"a Native of rubbish": func(r *middleware.Request) {
			r.Messages[1].Native = &middleware.Native{Dialect: "gemini-generate", Raw: "x"}
		},
		"a request of rubbish":   func(r *middleware.Request) { r.Native = &middleware.Native{Dialect: "gemini-generate", Raw: "x"} },
		"calls of a user":        func(r *middleware.Request) { r.Messages[1].ToolCalls = []middleware.ToolCall{{Name: "a"}} },
		"a part with text, data": func(r *middleware.Request) { r.Messages[1].Parts[0].Data = []byte{1} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, fullRequest)
			edit(req)
			_, err := format.EncodeRequest(req)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
	for name, body := range map[string]string{
		"args":             `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"a","args":{},"args":{}}}]}]}`,
		"functionCall":     `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"b"},"functionCall":{"name":"a"}}]}]}`,
		"in two spellings": `{"contents":[{"role":"model","parts":[{"function_call":{"name":"b"},"functionCall":{"name":"a"}}]}]}`,
		"parts":            `{"contents":[{"role":"model","parts":[],"parts":[{"functionCall":{"name":"a"}}]}]}`,
		"contents":         `{"contents":[],"contents":[{"role":"model","parts":[{"functionCall":{"name":"a"}}]}]}`,
	} {
		req := decodeRequest(t, body)
		req.Messages[0].ToolCalls[0].Arguments = `{"x":1}`
		_, err := format.EncodeRequest(req)
		require.ErrorIs(t, err, codec.ErrUnencodable, "%s appears twice", name)
	}
}

// reaskOf answers every call of m with an error, as a re-ask does.
func reaskOf(req *middleware.Request, m middleware.Message) []middleware.Message {
	verdicts := make([]middleware.Verdict, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		verdicts[i] = middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: "required"}}}
	}
	return batch.Turn(m, req.Tools, verdicts, batch.ReissueAll, func(middleware.Verdict) string { return "wrong" })
}

// A re-ask is one insertion: the turn as it came, then one content for all
// results, with ids only where the calls have some.
func TestReask(t *testing.T) {
	t.Parallel()
	cases := []string{"an object", "a stream", "ids", "no role, rubbish", "arguments in pieces"}
	casefile.OneForEach(t, slices.Values(cases))
	for _, name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := decodeRequest(t, casefile.Body(t, "request"))
			resp, err := codec.Decode(format.NewStream(req, nil), []byte(casefile.Body(t, "answer")))
			require.NoError(t, err)
			turn := reaskOf(req, resp.Message)
			body := encodeRequest(t, req.With(turn...))
			casefile.Expect(t, "reask", body)
			require.Equal(t, body, encodeRequest(t, req.With(*throughJSON(t, &turn)...)), "after storage")
		})
	}
}

// The content of results has the role that the history has for them.
func TestReaskInTheHistorysRole(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, snakeRequest)
	call := middleware.ToolCall{ID: "a2", Name: "wind", Arguments: "{}"}
	body := encodeRequest(t, req.With(middleware.Assistant("", call), middleware.ToolReply(call, "calm")))
	require.Contains(t, body, `{"role":"model","parts":[{"functionCall":{"id":"a2","name":"wind","args":{}}}]},`+
		`{"role":"function","parts":[{"functionResponse":{"id":"a2","name":"wind","response":{"output":"calm"}}}]}]`)
}
