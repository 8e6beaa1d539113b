package textcall_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/textcall"
)

const twoActions = "Action: search\nAction Input: a\nAction: search\nAction Input: b"

func kinds(events []middleware.Event) []middleware.EventKind {
	var out []middleware.EventKind
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

// TestFaultsGoBack: the model is told what is wrong, sees the form, and its
// hidden attempts are counted and recorded.
func TestFaultsGoBack(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format    textcall.Format
		bad, good string
		contains  []string
	}{
		"react": {textcall.ReAct, twoActions, "Action: search\nAction Input: a",
			[]string{"Your last message could not be used: it has 2 Actions; write one, and wait for its Observation. Nothing was executed.",
				"Names of the tools: search, calculator, now, free\n", "Final Answer: "}},
		"json": {textcall.JSONAction, "```json\nsearch for a\n```", `{"action": "search", "action_input": "a"}`,
			[]string{"could not be used: its code block holds words", "Names of the tools: search, calculator, now, free\n", "```json\n{\"action\": "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := middlewaretest.NewModel(t, middlewaretest.Text(tc.bad), middlewaretest.Text(""), middlewaretest.Text(tc.good))
			resp, err := textcall.New(textcall.Options{Format: tc.format})(model.Call)(t.Context(), request(all...))
			require.NoError(t, err)
			require.Len(t, resp.Message.ToolCalls, 1)
			require.Equal(t, middleware.Usage{InputTokens: 30, OutputTokens: 15}, resp.Usage)
			require.Empty(t, resp.Report.Notes)
			require.Len(t, resp.Report.Attempts, 3)
			require.Equal(t, 2, resp.Report.Final)

			last := model.Requests()[2].Messages
			require.Len(t, last, 6)
			require.Equal(t, middleware.Assistant(tc.bad), last[2])
			require.Equal(t, []middleware.Message{last[3]}, resp.Report.Attempts[0].Replies)
			for _, s := range tc.contains {
				require.Contains(t, last[3].Text(), s)
			}
			require.Equal(t, "(empty)", last[4].Text())
			require.Contains(t, last[5].Text(), "it is empty")
		})
	}
}

func TestAttempts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		attempts, asked int
	}{
		"default": {0, 3},
		"one":     {1, 1},
		"five":    {5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns := make([]middlewaretest.Turn, tc.asked)
			for i := range turns {
				turns[i] = middlewaretest.Text(fmt.Sprint(twoActions, i))
			}
			last := fmt.Sprint(twoActions, tc.asked-1)
			model := middlewaretest.NewModel(t, turns...)
			resp, err := textcall.New(textcall.Options{MaxAttempts: tc.attempts, OnExhausted: middleware.Pass})(model.Call)(t.Context(), request(all...))
			require.NoError(t, err)
			require.Equal(t, last, resp.Message.Text())
			require.Equal(t, middleware.Invalid, resp.Report.Status)
			require.Len(t, resp.Report.Notes, 1)
			require.Contains(t, resp.Report.Notes[0], fmt.Sprintf("textcall: marked invalid after attempt %d: it has 2 Actions", tc.asked))
			require.Len(t, resp.Report.Attempts, tc.asked)
			require.Equal(t, tc.asked-1, resp.Report.Final)

			model = middlewaretest.NewModel(t, turns...)
			resp, err = textcall.New(textcall.Options{MaxAttempts: tc.attempts})(model.Call)(t.Context(), request(all...))
			require.Nil(t, resp)
			require.ErrorIs(t, err, textcall.ErrExhausted)
			require.NotErrorIs(t, err, textcall.ErrRepeated)
			require.EqualError(t, err, fmt.Sprintf("textcall: attempts exhausted after %d: the last text could not be used: it has 2 Actions; write one, and wait for its Observation", tc.asked))
			var e *textcall.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, last, e.Response.Message.Text())
			require.Contains(t, e.Replies[0].Text(), "Your last message could not be used: it has 2 Actions")
			require.Equal(t, "invalid_tool_call", e.ErrorType())
			require.Contains(t, e.ClientMessage(), fmt.Sprintf("in %d attempts", tc.asked))
			require.Len(t, middleware.ReportOf(nil, err).Attempts, tc.asked)
		})
	}
}

