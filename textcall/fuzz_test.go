package textcall_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

// echo has the call c in its history, and a model that repeats the text which
// textcall made of it: what is written has to be read back.
func echo(t require.TestingT, f textcall.Format, c middleware.ToolCall, before string) middleware.Message {
	req := request(all...).With(middleware.Assistant(before, c), middleware.ToolReply(c, "ok"))
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(req.Messages[len(req.Messages)-2].Text())}, nil
	}
	resp, err := textcall.New(textcall.Options{Format: f, MaxAttempts: 1})(model)(context.Background(), req)
	require.NoError(t, err)
	require.Len(t, resp.Message.ToolCalls, 1, "notes: %v", resp.Report.Notes)
	return resp.Message
}

// TestWrittenIsReadBack: the model finds its calls in the history as it wrote
// them, whatever stands in the arguments.
func TestWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom([]string{"Action: x", "Action Input: y", "\nObservation:", "\nFinal Answer: z", "```", "```json\n", "\n", "\u2028", "\r\n",
		`"`, `\`, "'", "{", "}", "[", "**", "<think>", "</think>", " ", "a", "None", "null", "0", "å", `{"action": "now"}`})
	text := rapid.Map(rapid.SliceOfN(words, 0, 8), func(w []string) string { return strings.Join(w, "") })
	object := rapid.Map(rapid.MapOf(text, rapid.OneOf(text.AsAny(), rapid.Float64().AsAny(), rapid.SliceOfN(text, 0, 2).AsAny())), func(m map[string]any) string {
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return strings.ReplaceAll(string(b), `\u2028`, "\u2028") // as legal inside a string as its escape
	})
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				c := middleware.ToolCall{ID: "c1", Name: rapid.SampledFrom([]string{"search", "calculator", "free", "find"}).Draw(t, "name")}
				c.Arguments = object.Draw(t, "object")
				if (c.Name == "free" || c.Name == "find") && rapid.Bool().Draw(t, "any text") {
					c.Arguments = text.Filter(func(s string) bool { return strings.TrimSpace(s) == s && s != "" }).Draw(t, "text")
				}
				got := echo(t, f, c, rapid.SampledFrom([]string{"", "Let me see."}).Draw(t, "before"))
				require.Equal(t, c.Name, got.ToolCalls[0].Name)
				require.Equal(t, c.Arguments, got.ToolCalls[0].Arguments)
			})
		})
	}
}

func FuzzReAct(f *testing.F) {
	for _, s := range []string{twoActions, "Thought: a\nAction: search\nAction Input: ```json\n{\"query\": \"x\"}\n```", "**Final Answer:** 42",
		"Action: free Action Input: 'x'\nObservation: y", "Action：now", "<think>x</think>Action: now\n```", "Question: a\r\nAction Input:"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, textcall.ReAct, text) })
}

func FuzzJSONAction(f *testing.F) {
	for _, s := range []string{`{"action": "search", "action_input": "x"}`, "```json\n{\"tool\": \"now\"}\n```", `[{"name": "free", "arguments": 0}]`,
		"Action:\n```\n{\"action\": \"free\", \"action_input\": \"{}\"}", `{"action": "Final Answer", "action_input": null}`, `{"action":"'","action_input":""}`, "```json\nsearch\n```", "{{{\"\\"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzz(t, textcall.JSONAction, text) })
}

// fuzz: a text is a call, an answer, or passed on with a note; and a call that
// was read is read again.
func fuzz(t *testing.T, f textcall.Format, text string) {
	resp := read(t, f, text)
	m := resp.Message
	require.LessOrEqual(t, len(m.ToolCalls), 1)
	require.LessOrEqual(t, len(resp.Report.Notes), 1)
	if len(resp.Report.Notes) == 1 {
		require.Equal(t, text, m.Text())
		require.Empty(t, m.ToolCalls)
	}
	if len(m.ToolCalls) == 0 {
		return
	}
	c := m.ToolCalls[0]
	require.NotEmpty(t, c.ID)
	require.NotEmpty(t, c.Name)
	if _, known := map[string]bool{"search": true, "calculator": true, "now": true, "free": true}[c.Name]; !known ||
		!utf8.ValidString(c.Arguments) || !json.Valid([]byte(c.Arguments)) || !strings.HasPrefix(c.Arguments, "{") {
		return
	}
	again := echo(t, f, middleware.ToolCall{ID: "c1", Name: c.Name, Arguments: c.Arguments}, "")
	require.Equal(t, c.Arguments, again.ToolCalls[0].Arguments)
}

// hostile is what texts are filled with.
var hostile = map[string]string{
	"braces": "{", "quoted braces": `{"`, "closed braces": "{}", "closers": "}", "broken objects": `{"action_input":}`, "fences": "```\n", "open fences": "```json\n{\n",
	"actions": "Action: a\n", "inline": " action", "inline gaps": " action  \t", "inputs": "Action Input: a\n", "answers": "Final Answer: a\n", "observations": "\nObservation:",
	"emphasis": "**", "emphasised": "**Action:**", "spaces": " ", "newlines": "\n", "breaks": "\u2028", "quotes": `"`, "thinking": "<think>", "brackets": "[",
	"backslashes": `\`, "digits": "Action 1", "questions": "Question: a\n", "not UTF-8": "\xff", "words": "tool_input ",
}

// TestLinear: no text takes long. Anything worse than linear would take
// minutes; BenchmarkRead has the figures for a megabyte.
func TestLinear(t *testing.T) {
	t.Parallel()
	const size = 1 << 17
	for name, unit := range hostile {
		t.Run(name, func(t *testing.T) {
			many := strings.Repeat(unit, size/len(unit))
			start := time.Now()
			for _, f := range formats {
				for _, text := range []string{many, "Action: " + many, "Action: search\nAction Input: " + many, "Final Answer: " + many,
					"Action: search\nAction Input: ```\n" + many, `{"action": "search", "action_input": ` + many} {
					read(t, f, text)
				}
				c := call("c1", "search", many)
				_, err := textcall.New(textcall.Options{Format: f})(modelWriting("Final Answer: x"))(t.Context(),
					request(all...).With(middleware.Assistant(many, c), middleware.ToolReply(c, many)))
				require.NoError(t, err)
			}
			require.Less(t, time.Since(start), time.Minute)
		})
	}
}

// BenchmarkRead reads a megabyte of what a hostile model may repeat.
func BenchmarkRead(b *testing.B) {
	const size = 1 << 20
	for name, unit := range hostile {
		text := strings.Repeat(unit, size/len(unit))
		for format, f := range formats {
			b.Run(name+" "+format, func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(size)
				for b.Loop() {
					read(b, f, text)
				}
			})
		}
	}
}
