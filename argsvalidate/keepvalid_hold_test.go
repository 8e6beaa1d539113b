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
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 4, OnExhausted: argsvalidate.Raise}
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
	o := argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: argsvalidate.Raise}
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
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 2, OnExhausted: argsvalidate.Raise, Rules: []argsvalidate.Rule{alone}}
	out := run(t, o, request(), middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("weather", goodWeather))
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
}

// What was cut off at first was whole in the end.
func TestKeepValidHasTheLastFinishReason(t *testing.T) {
	t.Parallel()
	first := truncated(call("1", "note", goodNote), call("2", "weather", goodWeather))
	o := argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: argsvalidate.Raise}
	out := run(t, o, request(), first, middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, middleware.FinishToolCalls, out.resp.FinishReason)
	require.Len(t, out.resp.Message.ToolCalls, 2)
}
