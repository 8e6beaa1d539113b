package textcall_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/textcall"
)

var formats = map[string]textcall.Format{"react": textcall.ReAct, "json": textcall.JSONAction}

func TestLaws(t *testing.T) {
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			middlewaretest.Run(t, textcall.New(textcall.Options{Format: f}))
		})
		t.Run(name+" raises", func(t *testing.T) {
			middlewaretest.Run(t, textcall.New(textcall.Options{Format: f}))
		})
		t.Run(name+" under argsvalidate", func(t *testing.T) {
			middlewaretest.Run(t, middleware.Chain(argsvalidate.New(argsvalidate.Options{}), textcall.New(textcall.Options{Format: f})))
		})
	}
}

func TestOptionsValidate(t *testing.T) {
	t.Parallel()
	require.NoError(t, textcall.Options{}.Validate())
	require.NoError(t, textcall.Options{Format: textcall.JSONAction, MaxAttempts: 1000}.Validate())
	for want, o := range map[string]textcall.Options{
		"textcall: Format: must be one of the constants, got 2":                                     {Format: 2},
		"textcall: MaxAttempts: must be 0 to 1000, got -1":                                          {MaxAttempts: -1},
		"textcall: MaxAttempts: must be 0 to 1000, got 1001":                                        {MaxAttempts: 1001},
		"textcall: OnExhausted: must be 0, Pass, Raise or DropInvalid of package middleware, got 4": {OnExhausted: 4},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, o.Validate(), want)
			require.PanicsWithError(t, want, func() { textcall.New(o) })
			require.PanicsWithError(t, want, func() { textcall.Model(o, completes("")) })
		})
	}
	require.PanicsWithValue(t, "textcall: New: the model call is nil", func() { textcall.New(textcall.Options{})(nil) })
	require.PanicsWithValue(t, "textcall: Model: complete: must not be nil", func() { textcall.Model(textcall.Options{}, nil) })
}

// TestStack: argsvalidate works over text as over native calls. The model hears
// of bad arguments as of any result.
func TestStack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format    textcall.Format
		bad, good string
		echo      string // the bad call in the second request
		feedback  string // how the reply to it starts
	}{
		"react": {textcall.ReAct,
			"Thought: hm\nAction: calculator\nAction Input: {\"digits\": \"few\"}", "Action: calculator\nAction Input: {\"expression\": \"1\"}",
			"Thought: hm\nAction: calculator\nAction Input: {\"digits\": \"few\"}",
			"Observation: (error) Tool 'calculator' argument validation failed."},
		"json": {textcall.JSONAction,
			`{"action": "calculator", "action_input": {"digits": "few"}}`, `{"action": "calculator", "action_input": {"expression": "1"}}`,
			"```json\n{\"action\": \"calculator\", \"action_input\": {\"digits\": \"few\"}}\n```",
			"Result of calculator:\n(error) Tool 'calculator' argument validation failed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := middlewaretest.NewModel(t, middlewaretest.Text(tc.bad), middlewaretest.Text(tc.good))
			stack := middleware.Chain(
				argsvalidate.New(argsvalidate.Options{}),
				textcall.New(textcall.Options{Format: tc.format}),
			)(model.Call)
			var shown []middleware.Event
			req := request(all...)
			req.Sink = func(e middleware.Event) error { shown = append(shown, e); return nil }
			resp, err := stack(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, middleware.Valid, resp.Report.Status)
			require.Len(t, resp.Message.ToolCalls, 1)
			require.Equal(t, `{"expression": "1"}`, resp.Message.ToolCalls[0].Arguments)
			require.Equal(t, []middleware.Event{{Kind: middleware.EventToolCall, Call: &resp.Message.ToolCalls[0]}}, shown)
			require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, resp.Usage)
			require.Equal(t, tc.bad, resp.Report.Attempts[0].Message.Text(), "the report has what the model wrote")

			again := model.Requests()[1].Messages
			require.Len(t, again, 4)
			require.Equal(t, tc.echo, again[2].Text())
			require.Equal(t, middleware.RoleUser, again[3].Role)
			require.Contains(t, again[3].Text(), tc.feedback)
			require.Contains(t, again[3].Text(), "expression")
		})
	}
}

