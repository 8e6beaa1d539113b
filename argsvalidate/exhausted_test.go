package argsvalidate_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// mixed is a batch with a valid call that strip changes and an invalid one that
// it would change.
var mixed = answer(call("1", "note", `{"text": "a", "tags": []}`), call("2", "weather", `{"days": null, "city": 5}`))

func TestPass(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, request(), mixed)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.resp.Report.Status)
	require.Equal(t, []string{`{"text": "a"}`, `{"days": null, "city": 5}`}, out.arguments(), "the valid call written back, the other as sent")
	verdicts := out.report.Attempts[0].Verdicts
	require.True(t, verdicts[0].OK())
	require.False(t, verdicts[1].OK())
	require.Equal(t, `{"days": null, "city": 5}`, verdicts[1].Call.Arguments)
	require.Empty(t, verdicts[1].Changes)
}

func TestRaise(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{MaxAttempts: 2}, request(), mixed, mixed)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.ErrorIs(t, out.err, argsvalidate.ErrInvalid)
	require.NotErrorIs(t, out.err, argsvalidate.ErrRule)
	require.EqualError(t, out.err, "argsvalidate: attempts exhausted: arguments still invalid after 2 attempts; weather: type")
	e := failure(t, out.err)
	require.Equal(t, `{"text": "a", "tags": []}`, e.Response.Message.ToolCalls[0].Arguments, "as sent")
	require.Len(t, e.Verdicts, 2)
	require.Len(t, e.Replies, 2)
	require.False(t, e.Replies[0].IsError)
	require.True(t, e.Replies[1].IsError)
	require.Equal(t, "2", e.Replies[1].ToolCallID)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Len(t, out.report.Attempts, 2)
	require.Equal(t, -1, out.report.Final)
}

func TestDropInvalid(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}
	out := run(t, o, request(), mixed)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.resp.Report.Status)
	require.Equal(t, []string{`{"text": "a"}`}, out.arguments())
	require.Equal(t, []string{"invalid calls were dropped: 2"}, out.report.Notes)
	require.Len(t, out.report.Attempts[0].Message.ToolCalls, 2, "the ledger keeps what was sent")

	out = run(t, o, request(), answer(call("1", "weather", badWeather)))
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted, "nothing is left: it raises")
}

func TestTheStrictestToolDecides(t *testing.T) {
	t.Parallel()
	drop, pass, raise := middleware.DropInvalid, middleware.Pass, middleware.Raise
	for name, c := range map[string]struct {
		weather, note, unknown middleware.OnExhausted
		want                   middleware.OnExhausted
	}{
		"pass, pass":       {pass, pass, pass, pass},
		"pass, drop":       {pass, drop, pass, drop},
		"drop, pass":       {drop, pass, pass, drop},
		"raise, drop":      {raise, drop, pass, raise},
		"drop, raise":      {drop, raise, pass, raise},
		"raise, pass":      {raise, pass, pass, raise},
		"unknown: options": {pass, pass, raise, raise},
		"pass, default":    {pass, pass, 0, raise},
		"drop, default":    {drop, drop, 0, raise},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := argsvalidate.Options{MaxAttempts: 1, OnExhausted: c.unknown, PerTool: map[string]argsvalidate.ToolOptions{
				"weather": {OnExhausted: c.weather}, "note": {OnExhausted: c.note},
			}}
			out := run(t, o, request(weather, note, tool("ping", "")), answer(
				call("1", "weather", badWeather), call("2", "note", badNote), call("3", "ping", "{}"), call("4", "nosuch", "{}")))
			switch c.want {
			case raise:
				require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
			case drop:
				require.Equal(t, []string{"{}"}, out.arguments())
			default:
				require.Equal(t, middleware.Invalid, out.resp.Report.Status)
				require.Len(t, out.resp.Message.ToolCalls, 4)
			}
		})
	}
}

// A valid call's settings do not count.
func TestAValidCallDoesNotRaise(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass, PerTool: map[string]argsvalidate.ToolOptions{"note": {OnExhausted: middleware.Raise}}}
	out := run(t, o, request(), answer(call("1", "note", goodNote), call("2", "weather", badWeather)))
	require.NoError(t, out.err)
}

// The calls of another choice are never validated, whatever was dropped.
func TestDropInvalidBesideAnotherChoice(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{OnExhausted: middleware.DropInvalid}
	out := run(t, o, request(), middlewaretest.Reply(&middleware.Response{
		Message: middleware.Assistant("", call("1", "note", goodNote), call("2", "weather", badWeather)),
		Choices: []middleware.Message{middleware.Assistant("", call("3", "weather", badWeather))}}))
	require.NoError(t, out.err)
	require.Len(t, out.resp.Message.ToolCalls, 1)
	require.Equal(t, middleware.Unchecked, out.resp.Report.Status)
}

// The end of the context is obeyed while replies are rendered for the error.
func TestRaiseObeysTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		release := make(chan struct{})
		defer close(release)
		o := argsvalidate.Options{MaxAttempts: 1, RuleTimeout: time.Hour,
			Feedback: func(argsvalidate.FeedbackInput) string { cancel(); <-release; return "late" }}
		model := middlewaretest.NewModel(t, mixed)
		begin := time.Now()
		_, err := argsvalidate.New(unmended(o))(model.Call)(ctx, request())
		require.ErrorIs(t, err, argsvalidate.ErrExhausted)
		require.Zero(t, time.Since(begin))
		require.Contains(t, failure(t, err).Replies[1].Text(), "argument validation failed", "the built-in text")
	})
}

// Ids are a model's or a server's words: notes hold them cleaned and bounded.
func TestDropInvalidCleansIDs(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}
	calls := []middleware.ToolCall{call("ok", "note", goodNote), call("a\n\x1b[31m"+strings.Repeat("x", 500), "note", badNote)}
	for range 20 {
		calls = append(calls, call("b", "note", badNote))
	}
	out := run(t, o, request(), answer(calls...))
	require.NoError(t, out.err)
	require.Len(t, out.report.Notes, 1)
	require.NotContains(t, out.report.Notes[0], "\n")
	require.NotContains(t, out.report.Notes[0], "\x1b")
	require.Less(t, len(out.report.Notes[0]), 400)
	require.Contains(t, out.report.Notes[0], "and 11 more")
}
