package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// Where several calls are invalid, the largest MaxAttempts counts, whatever
// their order.
func TestLargestMaxAttemptsCounts(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{MaxAttempts: 1, PerTool: map[string]argsvalidate.ToolOptions{"note": {MaxAttempts: 2}}}
	for _, pairs := range [][]string{{"note", badNote, "weather", badWeather}, {"weather", badWeather, "note", badNote}} {
		bad := middlewaretest.Calls(pairs...)
		out := run(t, o, request(), bad, bad)
		require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
	}
}

// The built-in text is at most 8 KiB long, whatever was sent.
func TestFeedbackIsAtMost8KiB(t *testing.T) {
	t.Parallel()
	long := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		var issues []middleware.Issue
		for i := range 100 {
			issues = append(issues, middleware.Issue{Pointer: fmt.Sprintf("/p%d", i), Message: fmt.Sprint(i) + strings.Repeat("é", 1000)})
		}
		return issues, nil
	})
	out := run(t, argsvalidate.Options{MaxAttempts: 2, Rules: []argsvalidate.Rule{long}}, request(), middlewaretest.Calls("note", goodNote), middlewaretest.Calls("note", goodNote))
	text := out.told(2)[1].Text()
	require.LessOrEqual(t, len(text), 8<<10)
	require.Greater(t, len(text), 8<<10-10, "the case reaches the bound")
	require.True(t, strings.HasSuffix(text, "é…"))
}

// A filter has the last word: what was held is not run.
func TestKeepValidAndAFilteredAnswer(t *testing.T) {
	t.Parallel()
	refused := middleware.Assistant("no")
	refused.Parts[0].Native = &middleware.Native{Raw: `{"refusal":"no"}`}
	for _, answer := range []*middleware.Response{
		{Message: middleware.Assistant("no"), FinishReason: middleware.FinishFilter},
		{Message: refused, FinishReason: middleware.FinishStop},
	} {
		out := run(t, argsvalidate.Options{Batch: batch.KeepValid}, request(), middlewaretest.Calls("note", goodNote, "nosuch", "{}"), middlewaretest.Reply(answer))
		require.NoError(t, out.err)
		require.Empty(t, out.resp.Message.ToolCalls)
		require.Contains(t, out.report.Notes, "attempt 2 has no tool call: the held calls were given up: note")
	}
}

// Arguments past the default limits, and within those of the options, are
// stripped, repaired, and explained like any others.
func TestRaisedLimitsHoldEverywhere(t *testing.T) {
	t.Parallel()
	limits := argsvalidate.Limits{Bytes: 4 << 20, Depth: 100}
	nested := func(inner string) string {
		return `{"list": ` + strings.Repeat("[", 80) + strings.Repeat("]", 80) + `, "text": "` + strings.Repeat("x", 2<<20) + `", ` + inner + `}`
	}
	form := tool("form", `{"properties": {"list": {"type": "array", "minItems": 1}, "text": {"type": "string"}, "n": {"type": "integer"}, "o": {}}}`)
	for sent, want := range map[string]string{
		`"n": 1`:              `"n": 1`,
		`"n": 1, "o": null`:   `"n": 1`,
		`"n": "1"`:            `"n": 1`,
		`"n": "1", "o": null`: `"n": 1`,
	} {
		verdicts, err := argsvalidate.NewValidator(argsvalidate.Options{Limits: limits}).Validate(t.Context(), []middleware.Tool{form}, call("1", "form", nested(sent)))
		require.NoError(t, err, sent)
		require.Equal(t, nested(want), verdicts[0].Call.Arguments, sent)
	}
	out := run(t, argsvalidate.Options{MaxAttempts: 2, Limits: limits}, request(form),
		middlewaretest.Calls("form", nested(`"n": "no", "m": [{"k": null}]`)), middlewaretest.Calls("form", `{"n": 1}`))
	require.Contains(t, out.told(2)[1].Text(), "[n]")
}