// TestNamesStayAsWritten: argsvalidate cleans the name of a tool that nobody
// declared, for providers that refuse it. In a text the model finds its own words.
func TestNamesStayAsWritten(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format           textcall.Format
		bad, good        string
		echo, resultLead string
	}{
		"react": {textcall.ReAct, "Action: format the disk!\nAction Input: {}", "Final Answer: no",
			"Action: format the disk!\nAction Input: {}", "Observation: (error) "},
		"json": {textcall.JSONAction, `{"action": "format the disk!", "action_input": {}}`, "no",
			"```json\n{\"action\": \"format the disk!\", \"action_input\": {}}\n```", "Result of format the disk!:\n(error) "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := middlewaretest.NewModel(t, middlewaretest.Text(tc.bad), middlewaretest.Text(tc.good))
			_, err := middleware.Chain(argsvalidate.New(argsvalidate.Options{}), textcall.New(textcall.Options{Format: tc.format}))(model.Call)(t.Context(), request(all...))
			require.NoError(t, err)
			again := model.Requests()[1].Messages
			require.Equal(t, tc.echo, again[2].Text())
			require.True(t, strings.HasPrefix(again[3].Text(), tc.resultLead), again[3].Text())
		})
	}
	// A name that a layer has corrected is the one that counts.
	c := middleware.ToolCall{ID: "a", Name: "search", Arguments: "{}", Native: &middleware.Native{Dialect: "textcall", Raw: "serach"}}
	got := sent(t, textcall.ReAct, request(search).With(middleware.Assistant("", c), middleware.ToolReply(c, "x")))
	require.Equal(t, "Action: search\nAction Input: {}", got.Messages[2].Text())
}

// TestUnreadableUnderArgsvalidate: a text that cannot be read stays marked, in
// whichever attempt it comes, and argsvalidate's OnExhausted holds for it.
func TestUnreadableUnderArgsvalidate(t *testing.T) {
	t.Parallel()
	const bad = `Action: calculator
Action Input: {"digits": "few"}`
	for name, turns := range map[string][]string{"first": {twoActions}, "after an invalid call": {bad, twoActions}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask := func(o argsvalidate.Options) (*middleware.Response, error) {
				var all []middlewaretest.Turn
				for _, text := range turns {
					all = append(all, middlewaretest.Text(text))
				}
				model := middlewaretest.NewModel(t, all...)
				req := request(calculator, search)
				return middleware.Chain(argsvalidate.New(o), textcall.New(textcall.Options{MaxAttempts: 1}))(model.Call)(t.Context(), req)
			}
			resp, err := ask(argsvalidate.Options{OnExhausted: middleware.Pass})
			require.NoError(t, err)
			require.Equal(t, middleware.Invalid, resp.Report.Status)
			require.Equal(t, twoActions, resp.Message.Text())
			require.Len(t, resp.Report.Attempts, len(turns))

			for _, o := range []middleware.OnExhausted{0, middleware.Raise, middleware.DropInvalid} {
				_, err = ask(argsvalidate.Options{OnExhausted: o})
				require.ErrorIs(t, err, argsvalidate.ErrExhausted)
				require.ErrorIs(t, err, argsvalidate.ErrInvalid)
				require.EqualError(t, err, "argsvalidate: attempts exhausted: argsvalidate: the message holds neither a call that can be read nor an answer")
				require.Len(t, middleware.ReportOf(nil, err).Attempts, len(turns))
			}
		})
	}
}

// TestNativeCallsPass: a model that has tools of its own after all is heard.
func TestNativeCallsPass(t *testing.T) {
	t.Parallel()
	want := &middleware.Response{
		Message:      middleware.Assistant("Action: search\nAction: search", call("own_1", "search", `{"query": "x"}`)),
		FinishReason: middleware.FinishToolCalls,
		Native:       &middleware.Native{Dialect: "d", Raw: "{}"},
	}
	model := middlewaretest.NewModel(t, middlewaretest.Reply(want))
	var shown []middleware.Event
	req := request(all...)
	req.Sink = func(e middleware.Event) error { shown = append(shown, e); return nil }
	resp, err := textcall.New(textcall.Options{})(model.Call)(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, want.Message, resp.Message)
	require.Equal(t, want.Native, resp.Native)
	require.Equal(t, []middleware.EventKind{middleware.EventText, middleware.EventToolCall}, kinds(shown))
}

