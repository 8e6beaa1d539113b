package chat_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func answer(t testing.TB, body string) *middleware.Response {
	t.Helper()
	resp, err := chat.Format{}.DecodeResponse(nil, []byte(body))
	require.NoError(t, err)
	return resp
}

func TestDecodeResponse(t *testing.T) {
	t.Parallel()
	reasoning := func(s string) middleware.Part { return middleware.Part{Kind: middleware.PartReasoning, Text: s} }
	weather := middleware.ToolCall{ID: "c1", Name: "weather", Arguments: `{"city":""}`}
	for name, c := range map[string]struct {
		body   string
		want   middleware.Message
		finish middleware.FinishReason
		usage  middleware.Usage
	}{
		"text": {answers["text"], middleware.Assistant("Hello"), middleware.FinishStop, middleware.Usage{Input: 10, Output: 2}},
		"calls": {answers["calls"], middleware.Message{Parts: []middleware.Part{reasoning("Hm."), {Text: "Let me see."}}, ToolCalls: []middleware.ToolCall{
			weather, {ID: "c2", Name: "time"}, {ID: "c3", Name: "sql", Arguments: "select 1", Kind: middleware.KindCustom}}},
			middleware.FinishToolCalls, middleware.Usage{Input: 10, Output: 2, Cached: 4}},
		"objects":  {answers["object"], middleware.Assistant(`{"a":1}`, middleware.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":1}`}), middleware.FinishToolCalls, middleware.Usage{}},
		"old":      {answers["old"], middleware.Assistant("", middleware.ToolCall{ID: "toolmend_1", Name: "weather", Arguments: "{}"}), middleware.FinishToolCalls, middleware.Usage{}},
		"mistral":  {answers["mistral"], middleware.Message{Parts: []middleware.Part{reasoning("Hm."), {Text: "Hello"}}}, middleware.FinishStop, middleware.Usage{}},
		"refusal":  {answers["refusal"], middleware.Assistant("No."), middleware.FinishStop, middleware.Usage{}},
		"audio":    {answers["audio"], middleware.Message{Parts: []middleware.Part{{Kind: middleware.PartOpaque}}}, middleware.FinishStop, middleware.Usage{}},
		"filtered": {`{"choices":[{"finish_reason":"content_filter","index":0}]}`, middleware.Message{}, middleware.FinishFilter, middleware.Usage{}},
		"unknown type": {`{"choices":[{"message":{"tool_calls":[{"id":"c","type":"mcp","mcp":{}}]},"finish_reason":"stop"}]}`,
			middleware.Assistant("", middleware.ToolCall{ID: "c", Name: "mcp", Kind: middleware.KindBuiltin}), middleware.FinishToolCalls, middleware.Usage{}},
		"empty function_call": {`{"choices":[{"message":{"content":"x","function_call":{"name":"","arguments":""}},"finish_reason":"model_length"}]}`,
			middleware.Assistant("x"), middleware.FinishLength, middleware.Usage{}},

		"stream":            {streams["openai"], middleware.Assistant("Let me see.", weather, middleware.ToolCall{ID: "c2", Name: "time", Arguments: "{}"}), middleware.FinishToolCalls, middleware.Usage{Input: 10, Output: 2}},
		"stream openrouter": {streams["openrouter"], middleware.Message{Parts: []middleware.Part{reasoning("Hm.")}, ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "weather"}}}, middleware.FinishToolCalls, middleware.Usage{Input: 5, Output: 3}},
		"stream mistral":    {streams["mistral"], middleware.Message{Parts: []middleware.Part{reasoning("Hm."), {Text: "One."}}, ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city": ""}`}}}, middleware.FinishToolCalls, middleware.Usage{Input: 10, Output: 2}},
		"stream perplexity": {streams["perplexity"], middleware.Assistant("One two"), middleware.FinishStop, middleware.Usage{Input: 8, Output: 2}},
		"stream odd": {streams["odd"], middleware.Assistant("", middleware.ToolCall{ID: "c1", Name: "weather", Arguments: `{"a":1}`}, middleware.ToolCall{ID: "c2", Name: "time", Arguments: `{"b":2}`}),
			middleware.FinishToolCalls, middleware.Usage{Input: 8, Output: 4, Reasoning: 3}},
		"stream old":            {streams["old"], middleware.Assistant("", middleware.ToolCall{ID: "toolmend_1", Name: "weather", Arguments: `{"city":""}`}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream custom":         {streams["custom"], middleware.Assistant("late", middleware.ToolCall{ID: "c1", Name: "sql", Arguments: "select", Kind: middleware.KindCustom}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream of one message": {sse(`{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"weird"}]}`), middleware.Assistant("x"), "weird", middleware.Usage{}},
		"stream, calls out of order": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}},{"index":0,"id":"a","function":{"name":"f"}}]},"finish_reason":"stop"}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f"}, middleware.ToolCall{ID: "b", Name: "g"}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream, calls without index": {sse(`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}},{"id":"b","function":{"name":"g"}}]},"finish_reason":"stop"}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"arguments":"{}"}}]}}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, middleware.ToolCall{ID: "b", Name: "g", Arguments: "{}"}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream, a name in pieces": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"get_"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"time"}}]},"finish_reason":"stop"}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "get_time"}), middleware.FinishToolCalls, middleware.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, c.body)
			c.want.Role = middleware.RoleAssistant
			require.Equal(t, seen(c.want), seen(resp.Message))
			require.Equal(t, c.finish, resp.FinishReason)
			require.Equal(t, c.usage, resp.Usage)
		})
	}
	two := answer(t, answers["two"])
	require.Equal(t, "B", two.Choices[0].Text())
	require.Equal(t, "B", answer(t, streams["two"]).Choices[0].Text())
}

// Native of the message is its form in history.
func TestHistoryForm(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, want string }{
		"as sent":     {answers["refusal"], `{"role":"assistant","content":null,"refusal":"No."}`},
		"sound":       {answers["audio"], `{"role":"assistant","content":null,"audio":{"id":"a1"}}`},
		"empty sound": {`{"choices":[{"message":{"content":"x","audio":{"id":""}},"finish_reason":"stop"}]}`, `{"content":"x","role":"assistant"}`},
		"openrouter": {streams["openrouter"], `{"role":"assistant","content":"","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s","text":"Hm."}],` +
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]}`},
		"mistral": {streams["mistral"], `{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}],"closed":true},{"type":"text","text":"One."}],` +
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"\"}"}}]}`},
		"custom": {streams["custom"], `{"role":"assistant","content":"late","annotations":[{"a":1}],"channel":"x","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"select"}}]}`},
		"what is not known": {sse(`{"choices":[{"delta":{"sig":"s","label":"a","list":[1],"meta":{"a":1},"tool_calls":[{"index":0,"id":"c","function":{"name":"f","thought":"t"},"extra_content":{"x":1}}]}}]}`,
			`{"choices":[{"delta":{"label":"b","list":[2],"meta":{"b":2},"audio":{"id":"a1","data":"AA"}},"finish_reason":"stop"}]}`),
			`{"role":"assistant","content":null,"audio":{"id":"a1"},"sig":"s","list":[1,2],"meta":{"b":2},` +
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"","thought":"t"},"extra_content":{"x":1}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, answer(t, c.body).Message.Native.Raw)
		})
	}
}

