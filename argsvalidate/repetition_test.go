package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestLostSiblingIsNoted(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(),
		middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("weather", goodWeather))
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{"a valid call to note in attempt 1 did not come back with the corrected ones"}, out.report.Notes)

	out = run(t, argsvalidate.Options{}, request(),
		middlewaretest.Calls("weather", badWeather, "note", goodNote), middlewaretest.Calls("note", goodNote, "weather", goodWeather))
	require.Empty(t, out.report.Notes)
}

func TestSameFailureEndsTheStepEarly(t *testing.T) {
	t.Parallel()
	bad := middlewaretest.Calls("weather", badWeather)
	out := run(t, argsvalidate.Options{MaxAttempts: 6}, request(), bad, bad, bad)
	require.ErrorIs(t, out.err, argsvalidate.ErrRepeated)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.EqualError(t, out.err, "argsvalidate: attempts exhausted: arguments still invalid after 3 attempts; weather: required, minimum"+
		": argsvalidate: the same invalid calls again")
	want := []string{"ended after attempt 3: the model sent the same invalid calls 3 times in a row"}
	require.Equal(t, want, out.report.Notes)

	out = run(t, argsvalidate.Options{MaxAttempts: 6}, request(), bad, bad, bad)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, want, out.report.Notes)

	// Used up anyway: that it was the same is beside the point.
	out = run(t, argsvalidate.Options{MaxAttempts: 3}, request(), bad, bad, bad)
	require.NotErrorIs(t, out.err, argsvalidate.ErrRepeated)

	other := middlewaretest.Calls("weather", `{"days": -1}`)
	out = run(t, argsvalidate.Options{MaxAttempts: 6}, request(), bad, bad, other, bad, other)
	require.ErrorIs(t, out.err, argsvalidate.ErrRepeated)
	require.Equal(t, []string{"ended after attempt 5: 3 invalid answers in a row repeated earlier failures"}, out.report.Notes)

	third := middlewaretest.Calls("weather", `{"days": -2}`)
	run(t, argsvalidate.Options{MaxAttempts: 6}, request(), bad, bad, other, bad, third, bad)
}

func TestWhiteSpaceIsNoProgress(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"a call against its schema": {`{"city": 1,"days":2}`, ` {"city":1, "days": 2}`, `{"days":2,"city":1}`},
		"no JSON":                   {`{"city": x}`, ` {"city":  x}`, "{\"city\":\nx}"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var turns []middlewaretest.Turn
			for _, a := range args {
				turns = append(turns, middlewaretest.Calls("weather", a))
			}
			out := run(t, argsvalidate.Options{MaxAttempts: 50}, request(), turns...)
			require.ErrorIs(t, out.err, argsvalidate.ErrRepeated)
		})
	}
}

// A provider that refuses the same call again and again is not asked for ever.
func TestSameRefusalEndsTheStepEarly(t *testing.T) {
	t.Parallel()
	refused := func(output string) middlewaretest.Turn {
		return middlewaretest.Fail(&middleware.ModelError{Output: output, Err: middleware.ErrInvalidToolCall})
	}
	o := argsvalidate.Options{MaxAttempts: 9}
	out := run(t, o, request(), refused("<call> a"), refused("<call>  a"), refused("<call> a"))
	require.ErrorIs(t, out.err, argsvalidate.ErrRepeated)
	require.ErrorIs(t, out.err, middleware.ErrInvalidToolCall)
	out = run(t, o, request(), refused("a"), refused("b"), refused("a"), middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
}

func TestFeedbackEscalates(t *testing.T) {
	t.Parallel()
	const schemaOfDays = `days: {"type": "integer", "minimum": 1}`
	bad := middlewaretest.Calls("weather", badWeather)
	out := run(t, argsvalidate.Options{}, request(), bad, bad, bad)
	first, second := out.told(2)[1].Text(), out.told(3)[1].Text()
	require.NotContains(t, first, schemaOfDays)
	require.NotContains(t, first, "same call")
	require.Contains(t, second, schemaOfDays)
	require.Contains(t, second, "This is the same call as the one before, with the same errors: change it.")

	out = run(t, argsvalidate.Options{}, request(), bad, middlewaretest.Calls("weather", `{"city": "a", "days": -1}`), bad)
	require.Contains(t, out.told(3)[1].Text(), schemaOfDays)
	require.NotContains(t, out.told(3)[1].Text(), "same call")
}