func TestPassesByWithoutTools(t *testing.T) {
	t.Parallel()
	want := &middleware.Response{Message: middleware.Assistant("Final Answer: 42")}
	req := request()
	resp, err := textcall.New(textcall.Options{})(func(_ context.Context, got *middleware.Request) (*middleware.Response, error) {
		require.Same(t, req, got)
		return want, nil
	})(t.Context(), req)
	require.NoError(t, err)
	require.Same(t, want, resp)
}

// TestWholeCalls: a call is cut off unless its end is sure.
func TestWholeCalls(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format textcall.Format
		text   string
		want   middleware.FinishReason
	}{
		"text may go on":          {textcall.ReAct, "Action: search\nAction Input: foo b", middleware.FinishLength},
		"half JSON":               {textcall.ReAct, "Action: search\nAction Input: {\"query\": \"a", middleware.FinishLength},
		"whole JSON":              {textcall.ReAct, "Action: search\nAction Input: {\"query\": \"a\"}", middleware.FinishToolCalls},
		"quotation":               {textcall.ReAct, "Action: search\nAction Input: \"a\"", middleware.FinishToolCalls},
		"ended by an observation": {textcall.ReAct, "Action: search\nAction Input: foo\nObservation: b", middleware.FinishToolCalls},
		"JSON block":              {textcall.JSONAction, `{"action": "search", "action_input": "a"} And th`, middleware.FinishToolCalls},
		"plain text":              {textcall.ReAct, "It is", middleware.FinishLength},
		"answer":                  {textcall.ReAct, "Final Answer: It is", middleware.FinishLength},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := middlewaretest.NewModel(t, middlewaretest.Reply(&middleware.Response{
				Message: middleware.Assistant(tc.text), FinishReason: middleware.FinishLength}))
			resp, err := textcall.New(textcall.Options{Format: tc.format})(model.Call)(t.Context(), request(all...))
			require.NoError(t, err)
			require.Equal(t, tc.want, resp.FinishReason)
		})
	}
}

// TestRewrittenResponse: what is not text stays, and no form of the provider's
// own contradicts the message.
func TestRewrittenResponse(t *testing.T) {
	t.Parallel()
	native := &middleware.Native{Dialect: "d", Raw: "{}"}
	sent := &middleware.Response{
		Message: middleware.Message{Role: middleware.RoleAssistant, Native: native, Parts: []middleware.Part{
			{Kind: middleware.PartReasoning, Text: "hm", Native: native},
			{Text: "Thought: a\nAction: search\n", Native: native}, {Text: "Action Input: b"},
		}},
		Native: native, Model: "m",
	}
	model := middlewaretest.NewModel(t, middlewaretest.Reply(sent))
	resp, err := textcall.New(textcall.Options{})(model.Call)(t.Context(), request(all...))
	require.NoError(t, err)
	require.Nil(t, resp.Native)
	require.Equal(t, middleware.Message{
		Role:      middleware.RoleAssistant,
		Parts:     []middleware.Part{{Kind: middleware.PartReasoning, Text: "hm", Native: native}, {Text: "a"}},
		ToolCalls: []middleware.ToolCall{call("textcall_1", "search", `{"query": "b"}`)},
	}, resp.Message)
	require.Equal(t, sent.Message, resp.Report.Attempts[0].Message)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		history []middleware.ToolCall
		want    string
	}{
		"first": {nil, "textcall_1"},
		"third": {[]middleware.ToolCall{call("a", "search", "{}"), call("b", "search", "{}")}, "textcall_3"},
		"taken": {[]middleware.ToolCall{call("textcall_2", "search", "{}")}, "textcall_2_2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(all...)
			for _, c := range tc.history {
				req = req.With(middleware.Assistant("", c), middleware.ToolReply(c, "ok"))
			}
			resp, err := textcall.New(textcall.Options{})(modelWriting("Action: now"))(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, tc.want, resp.Message.ToolCalls[0].ID)
		})
	}
}