// Each edit changes just these bytes, all of them.
func TestEditResponse(t *testing.T) {
	t.Parallel()
	arguments := func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}` }
	const mended = `"{\"city\":\"Oslo\"}"`
	for name, c := range map[string]struct {
		body  string
		edit  func(*middleware.Response)
		pairs []string // old and new, in turn; every occurrence
	}{
		"nothing":           {answers["calls"], func(*middleware.Response) {}, nil},
		"arguments":         {answers["calls"], arguments, []string{`"{\"city\":\"\"}"`, mended}},
		"arguments added":   {answers["calls"], func(r *middleware.Response) { r.Message.ToolCalls[1].Arguments = "{}" }, []string{`{"name":"time"}`, `{"name":"time","arguments":"{}"}`}},
		"an object":         {answers["object"], func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{"b": 2}` }, []string{`"arguments":{"a":1}`, `"arguments":{"b": 2}`}},
		"an object no more": {answers["object"], func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = `{` }, []string{`"arguments":{"a":1}`, `"arguments":"{"`}},
		"free text":         {answers["calls"], func(r *middleware.Response) { r.Message.ToolCalls[2].Arguments = "x" }, []string{`"select 1"`, `"x"`}},
		"text":              {answers["calls"], func(r *middleware.Response) { r.Message.Parts[1].Text = "T" }, []string{`"Let me see."`, `"T"`}},
		"no calls": {answers["calls"], func(r *middleware.Response) { r.Message.ToolCalls = nil }, []string{
			`,"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"\"}"},"extra_content":{"sig":"x"}},{"id":"c2","function":{"name":"time"}},{"id":"c3","type":"custom","custom":{"name":"sql","input":"select 1"}}]`, ``,
			`"tool_calls"}]`, `"stop"}]`}},
		"a call": {answers["text"], func(r *middleware.Response) {
			r.Message.ToolCalls = []middleware.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
		}, []string{
			`"Hello"`, `"Hello","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]`, `"stop"`, `"tool_calls"`}},
		"logprobs": {strings.Replace(answers["text"], `"finish_reason"`, `"logprobs":{"content":[{"token":"Hello"}]},"finish_reason"`, 1),
			func(r *middleware.Response) { r.Message.Parts[0].Text = "T" }, []string{`{"content":[{"token":"Hello"}]}`, `null`, `"Hello"`, `"T"`}},
		"stream, logprobs": {strings.ReplaceAll(streams["text"], `"index":0`, `"index":0,"logprobs":{"content":[{"token":"x"}]}`),
			func(r *middleware.Response) { r.Message.Parts[0].Text = "T" }, []string{`"Hel"`, `"T"`, `"content":"lo"`, ``, `{"content":[{"token":"x"}]}`, `null`}},
		"usage in two events": {sse(`{"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":0}}`,
			`{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":1}}}`,
			`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, "[DONE]"),
			func(r *middleware.Response) { r.Usage.Input = 9 }, []string{`3,"completion_tokens":1`, `9,"completion_tokens":1`}},
		"usage of nothing": {strings.Replace(answers["text"], `"completion_tokens":2,"total_tokens":12`, `"completion_tokens":0,"total_tokens":10`, 1),
			func(r *middleware.Response) { r.Usage = middleware.Usage{} }, []string{`_tokens":10`, `_tokens":0`}},
		"order": {answers["calls"], func(r *middleware.Response) { slices.Reverse(r.Message.ToolCalls[:2]) }, []string{
			`{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"\"}"},"extra_content":{"sig":"x"}},{"id":"c2","function":{"name":"time"}}`,
			`{"id":"c2","function":{"name":"time"}},{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"\"}"},"extra_content":{"sig":"x"}}`}},
		"old form": {answers["old"], func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "1" }, []string{`"{}"`, `"1"`}},
		"an element that looks like the old form": {`{"choices":[{"message":{"role":"assistant","tool_calls":[{"name":"f","arguments":"{}"}]},"finish_reason":"tool_calls"}]}`,
			func(r *middleware.Response) { r.Message.ToolCalls[0].Arguments = "1" }, []string{
				`{"name":"f","arguments":"{}"}`, `{"id":"","type":"function","function":{"name":"","arguments":"1"}}`}},
		"finish": {answers["text"], func(r *middleware.Response) { r.FinishReason = middleware.FinishLength }, []string{`"stop"`, `"length"`}},
		"model":  {answers["text"], func(r *middleware.Response) { r.Model = "x" }, []string{`"m-1"`, `"x"`}},
		"usage": {answers["calls"], func(r *middleware.Response) {
			r.Usage = middleware.Usage{Input: 20, Output: 5, Cached: 6, Reasoning: 1}
		}, []string{
			`"prompt_tokens":10,"completion_tokens":2,"total_tokens":12,"prompt_tokens_details":{"cached_tokens":4}`,
			`"prompt_tokens":20,"completion_tokens":5,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":6},"completion_tokens_details":{"reasoning_tokens":1}`}},
		"no usage": {answers["two"], func(r *middleware.Response) { r.Usage.Input = 7 }, nil},

		"stream arguments": {streams["openai"], arguments, []string{ // the calls from the first changed one on stand in the place of its first delta
			`{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}`,
			`{"id":"c1","type":"function","function":{"name":"weather","arguments":` + mended + `},"index":0},{"id":"c2","type":"function","function":{"name":"time","arguments":"{}"},"index":1}`,
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}],"usage":null}` + "\n\n", "",
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"\"}"}}]},"finish_reason":null}],"usage":null}` + "\n\n", "",
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}]},"finish_reason":null}],"usage":null}` + "\n\n", ""}},
		"stream arguments of the second call": {streams["openai"], func(r *middleware.Response) { r.Message.ToolCalls[1].Arguments = `{"city":"Oslo"}` }, []string{
			`{"index":1,"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}`, `{"id":"c2","type":"function","function":{"name":"time","arguments":` + mended + `},"index":1}`}},
		"stream, one more call": {streams["openai"], func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "c", Name: "f", Arguments: "{}"})
		}, []string{`"name":"time","arguments":"{}"}}`, `"name":"time","arguments":"{}"}},{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"index":2}`}},
		"stream arguments, with more": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"},"extra_content":{"sig":"x"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":" "}}]},"finish_reason":"tool_calls"}]}`), arguments,
			[]string{`{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}`, `{"id":"c","type":"function","function":{"name":"f","arguments":` + mended + `},"extra_content":{"sig":"x"},"index":0}`,
				`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"},"extra_content":{"sig":"x"}}]}}]}` + "\n\n", "",
				`"tool_calls":[{"index":0,"function":{"arguments":" "}}]`, ``}},
		"stream, empty arguments": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]},"finish_reason":"stop"}]}`), arguments,
			[]string{`{"index":0,"id":"c","function":{"name":"f","arguments":""}}`, `{"id":"c","type":"function","function":{"name":"f","arguments":` + mended + `},"index":0}`,
				`"tool_calls":[{"index":0,"function":{"arguments":""}}]`, ``}},
		"stream, no arguments": {streams["openrouter"], arguments, []string{`{"index":0,"id":"c1","type":"function","function":{"name":"weather"}}`,
			`{"id":"c1","type":"function","function":{"name":"weather","arguments":` + mended + `},"index":0}`}},
		"stream, every id": {streams["odd"], func(r *middleware.Response) { r.Message.ToolCalls[0].ID = "x" }, []string{
			`{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"a\":"}}`,
			`{"id":"x","type":"function","function":{"name":"weather","arguments":"{\"a\":1}"},"index":0},{"id":"c2","type":"function","function":{"name":"time","arguments":"{\"b\":2}"},"index":1}`,
			`data: {"id":"","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":null,"arguments":"1}"}}]}}]}` + "\n\n", "",
			`data: {"id":"","choices":[{"delta":{"tool_calls":[{"index":0,"id":"c2","function":{"name":"time","arguments":{"b":2}}}]}}]}` + "\n\n", ""}},
		"stream, no id": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f"}}]},"finish_reason":"stop"}]}`),
			func(r *middleware.Response) { r.Message.ToolCalls[0].ID = "toolmend_1" }, []string{`{"index":0,"function":{"name":"f"}}`,
				`{"type":"function","function":{"name":"f","arguments":""},"id":"toolmend_1","index":0}`}},
		"stream, a name in pieces": {sse(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"get_"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"time"}}]},"finish_reason":"stop"}]}`),
			func(r *middleware.Response) { r.Message.ToolCalls[0].Name = "x" }, []string{`{"index":0,"id":"a","function":{"name":"get_"}}`,
				`{"id":"a","type":"function","function":{"name":"x","arguments":""},"index":0}`,
				`"tool_calls":[{"index":0,"id":"a","function":{"name":"time"}}]`, ``}},
		"stream text": {streams["openai"], func(r *middleware.Response) { r.Message.Parts[0].Text = "T" }, []string{`"Let me "`, `"T"`,
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"see."},"finish_reason":null}],"usage":null}` + "\n\n", ""}},
		"stream, refusal in a list": {sse(`{"choices":[{"delta":{"content":[{"type":"refusal","refusal":"No"}]},"finish_reason":"stop"}]}`), func(r *middleware.Response) { r.Message.Parts[0].Text = "x" },
			[]string{`"refusal":"No"`, `"refusal":"x"`}},
		"stream list text": {streams["mistral"], func(r *middleware.Response) { r.Message.Parts[1].Text = "T" }, []string{
			`[{"type":"thinking","thinking":[{"type":"text","text":"H"}]}]`, `[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}],"closed":true},{"type":"text","text":"T"}]`,
			`data: {"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}],"closed":true}]},"finish_reason":null}]}` + "\n\n", "",
			`data: {"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"On"}]},"finish_reason":null}]}` + "\n\n", "",
			`data: {"id":"a","model":"m-1","choices":[{"index":0,"delta":{"content":"e."},"finish_reason":null}]}` + "\n\n", ""}},
		"stream, told twice": {streams["perplexity"], func(r *middleware.Response) { r.Message.Parts[0].Text = "T" }, []string{
			`"One"`, `"T"`, `,"content":" two"`, ``, `"One two"`, `"T"`}},
		"stream, no reasoning": {streams["openrouter"], func(r *middleware.Response) { r.Message.Parts = nil }, []string{
			`,"reasoning":"H","reasoning_details":[{"type":"reasoning.text","text":"H","index":0}]`, ``,
			`,"reasoning":"m.","reasoning_details":[{"type":"reasoning.text","text":"m.","signature":"s","index":0}]`, ``}},
		"stream, no calls": {streams["openai"], func(r *middleware.Response) { r.Message.ToolCalls = nil }, []string{`"tool_calls"}]`, `"stop"}]`,
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}],"usage":null}` + "\n\n", "",
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":"}}]},"finish_reason":null}],"usage":null}` + "\n\n", "",
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\"\"}"}}]},"finish_reason":null}],"usage":null}` + "\n\n", "",
			`data: {"id":"r1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"time","arguments":"{}"}}]},"finish_reason":null}],"usage":null}` + "\n\n", ""}},
		"stream, a call": {streams["text"], func(r *middleware.Response) {
			r.Message.ToolCalls = []middleware.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
		}, []string{
			`data: {"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"stop"}]}`,
			`data: {"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"},"index":0}]},"finish_reason":null}]}` + "\n\n" +
				`data: {"id":"r1","model":"m-1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":"tool_calls"}]}`}},
		"stream finish":                 {streams["openrouter"], func(r *middleware.Response) { r.FinishReason = middleware.FinishLength }, []string{`"finish_reason":"tool_calls"`, `"finish_reason":"length"`}},
		"stream model":                  {streams["openai"], func(r *middleware.Response) { r.Model = "x" }, []string{`"m-1"`, `"x"`}},
		"stream usage":                  {streams["perplexity"], func(r *middleware.Response) { r.Usage.Output = 7 }, []string{`"completion_tokens":2,"total_tokens":10`, `"completion_tokens":7,"total_tokens":15`}},
		"stream usage, reasoning apart": {streams["odd"], func(r *middleware.Response) { r.Usage.Output = 7 }, []string{`"completion_tokens":1,"total_tokens":12`, `"completion_tokens":4,"total_tokens":15`}},
		"stream, old form": {streams["old"], func(r *middleware.Response) {
			r.Message.ToolCalls[0].Name = "x"
			r.Message.ToolCalls[0].Arguments = "1"
		}, []string{`{"name":"weather","arguments":""}`, `{"name":"x","arguments":"1"}`,
			`data: {"id":"r","choices":[{"index":0,"delta":{"function_call":{"arguments":"{\"city\":\"\"}"}}}]}` + "\n\n", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i := 0; i < len(c.pairs); i += 2 {
				require.Contains(t, c.body, c.pairs[i])
			}
			want := strings.NewReplacer(c.pairs...).Replace(c.body)
			resp := answer(t, c.body)
			c.edit(resp)
			got, err := chat.Format{}.EncodeResponse(resp)
			require.NoError(t, err)
			require.Equal(t, want, string(got))

			stored := answer(t, c.body)
			b, err := json.Marshal(stored)
			require.NoError(t, err)
			stored = nil
			require.NoError(t, json.Unmarshal(b, &stored))
			c.edit(stored)
			got, err = chat.Format{}.EncodeResponse(stored)
			require.NoError(t, err)
			require.Equal(t, want, string(got), "after storage")
		})
	}
}