// TestRepetition: the same text three times in a row ends the step, whatever
// its white space, and so does one that ended an earlier step of the run.
func TestRepetition(t *testing.T) {
	t.Parallel()
	same := []middlewaretest.Turn{middlewaretest.Text(twoActions), middlewaretest.Text(" " + strings.ReplaceAll(twoActions, "\n", "\n\n")), middlewaretest.Text(twoActions + "\n")}
	model := middlewaretest.NewModel(t, same...)
	resp, err := textcall.New(textcall.Options{MaxAttempts: 9, OnExhausted: middleware.Pass})(model.Call)(t.Context(), request(all...))
	require.NoError(t, err)
	require.Equal(t, middleware.Invalid, resp.Report.Status)
	require.Len(t, resp.Report.Notes, 1)
	require.Contains(t, resp.Report.Notes[0], "after attempt 3, because the model repeated itself: it has 2 Actions")

	model = middlewaretest.NewModel(t, same...)
	_, err = textcall.New(textcall.Options{MaxAttempts: 9})(model.Call)(t.Context(), request(all...))
	require.ErrorIs(t, err, textcall.ErrExhausted)
	require.ErrorIs(t, err, textcall.ErrRepeated)
	require.ErrorContains(t, err, "Observation: textcall: the same text again")

	inLoop, _ := loopstate.With(t.Context(), slices.Repeat([]string{loopstate.Text(twoActions)}, 3))
	for text, asked := range map[string]int{twoActions: 1, "Thought: other": 3} {
		n := 0
		resp, err := textcall.New(textcall.Options{OnExhausted: middleware.Pass})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			n++
			return &middleware.Response{Message: middleware.Assistant(text)}, nil
		})(inLoop, request(all...))
		require.NoError(t, err)
		require.Equal(t, asked, n, text)
		require.Equal(t, middleware.Invalid, resp.Report.Status)
	}
}

// TestDemand: a tool that must be used is asked for again; in the end, a text without
// a call is marked.
func TestDemand(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		format                    textcall.Format
		only, bad, good, contains string
		text                      string
		calls                     int
	}{
		"an answer":    {textcall.ReAct, "", "Thought: x\nFinal Answer: 42", "Action: now", "it uses no tool", "42", 0},
		"plain text":   {textcall.ReAct, "now", "42", "Action: now", "it uses no tool", "42", 0},
		"another tool": {textcall.ReAct, "now", "Action: search\nAction Input: a", "Action: now", "it uses another tool than now", "", 1},
		"json":         {textcall.JSONAction, "", "42", `{"action": "now"}`, "it uses no tool", "42", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request(all...)
			req.ToolChoice.Mode, req.ToolChoice.Name = middleware.ToolRequired, tc.only
			model := middlewaretest.NewModel(t, middlewaretest.Text(tc.bad), middlewaretest.Text(tc.good))
			resp, err := textcall.New(textcall.Options{Format: tc.format})(model.Call)(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, "now", resp.Message.ToolCalls[0].Name)
			reply := model.Requests()[1].Messages[3].Text()
			require.Contains(t, reply, tc.contains)
			require.NotContains(t, reply, "f you know the")

			resp, err = textcall.New(textcall.Options{Format: tc.format, MaxAttempts: 1, OnExhausted: middleware.Pass})(modelWriting(tc.bad))(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, tc.text, resp.Message.Text())
			require.Len(t, resp.Message.ToolCalls, tc.calls)
			require.Len(t, resp.Report.Notes, 1)
			status := middleware.Invalid
			if tc.calls > 0 {
				status = middleware.Unchecked
			}
			require.Equal(t, status, resp.Report.Status)

			_, err = textcall.New(textcall.Options{Format: tc.format, MaxAttempts: 1})(modelWriting(tc.bad))(t.Context(), req)
			require.ErrorIs(t, err, textcall.ErrExhausted)
		})
	}
}

