package argsvalidate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

func TestBadOptionsPanic(t *testing.T) {
	t.Parallel()
	anything := func(any) bool { return true }
	for _, c := range []struct {
		o    argsvalidate.Options
		want string
	}{
		{argsvalidate.Options{MaxAttempts: -1}, "argsvalidate: MaxAttempts: must be 0 to 1000, got -1"},
		{argsvalidate.Options{MaxAttempts: 1001}, "argsvalidate: MaxAttempts: must be 0 to 1000, got 1001"},
		{argsvalidate.Options{Limits: argsvalidate.Limits{Bytes: -1}}, "argsvalidate: Limits.Bytes: must be 0 to 1073741824, got -1"},
		{argsvalidate.Options{Limits: argsvalidate.Limits{Depth: 513}}, "argsvalidate: Limits.Depth: must be 0 to 512, got 513"},
		{argsvalidate.Options{Limits: argsvalidate.Limits{Number: 10_001}}, "argsvalidate: Limits.Number: must be 0 to 10000, got 10001"},
		{argsvalidate.Options{Limits: argsvalidate.Limits{Exponent: -2}}, "argsvalidate: Limits.Exponent: must be 0 to 10000, got -2"},
		{argsvalidate.Options{RuleTimeout: -time.Second}, "argsvalidate: RuleTimeout: must not be negative, got -1s"},
		{argsvalidate.Options{UnknownTools: 3}, "argsvalidate: UnknownTools, OnRuleError or Batch: not one of the constants, got [3 0 default]"},
		{argsvalidate.Options{OnRuleError: 3}, "argsvalidate: UnknownTools, OnRuleError or Batch: not one of the constants, got [default 3 default]"},
		{argsvalidate.Options{Batch: batch.Policy(3)}, "argsvalidate: UnknownTools, OnRuleError or Batch: not one of the constants, got [default 0 3]"},
		{argsvalidate.Options{Advanced: argsvalidate.Advanced{UnusableSchemas: 3}}, "argsvalidate: UnusableSchemas: not one of the constants, got 3"},
		{argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.InternalIDs(), nil}}, "argsvalidate: Rules[1]: must not be nil, got <nil>"},
		{argsvalidate.Options{Rules: []argsvalidate.Rule{(*argsvalidate.FieldRule[int])(nil)}}, "argsvalidate: Rules[0]: must not be nil, got <nil>"},
		{argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.FieldRule[any]{Path: "a.b", Required: true}}},
			`argsvalidate: Rules[0]: FieldRule: Path: not a JSON Pointer; for dots say Dotted("a.b")`},
		{argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.FieldRule[any]{Path: "/a"}}},
			"argsvalidate: Rules[0]: FieldRule: neither Valid nor Required nor Find is set"},
		{argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.FieldRule[any]{Path: "/a", Valid: anything}}},
			"argsvalidate: Rules[0]: FieldRule: Message: must be set"},
		{argsvalidate.Options{Tools: []middleware.Tool{{}}}, `argsvalidate: Tools[0].Name: must be set and unique, got ""`},
		{argsvalidate.Options{Tools: []middleware.Tool{weather, weather}}, `argsvalidate: Tools[1].Name: must be set and unique, got "weather"`},
		{argsvalidate.Options{Strip: strip.Off + 1}, "argsvalidate: Options: Properties or Strip: not one of the constants, got 0, 5"},
		{argsvalidate.Options{OnExhausted: middleware.DropInvalid + 1},
			"argsvalidate: Options: OnExhausted: must be 0, Pass, Raise or DropInvalid of package middleware, got 4"},
		{argsvalidate.Options{Properties: argsvalidate.NoteUndeclared + 1},
			"argsvalidate: Options: Properties or Strip: not one of the constants, got 4, 0"},
		{argsvalidate.Options{Mend: []mend.Rule{mend.Coerce, 99}}, "argsvalidate: Options: Mend: not one of the rules: Rule(99)"},
		{argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"weather": {Mend: []mend.Rule{0}}}},
			`argsvalidate: PerTool["weather"]: Mend: not one of the rules: Rule(0)`},
		{argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"weather": {MaxAttempts: -1}}},
			`argsvalidate: PerTool["weather"]: MaxAttempts: must be 0 to 1000, got -1`},
		{argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"weather": {OnExhausted: 9}}},
			`argsvalidate: PerTool["weather"]: OnExhausted: must be 0, Pass, Raise or DropInvalid of package middleware, got 9`},
	} {
		t.Run(c.want, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, c.o.Validate(), c.want)
			require.PanicsWithError(t, c.want, func() { argsvalidate.New(c.o) })
			require.PanicsWithError(t, c.want, func() { argsvalidate.NewValidator(c.o) })
		})
	}
}

func TestGoodOptions(t *testing.T) {
	t.Parallel()
	require.NoError(t, argsvalidate.Options{}.Validate())
	require.NoError(t, argsvalidate.Options{
		MaxAttempts: 1000, OnExhausted: middleware.DropInvalid, UnknownTools: argsvalidate.PassUnknown, Properties: argsvalidate.NoteUndeclared,
		Strip: strip.Off, Batch: batch.KeepValid, OnRuleError: argsvalidate.Ignore, Tools: []middleware.Tool{weather, note},
		Limits: argsvalidate.Limits{Bytes: 1 << 30, Depth: 512, Number: 10_000, Exponent: 10_000},
	}.Validate())
}

func TestSettingsOfOneTool(t *testing.T) {
	t.Parallel()
	t.Run("Strip", func(t *testing.T) {
		t.Parallel()
		o := argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"note": {Strip: strip.Off}}}
		require.JSONEq(t, `{"text": "a", "tags": []}`, verdictOf(t, o, note, `{"text": "a", "tags": []}`).Call.Arguments)
		require.JSONEq(t, `{"text": "a"}`, verdictOf(t, argsvalidate.Options{}, note, `{"text": "a", "tags": []}`).Call.Arguments)
	})
	t.Run("Properties", func(t *testing.T) {
		t.Parallel()
		o := argsvalidate.Options{
			Properties: argsvalidate.RejectUndeclared,
			PerTool:    map[string]argsvalidate.ToolOptions{"note": {Properties: argsvalidate.BySchema}},
		}
		other := note
		other.Name = "other"
		require.True(t, verdictOf(t, o, note, `{"text": "a", "extra": 1}`).OK())
		require.Equal(t, []string{"undeclared"}, codes(verdictOf(t, o, other, `{"text": "a", "extra": 1}`)))
	})
	t.Run("MaxAttempts", func(t *testing.T) {
		t.Parallel()
		o := argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"weather": {MaxAttempts: 1}, "note": {MaxAttempts: 2}}}
		run(t, o, request(), answer(call("1", "weather", badWeather)))
		two := answer(call("1", "weather", badWeather), call("2", "note", badNote))
		out := run(t, o, request(), two, two)
		require.Len(t, out.report.Attempts, 2, "the largest of the invalid calls counts")
	})
}