func TestRefusedEditOfAnswer(t *testing.T) {
	t.Parallel()
	media := middleware.Part{Kind: middleware.PartMedia, URL: "u"}
	for name, c := range map[string]struct {
		body string
		edit func(*middleware.Response)
	}{
		"no native":      {answers["text"], func(r *middleware.Response) { r.Native = nil }},
		"foreign native": {answers["text"], func(r *middleware.Response) { r.Native = &middleware.Native{Dialect: "other"} }},
		"others":         {answers["two"], func(r *middleware.Response) { r.Choices[0].Parts[0].Text = "x" }},
		"others gone":    {streams["two"], func(r *middleware.Response) { r.Choices = nil }},
		"media":          {answers["text"], func(r *middleware.Response) { r.Message.Parts = append(r.Message.Parts, media) }},
		"old form, two": {answers["old"], func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{Name: "x"})
		}},
		"usage apart":           {streams["odd"], func(r *middleware.Response) { r.Usage.Output = 1 }},
		"stream media":          {streams["text"], func(r *middleware.Response) { r.Message.Parts = append(r.Message.Parts, media) }},
		"stream role":           {streams["text"], func(r *middleware.Response) { r.Message.Role = middleware.RoleUser }},
		"stream model":          {streams["custom"], func(r *middleware.Response) { r.Model = "x" }},
		"stream finish":         {streams["odd"], func(r *middleware.Response) { r.FinishReason = middleware.FinishLength }},
		"stream id":             {streams["old"], func(r *middleware.Response) { r.Message.ToolCalls[0].ID = "x" }},
		"stream, a model twice": {strings.Replace(streams["text"], `"model":"m-1",`, `"model":"m-1","model":"m-2",`, 1), func(r *middleware.Response) { r.Model = "x" }},
		"stream, reasoning beside": {strings.Replace(streams["perplexity"], `"message":{`, `"message":{"reasoning":"Hm.",`, 1),
			func(r *middleware.Response) { r.Message.Parts[0].Text = "x" }},
		"stream reasoning": {streams["openrouter"], func(r *middleware.Response) { r.Message.Parts[0].Text = "x" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := answer(t, c.body)
			c.edit(resp)
			_, err := chat.Format{}.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A call and reasoning of another answer keep what their provider wrote.
func TestMovedIntoAnotherAnswer(t *testing.T) {
	t.Parallel()
	from := answer(t, answers["calls"])
	for _, body := range []string{answers["text"], streams["text"]} {
		resp := answer(t, body)
		resp.Message.ToolCalls = from.Message.ToolCalls[:1]
		resp.Message.Parts = append(slices.Clone(resp.Message.Parts), from.Message.Parts[0])
		got, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		again := answer(t, string(got))
		require.Contains(t, string(got), `"extra_content":{"sig":"x"}`)
		require.Equal(t, seen(resp.Message).ToolCalls, seen(again.Message).ToolCalls)
		require.Equal(t, "Hello", again.Message.Text())
		require.Equal(t, "Hm.", again.Message.Parts[0].Text)
	}
}

// A re-ask is one insertion, with ids put in where there were none.
func TestReask(t *testing.T) {
	t.Parallel()
	req := decode(t, requests["plain"])
	resp := answer(t, `{"choices":[{"message":{"role":"assistant","content":null,"vendor":1.0,"tool_calls":[{"function":{"name":"f","arguments":"{"}}]},"finish_reason":"tool_calls"}]}`)
	m := batch.FixIDs(req.Messages, resp.Message)
	turn := batch.Turn(m, nil, []middleware.Verdict{{Call: m.ToolCalls[0], Issues: []middleware.Issue{{Code: "syntax"}}}}, batch.ReissueAll,
		func(middleware.Verdict) string { return "bad" })
	got, err := chat.Format{}.EncodeRequest(req.With(turn...))
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(requests["plain"], `]}`)+
		`,{"role":"assistant","content":null,"vendor":1.0,"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"toolmend_1"}]},`+
		`{"role":"tool","tool_call_id":"toolmend_1","content":"bad"}]}`, string(got))
}
