package argsvalidate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// What the model was promised to be held is held until all is corrected.
func TestKeepValidHoldsThroughPartialCorrections(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 4}
	out := run(t, o, request(),
		middlewaretest.Calls("weather", badWeather, "note", `{"text": 1}`, "note", `{"text": "held"}`),
		middlewaretest.Calls("weather", goodWeather),
		middlewaretest.Calls("note", `{"text": "late"}`))
	require.NoError(t, out.err)
	require.Equal(t, []string{"weather " + goodWeather, `note {"text": "late"}`, `note {"text": "held"}`}, callsOf(out.resp.Message))
	require.Equal(t, middleware.Valid, out.resp.Report.Status)
	told := out.told(3)
	require.Contains(t, told[len(told)-1].Text(), "Still to be corrected: the call to note.")
}

// A held call that is sent again is not the correction of another one of its
// name: or a payment would be made twice.
func TestKeepValidTellsARepetitionFromACorrection(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid}
	out := run(t, o, request(),
		middlewaretest.Calls("note", `{"text": "paid"}`, "note", `{}`),
		middlewaretest.Calls("note", `{"text": "paid"}`),
		middlewaretest.Calls("note", `{"text": "the other"}`))
	require.NoError(t, out.err)
	require.Equal(t, []string{`note {"text": "paid"}`, `note {"text": "the other"}`}, callsOf(out.resp.Message))
}

// A rule sees the held calls as siblings: they will run beside the corrected
// one.
func TestKeepValidShowsHeldCallsToRules(t *testing.T) {
	t.Parallel()
	alone := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		for _, s := range c.Siblings {
			if c.Name == "weather" && s.Name == "note" {
				return []middleware.Issue{{Message: "not beside a note"}}, nil
			}
		}
		return nil, nil
	})
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 2, Rules: []argsvalidate.Rule{alone}}
	out := run(t, o, request(), middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("weather", goodWeather))
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
}

// What was cut off at first was whole in the end.
func TestKeepValidHasTheLastFinishReason(t *testing.T) {
	t.Parallel()
	first := truncated(call("1", "note", goodNote), call("2", "weather", goodWeather))
	o := argsvalidate.Options{Batch: batch.KeepValid}
	out := run(t, o, capped(50), first, middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, middleware.FinishToolCalls, out.resp.FinishReason)
	require.Len(t, out.resp.Message.ToolCalls, 2)
}

// A rule sees the siblings that the message will have: a held call once, and not
// one that the whole batch, sent again, replaces.
func TestKeepValidRulesSeeTheFinalSiblings(t *testing.T) {
	t.Parallel()
	one := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		for _, s := range c.Siblings {
			if c.Name == "note" && s.Name == "note" {
				return []middleware.Issue{{Message: "one note at a time"}}, nil
			}
		}
		return nil, nil
	})
	for name, again := range map[string]middlewaretest.Turn{
		"the same note":  middlewaretest.Calls("weather", goodWeather, "note", `{ "text": "rain" }`),
		"another note":   middlewaretest.Calls("weather", goodWeather, "note", `{"text": "snow"}`),
		"in other order": middlewaretest.Calls("note", goodNote, "weather", goodWeather),
		"the note twice": middlewaretest.Calls("note", goodNote, "weather", goodWeather, "note", goodNote),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen []string
			watch := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
				if c.Name == "weather" {
					seen = nil
					for _, s := range c.Siblings {
						seen = append(seen, s.Name)
					}
				}
				return nil, nil
			})
			o := argsvalidate.Options{Batch: batch.KeepValid, Rules: []argsvalidate.Rule{one, watch}}
			out := run(t, o, request(), middlewaretest.Calls("weather", badWeather, "note", goodNote), again)
			require.NoError(t, out.err)
			require.Len(t, out.resp.Message.ToolCalls, 2)
			require.Equal(t, []string{"note"}, seen)
		})
	}
}

// A text that textcall could not read withdraws nothing: the calls to unknown
// tools stay open, and the held calls come out.
func TestKeepValidUnreadableTextIsNoWithdrawal(t *testing.T) {
	t.Parallel()
	unread := middleware.Response{Message: middleware.Assistant("Action: weather"), FinishReason: middleware.FinishStop}
	unread.Report = middleware.Report{Status: middleware.Invalid, Attempts: []middleware.Attempt{
		{Message: unread.Message, Issues: []middleware.Issue{{Code: "unreadable", Message: "no input"}}}}}
	first := middlewaretest.Calls("note", goodNote, "nosuch", "{}")
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.Pass}, request(), first, middlewaretest.Reply(&unread))
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{"note " + goodNote, "nosuch {}"}, callsOf(out.resp.Message))
	require.Empty(t, out.report.Notes)

	out = run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.DropInvalid}, request(), first, middlewaretest.Reply(&unread))
	require.NoError(t, out.err)
	require.Equal(t, []string{"note " + goodNote}, callsOf(out.resp.Message))

	out = run(t, argsvalidate.Options{Batch: batch.KeepValid}, request(), first, middlewaretest.Reply(&unread))
	require.ErrorIs(t, out.err, argsvalidate.ErrInvalid)
	require.Len(t, failure(t, out.err).Response.Message.ToolCalls, 2)
}

// Where a call is demanded, words do not give up the held calls.
func TestKeepValidDemandedCallKeepsHeldCalls(t *testing.T) {
	t.Parallel()
	first, words := middlewaretest.Calls("note", goodNote, "weather", badWeather), middlewaretest.Text("never mind")
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.Pass}, demanding(""), first, words, words)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{"note " + goodNote, "weather " + badWeather}, callsOf(out.resp.Message))
	require.Equal(t, middleware.FinishToolCalls, out.resp.FinishReason)

	out = run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.DropInvalid}, demanding(""), first, words, words)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{"note " + goodNote}, callsOf(out.resp.Message))

	out = run(t, argsvalidate.Options{Batch: batch.KeepValid}, demanding(""), first, words, words)
	require.ErrorIs(t, out.err, argsvalidate.ErrNoCall)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.Len(t, failure(t, out.err).Response.Message.ToolCalls, 2, "the held batch")
}

// The rules of a held call run again when its siblings change. The model learns
// why the call no longer stands.
func TestKeepValidRunsRulesOfHeldCallsAgain(t *testing.T) {
	t.Parallel()
	const rainy = `{"city":"Rain"}`
	dry := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		for _, s := range c.Siblings {
			if c.Name == "note" && s.Arguments == rainy {
				return []middleware.Issue{{Message: "no notes in the rain"}}, nil
			}
		}
		return nil, nil
	})
	o := argsvalidate.Options{Batch: batch.KeepValid, Rules: []argsvalidate.Rule{dry}}
	first, rain := middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("weather", rainy)
	o.MaxAttempts = 2
	out := run(t, o, request(), first, rain)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)

	o.MaxAttempts = 3
	out = run(t, o, request(), first, middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	out = run(t, o, request(), first, rain, middlewaretest.Calls("note", `{"text":"x"}`))
	told := out.told(3)
	require.Contains(t, told[len(told)-1].Text(), "Still to be corrected: the call to note, which was valid before (no notes in the rain).")
}