func TestFinishReasons(t *testing.T) {
	t.Parallel()
	cut := middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("Thought: so"), FinishReason: middleware.FinishLength})
	model := middlewaretest.NewModel(t, cut, middlewaretest.Text("Final Answer: 42"))
	_, err := textcall.New(textcall.Options{})(model.Call)(t.Context(), request(all...))
	require.NoError(t, err)
	require.Contains(t, model.Requests()[1].Messages[3].Text(), "reached the length limit")

	model = middlewaretest.NewModel(t, middlewaretest.Reply(&middleware.Response{FinishReason: middleware.FinishFilter}))
	resp, err := textcall.New(textcall.Options{})(model.Call)(t.Context(), request(all...))
	require.NoError(t, err)
	require.Equal(t, middleware.FinishFilter, resp.FinishReason)
	require.Empty(t, resp.Report.Notes)
}

// TestSink: text is shown when it is known to be the answer; reasoning flows,
// and is void when the model is asked again.
func TestSink(t *testing.T) {
	t.Parallel()
	type events = []middleware.Event
	text := func(s string) middleware.Event { return middleware.Event{Kind: middleware.EventText, Text: s} }
	hm := middleware.Event{Kind: middleware.EventReasoning, Text: "hm"}
	void := middleware.Event{Kind: middleware.EventReset}
	for name, tc := range map[string]struct {
		attempts []events
		want     events
	}{
		"plain answer":       {[]events{{text("It "), text("is 42.")}}, events{text("It "), text("is 42.")}},
		"final answer":       {[]events{{hm, text("Final "), text("Answer: 42")}}, events{hm, text("42")}},
		"call":               {[]events{{text("Action: "), text("now")}}, nil},
		"asked again":        {[]events{{hm, text("Thought: a")}, {text("Final Answer: 42")}}, events{hm, void, text("42")}},
		"nothing shown":      {[]events{{text("Thought: a")}, {text("Final Answer: 42")}}, events{text("42")}},
		"retried below":      {[]events{{text("half"), void, text("whole")}}, events{void, text("whole")}},
		"given up":           {[]events{{text("Thought: a")}, {text("Thought: b")}, {text("Thought: c")}}, nil},
		"nothing but silent": {[]events{{text("Final Answer: 42")}}, events{text("42")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := 0
			model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
				all := ""
				for _, e := range tc.attempts[n] {
					require.NoError(t, req.Sink(e))
					switch e.Kind {
					case middleware.EventText:
						all += e.Text
					case middleware.EventReset:
						all = ""
					}
				}
				n++
				return &middleware.Response{Message: middleware.Assistant(all)}, nil
			}
			var shown events
			req := request(all...)
			req.Sink = func(e middleware.Event) error { shown = append(shown, e); return nil }
			_, err := textcall.New(textcall.Options{OnExhausted: middleware.Pass})(model)(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, tc.want, shown)
			require.Equal(t, len(tc.attempts), n)
		})
	}
}

func TestSinkFails(t *testing.T) {
	t.Parallel()
	gone := errors.New("gone")
	for _, text := range []string{"It is 42.", "Final Answer: 42"} {
		req := request(all...)
		req.Sink = func(middleware.Event) error { return gone }
		model := middlewaretest.NewModel(t, middlewaretest.Text(text))
		resp, err := textcall.New(textcall.Options{})(model.Call)(t.Context(), req)
		require.ErrorIs(t, err, gone)
		require.Nil(t, resp)
		require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, middleware.ReportOf(nil, err).Usage())
	}
}

func TestContextEnds(t *testing.T) {
	t.Parallel()
	why := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	asked := 0
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		asked++
		cancel(why)
		return &middleware.Response{Message: middleware.Assistant(twoActions), Usage: middleware.Usage{InputTokens: 1}}, nil
	}
	_, err := textcall.New(textcall.Options{})(model)(ctx, request(all...))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	require.ErrorContains(t, err, "textcall: ended before attempt 2")
	require.Equal(t, 1, asked)
	require.Equal(t, middleware.Usage{InputTokens: 1}, middleware.ReportOf(nil, err).Usage())
}
