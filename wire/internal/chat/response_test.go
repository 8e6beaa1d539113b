package chat_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/test/casefile"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/chat"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

func decodeResponse(t testing.TB, body string) *middleware.Response {
	t.Helper()
	resp, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(body))
	require.NoError(t, err)
	return resp
}

// throughJSON returns v as a program reads it back that keeps conversations.
func throughJSON[T any](t testing.TB, v *T) *T {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	read := new(T)
	require.NoError(t, json.Unmarshal(b, read))
	return read
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
		"text": {answers["text"], middleware.Assistant("Hello"), middleware.FinishStop, middleware.Usage{InputTokens: 10, OutputTokens: 2}},
		"calls": {answers["calls"], middleware.Message{Parts: []middleware.Part{reasoning("Hm."), {Text: "Let me see."}}, ToolCalls: []middleware.ToolCall{
			weather, {ID: "c2", Name: "time"}, {ID: "c3", Name: "sql", Arguments: "select 1", Kind: middleware.KindCustom}}},
			middleware.FinishToolCalls, middleware.Usage{InputTokens: 10, OutputTokens: 2, Cached: 4}},
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

		"stream":            {streams["openai"], middleware.Assistant("Let me see.", weather, middleware.ToolCall{ID: "c2", Name: "time", Arguments: "{}"}), middleware.FinishToolCalls, middleware.Usage{InputTokens: 10, OutputTokens: 2}},
		"stream openrouter": {streams["openrouter"], middleware.Message{Parts: []middleware.Part{reasoning("Hm.")}, ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "weather"}}}, middleware.FinishToolCalls, middleware.Usage{InputTokens: 5, OutputTokens: 3}},
		"stream mistral":    {streams["mistral"], middleware.Message{Parts: []middleware.Part{reasoning("Hm."), {Text: "One."}}, ToolCalls: []middleware.ToolCall{{ID: "c1", Name: "weather", Arguments: `{"city": ""}`}}}, middleware.FinishToolCalls, middleware.Usage{InputTokens: 10, OutputTokens: 2}},
		"stream perplexity": {streams["perplexity"], middleware.Assistant("One two"), middleware.FinishStop, middleware.Usage{InputTokens: 8, OutputTokens: 2}},
		"stream odd": {streams["odd"], middleware.Assistant("", middleware.ToolCall{ID: "c1", Name: "weather", Arguments: `{"a":1}`}, middleware.ToolCall{ID: "c2", Name: "time", Arguments: `{"b":2}`}),
			middleware.FinishToolCalls, middleware.Usage{InputTokens: 8, OutputTokens: 4, Reasoning: 3}},
		"stream old":            {streams["old"], middleware.Assistant("", middleware.ToolCall{ID: "toolmend_1", Name: "weather", Arguments: `{"city":""}`}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream custom":         {streams["custom"], middleware.Assistant("late", middleware.ToolCall{ID: "c1", Name: "sql", Arguments: "select", Kind: middleware.KindCustom}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream of one message": {eventStream(`{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"weird"}]}`), middleware.Assistant("x"), "weird", middleware.Usage{}},
		"stream, calls out of order": {eventStream(`{"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}},{"index":0,"id":"a","function":{"name":"f"}}]},"finish_reason":"stop"}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f"}, middleware.ToolCall{ID: "b", Name: "g"}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream, calls without index": {eventStream(`{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"}"}},{"id":"b","function":{"name":"g"}}]},"finish_reason":"stop"}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"id":"b","function":{"arguments":"{}"}}]}}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "f", Arguments: "{}"}, middleware.ToolCall{ID: "b", Name: "g", Arguments: "{}"}), middleware.FinishToolCalls, middleware.Usage{}},
		"stream, a name in pieces": {eventStream(`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"get_"}}]}}]}`,
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"time"}}]},"finish_reason":"stop"}]}`),
			middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "get_time"}), middleware.FinishToolCalls, middleware.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, c.body)
			c.want.Role = middleware.RoleAssistant
			require.Equal(t, withoutNative(c.want), withoutNative(resp.Message))
			require.Equal(t, c.finish, resp.FinishReason)
			require.Equal(t, c.usage, resp.Usage)
		})
	}
	two := decodeResponse(t, answers["two"])
	require.Equal(t, "B", two.Choices[0].Text())
	require.Equal(t, "B", decodeResponse(t, streams["two"]).Choices[0].Text())
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
		"mistral": {streams["mistral"], `{"role":"assistant","content":[{"type":"thinking","closed":true,"thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"One."}],` +
			`"tool_calls":[{"id":"c1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"\"}"}}]}`},
		"custom": {streams["custom"], `{"role":"assistant","content":"late","annotations":[{"a":1}],"channel":"x","tool_calls":[{"id":"c1","type":"custom","custom":{"name":"sql","input":"select"}}]}`},
		"what is not known": {eventStream(`{"choices":[{"delta":{"sig":"s","label":"a","list":[1],"meta":{"a":1},"tool_calls":[{"index":0,"id":"c","function":{"name":"f","thought":"t"},"extra_content":{"x":1}}]}}]}`,
			`{"choices":[{"delta":{"label":"b","list":[2],"meta":{"b":2},"audio":{"id":"a1","data":"AA"}},"finish_reason":"stop"}]}`),
			`{"role":"assistant","content":null,"audio":{"id":"a1"},"sig":"s","list":[1,2],"meta":{"b":2},` +
				`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"","thought":"t"},"extra_content":{"x":1}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, decodeResponse(t, c.body).Message.Native.Raw)
		})
	}
}

// Each edit changes what it has to, in every place that holds a copy, and nothing
// else: see the files of testdata/TestEditResponse. After storage it is the same.
func TestEditResponse(t *testing.T) {
	t.Parallel()
	type resp = *middleware.Response
	firstArguments := func(r resp) { r.Message.ToolCalls[0].Arguments = `{"city":"Oslo"}` }
	firstText := func(r resp) { r.Message.Parts[0].Text = "T" }
	secondText := func(r resp) { r.Message.Parts[1].Text = "T" }
	noCalls := func(r resp) { r.Message.ToolCalls = nil }
	oneCall := func(r resp) { r.Message.ToolCalls = []middleware.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}} }
	length := func(r resp) { r.FinishReason = middleware.FinishLength }
	model := func(r resp) { r.Model = "x" }
	outputTokens := func(r resp) { r.Usage.OutputTokens = 7 }
	edits := map[string]func(resp){
		"nothing":             func(resp) {},
		"arguments":           firstArguments,
		"arguments added":     func(r resp) { r.Message.ToolCalls[1].Arguments = "{}" },
		"an object":           func(r resp) { r.Message.ToolCalls[0].Arguments = `{"b": 2}` },
		"an object no more":   func(r resp) { r.Message.ToolCalls[0].Arguments = `{` },
		"free text":           func(r resp) { r.Message.ToolCalls[2].Arguments = "x" },
		"text":                secondText,
		"no calls":            noCalls,
		"a call":              oneCall,
		"logprobs":            firstText,
		"stream, logprobs":    firstText,
		"usage in two events": func(r resp) { r.Usage.InputTokens = 9 },
		"usage of nothing":    func(r resp) { r.Usage = middleware.Usage{} },
		"order":               func(r resp) { slices.Reverse(r.Message.ToolCalls[:2]) },
		"old form":            func(r resp) { r.Message.ToolCalls[0].Arguments = "1" },
		"an element that looks like the old form": func(r resp) { r.Message.ToolCalls[0].Arguments = "1" },
		"finish":   length,
		"model":    model,
		"usage":    func(r resp) { r.Usage = middleware.Usage{InputTokens: 20, OutputTokens: 5, Cached: 6, Reasoning: 1} },
		"no usage": func(r resp) { r.Usage.InputTokens = 7 },

		// the calls from the first changed one on replace its first delta
		"stream arguments":                    firstArguments,
		"stream arguments of the second call": func(r resp) { r.Message.ToolCalls[1].Arguments = `{"city":"Oslo"}` },
		"stream, one more call": func(r resp) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{ID: "c", Name: "f", Arguments: "{}"})
		},
		"stream arguments, with more":   firstArguments,
		"stream, empty arguments":       firstArguments,
		"stream, no arguments":          firstArguments,
		"stream, every id":              func(r resp) { r.Message.ToolCalls[0].ID = "x" },
		"stream, no id":                 func(r resp) { r.Message.ToolCalls[0].ID = "toolmend_1" },
		"stream, a name in pieces":      func(r resp) { r.Message.ToolCalls[0].Name = "x" },
		"stream text":                   firstText,
		"stream, refusal in a list":     func(r resp) { r.Message.Parts[0].Text = "x" },
		"stream list text":              secondText,
		"stream, told twice":            firstText,
		"stream, no reasoning":          func(r resp) { r.Message.Parts = nil },
		"stream, no calls":              noCalls,
		"stream, a call":                oneCall,
		"stream finish":                 length,
		"stream model":                  model,
		"stream usage":                  outputTokens,
		"stream usage, reasoning apart": outputTokens,
		"stream, old form":              func(r resp) { r.Message.ToolCalls[0].Name, r.Message.ToolCalls[0].Arguments = "x", "1" },
	}
	casefile.OneForEach(t, maps.Keys(edits))
	for name, edit := range edits {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, casefile.Body(t, "before"))
			stored := throughJSON(t, resp)
			edit(resp)
			got, err := chat.Format{}.EncodeResponse(resp)
			require.NoError(t, err)
			casefile.Expect(t, "after", string(got))

			edit(stored)
			again, err := chat.Format{}.EncodeResponse(stored)
			require.NoError(t, err)
			require.Equal(t, string(got), string(again), "after storage")
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
		"others gone":    {streams["two"], func(r *middleware.Response) { r.Choices = nil }},
		"media":          {answers["text"], func(r *middleware.Response) { r.Message.Parts = append(r.Message.Parts, media) }},
		"old form, two": {answers["old"], func(r *middleware.Response) {
			r.Message.ToolCalls = append(r.Message.ToolCalls, middleware.ToolCall{Name: "x"})
		}},
		"usage apart":      {streams["odd"], func(r *middleware.Response) { r.Usage.OutputTokens = 1 }},
		"stream media":     {streams["text"], func(r *middleware.Response) { r.Message.Parts = append(r.Message.Parts, media) }},
		"stream role":      {streams["text"], func(r *middleware.Response) { r.Message.Role = middleware.RoleUser }},
		"stream id":        {streams["old"], func(r *middleware.Response) { r.Message.ToolCalls[0].ID = "x" }},
		"stream reasoning": {streams["openrouter"], func(r *middleware.Response) { r.Message.Parts[0].Text = "x" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := decodeResponse(t, c.body)
			c.edit(resp)
			_, err := chat.Format{}.EncodeResponse(resp)
			require.ErrorIs(t, err, codec.ErrUnencodable)
		})
	}
}

// A further choice is edited as the first one is, and keeps its own finish reason.
func TestEditOfAFurtherChoice(t *testing.T) {
	t.Parallel()
	for _, body := range []string{answers["two"], streams["two"]} {
		resp := decodeResponse(t, body)
		resp.Choices[0].Parts[0].Text = "x"
		out, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		again := decodeResponse(t, string(out))
		require.Equal(t, "x", again.Choices[0].Text())
		require.Equal(t, resp.Message.Text(), again.Message.Text())
		require.Equal(t, resp.FinishReason, again.FinishReason)
	}
}

// A call and reasoning of another answer keep what their provider wrote.
func TestMovedIntoAnotherAnswer(t *testing.T) {
	t.Parallel()
	from := decodeResponse(t, answers["calls"])
	for _, body := range []string{answers["text"], streams["text"]} {
		resp := decodeResponse(t, body)
		resp.Message.ToolCalls = from.Message.ToolCalls[:1]
		resp.Message.Parts = append(slices.Clone(resp.Message.Parts), from.Message.Parts[0])
		got, err := chat.Format{}.EncodeResponse(resp)
		require.NoError(t, err)
		again := decodeResponse(t, string(got))
		require.Contains(t, string(got), `"extra_content":{"sig":"x"}`)
		require.Equal(t, withoutNative(resp.Message).ToolCalls, withoutNative(again.Message).ToolCalls)
		require.Equal(t, "Hello", again.Message.Text())
		require.Equal(t, "Hm.", again.Message.Parts[0].Text)
	}
}

// A re-ask is one insertion, with ids put in where there were none.
func TestReask(t *testing.T) {
	t.Parallel()
	req := decodeRequest(t, requests["plain"])
	resp := decodeResponse(t, `{"choices":[{"message":{"role":"assistant","content":null,"vendor":1.0,"tool_calls":[{"function":{"name":"f","arguments":"{"}}]},"finish_reason":"tool_calls"}]}`)
	m := history.FixIDs(req.Messages, resp.Message)
	turn := batch.Turn(m, nil, []middleware.Verdict{{Call: m.ToolCalls[0], Issues: []middleware.Issue{{Code: "syntax"}}}}, batch.ReissueAll,
		func(middleware.Verdict) string { return "bad" })
	got, err := chat.Format{}.EncodeRequest(req.With(turn...))
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(requests["plain"], `]}`)+
		`,{"role":"assistant","content":null,"vendor":1.0,"tool_calls":[{"function":{"name":"f","arguments":"{}"},"id":"toolmend_1"}]},`+
		`{"role":"tool","tool_call_id":"toolmend_1","content":"bad"}]}`, string(got))
}

// Of two choices with one index some clients read the first, and some the last.
func TestChoicesOfOneIndex(t *testing.T) {
	t.Parallel()
	choice := func(content, arguments string) string {
		return `{"index":0,"message":{"role":"assistant",` + content + `,"tool_calls":[{"id":"c","type":"function","function":{"name":"pay","arguments":"` + arguments + `"}}]},"finish_reason":"tool_calls"}`
	}
	for _, last := range []string{`"content":"a"`, `"content":"a","content":"a"`, `"content": "a"`} {
		_, err := codec.Decode(chat.Format{}.NewStream(nil, nil), []byte(`{"choices":[`+choice(`"content":"a"`, "first")+","+choice(last, "last")+`]}`))
		require.ErrorIs(t, err, codec.ErrShape)
	}
}
