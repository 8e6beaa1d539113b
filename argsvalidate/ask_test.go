package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// A model that repeats itself is asked in another way: without the failed turns,
// what was wrong behind the question.
func TestFreshOnRepeat(t *testing.T) {
	t.Parallel()
	bad, good := middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("weather", goodWeather)
	o := argsvalidate.Options{Advanced: argsvalidate.Advanced{FreshOnRepeat: true}}
	out := run(t, o, request(), bad, bad, good)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Len(t, out.asked[1].Messages, 4, "the first failure is answered as ever")
	require.Len(t, out.asked[2].Messages, 2)
	require.Equal(t, request().Messages, out.asked[2].Messages[:1])
	last := out.asked[2].Messages[1]
	require.Equal(t, middleware.RoleUser, last.Role)
	require.Contains(t, last.Text(), "nothing was executed")
	require.Contains(t, last.Text(), "[city] required property is missing; wanted: string")
	require.NotContains(t, last.Text(), "same batch", "the notice of the valid sibling")
	require.Equal(t, []middleware.Message{last}, out.report.Attempts[1].Replies)
	require.Contains(t, out.report.Notes, "attempt 2 brought the same invalid calls again: attempt 3 leaves the failed turns out")
	for _, p := range []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini} {
		require.NoError(t, middlewaretest.Check(p, out.asked[2]))
	}

	// The failure after that is answered as ever, behind the message.
	other := middlewaretest.Calls("weather", `{"days": -1}`)
	o.MaxAttempts = 5
	out = run(t, o, request(), bad, bad, other, good)
	require.Equal(t, last.Text(), out.asked[3].Messages[1].Text())
	require.Len(t, out.asked[3].Messages, 4)

	// A broken call is not in the conversation then, so nothing is said of what
	// it keeps.
	broken := middlewaretest.Calls("weather", `{"city": "Oslo", "x`)
	out = run(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{FreshOnRepeat: true}}, request(), broken, broken, good)
	require.Contains(t, out.told(2)[1].Text(), "the conversation keeps only")
	require.NotContains(t, out.asked[2].Messages[1].Text(), "the conversation keeps only")

	for name, o := range map[string]argsvalidate.Options{
		"off by default":       {},
		"valid calls are held": {Advanced: argsvalidate.Advanced{FreshOnRepeat: true}, Batch: batch.KeepValid},
	} {
		out := run(t, o, request(), bad, bad, good)
		require.Greater(t, len(out.asked[2].Messages), 4, name)
	}
	require.Len(t, run(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{FreshOnRepeat: true}}, request(), bad, other, good).asked[2].Messages, 6, "another failure")
}

// A step that began with an invalid call and ended in text is worth a look: the
// text is often made up.
func TestTextAfterAnInvalidCallIsNoted(t *testing.T) {
	t.Parallel()
	const noted = "the step began with an invalid tool call and ended in an answer without one"
	text := middlewaretest.Text("It is sunny in Oslo.")
	require.Contains(t, run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", badWeather), text).report.Notes, noted)
	require.Contains(t, run(t, argsvalidate.Options{}, request(), middlewaretest.Fail(refusal), text).report.Notes, noted)
	require.Empty(t, run(t, argsvalidate.Options{}, request(), text).report.Notes)
	require.Empty(t, run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", badWeather), middlewaretest.Calls("weather", goodWeather)).report.Notes)
}
