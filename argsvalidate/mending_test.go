package argsvalidate_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// What makes the call invalid is mended where that is certain, and written
// back: the model is not asked again.
func TestMendSavesACall(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Mend: mend.Default()}
	out := run(t, o, request(), middlewaretest.Calls("weather", `{"city": "Oslo", "days": "2"}`))
	require.Equal(t, []string{`{"city": "Oslo", "days": 2}`}, out.arguments())
	changes := out.report.Attempts[0].Verdicts[0].Changes
	require.Len(t, changes, 1)
	require.Equal(t, "mend.coerce", changes[0].By)
}

func TestMendOff(t *testing.T) {
	t.Parallel()
	const args = `{"city": "Oslo", "days": "2"}`
	require.False(t, verdictOf(t, argsvalidate.Options{Mend: mend.Off()}, weather, args).OK())
	o := argsvalidate.Options{Mend: []mend.Rule{mend.Coerce}, PerTool: map[string]argsvalidate.ToolOptions{"weather": {Mend: mend.Off()}}}
	require.False(t, verdictOf(t, o, weather, args).OK())
	other := weather
	other.Name = "other"
	require.True(t, verdictOf(t, o, other, args).OK())
}

// A mend that does not make the whole call valid leaves no trace.
func TestAMendThatIsNotEnoughLeavesNoTrace(t *testing.T) {
	t.Parallel()
	const args = `{"days": "2"}`
	v := verdictOf(t, argsvalidate.Options{Mend: mend.Default()}, weather, args)
	require.Equal(t, args, v.Call.Arguments)
	require.Empty(t, v.Changes)
	require.Equal(t, []string{"required", "type"}, codes(v), "told as it was sent")
}

// A rule sees the mended call, and a call that it refuses stays as it was sent.
func TestRuleOnAMendedName(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Mend: []mend.Rule{mend.ToolName}, MaxAttempts: 1, OnExhausted: middleware.Pass, Rules: []argsvalidate.Rule{refuseAll}}
	out := run(t, o, request(), middlewaretest.Calls("functions.weather", goodWeather))
	require.Equal(t, []string{"functions.weather " + goodWeather}, callsOf(out.resp.Message))
	verdict := out.report.Attempts[0].Verdicts[0]
	require.Equal(t, []string{"unknown_tool", "rule"}, codes(verdict))
	require.Equal(t, "functions.weather", verdict.Call.Name)
	require.Empty(t, verdict.Changes)
}

func TestFixers(t *testing.T) {
	t.Parallel()
	fixer := func(args string, ok bool) argsvalidate.Fixer {
		return func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
			return args, ok
		}
	}
	panics := argsvalidate.Fixer(func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
		panic("hunter2")
	})
	reads := argsvalidate.Fixer(func(_ context.Context, tool middleware.Tool, c middleware.ToolCall, issues []middleware.Issue) (string, bool) {
		if tool.Name != "weather" || len(issues) != 2 {
			return "", false
		}
		issues[0].Code = "changed"
		return strings.Replace(c.Arguments, `"days": 0`, `"city": "Rome"`, 1), true
	})
	for name, c := range map[string]struct {
		fixers []argsvalidate.Fixer
		want   string // "": still invalid
		by     string
	}{
		"none":                    {nil, "", ""},
		"it has no fix":           {[]argsvalidate.Fixer{fixer(goodWeather, false)}, "", ""},
		"its fix is invalid":      {[]argsvalidate.Fixer{fixer(`{"city": 5}`, true)}, "", ""},
		"it panics":               {[]argsvalidate.Fixer{panics}, "", ""},
		"the first that fits":     {[]argsvalidate.Fixer{panics, fixer("{", true), fixer(goodWeather, true), fixer(`{"city": "b"}`, true)}, goodWeather, "fixer 2"},
		"it sees call and issues": {[]argsvalidate.Fixer{reads}, `{"city": "Rome"}`, "fixer 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verdictOf(t, argsvalidate.Options{Fixers: c.fixers}, weather, badWeather)
			require.Equal(t, c.want != "", v.OK())
			if c.want == "" {
				require.Equal(t, badWeather, v.Call.Arguments)
				require.Equal(t, []string{"required", "minimum"}, codes(v))
				return
			}
			require.Equal(t, c.want, v.Call.Arguments)
			require.Equal(t, []middleware.Change{{By: c.by, Before: badWeather, After: c.want}}, v.Changes)
		})
	}
	require.EqualError(t, argsvalidate.Options{Fixers: []argsvalidate.Fixer{panics, nil}}.Validate(), "argsvalidate: Fixers[1]: must not be nil, got <nil>")
}
