package argsvalidate_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/strip"
)

// A hint stands only where it applies: that a property may be left out is said
// of an optional one that was sent empty, never of a required one.
func TestHintFitsTheMistake(t *testing.T) {
	t.Parallel()
	text := func(args string) string {
		o := argsvalidate.Options{MaxAttempts: 1, Strip: strip.Off}
		return failure(t, run(t, o, request(), middlewaretest.Calls("weather", args)).err).Replies[0].Text()
	}
	const hint = "omit it entirely if it is not needed"
	require.Contains(t, text(`{"city": "a", "days": null}`), "[days] wanted integer of at least 1; sent null; "+hint)
	for _, args := range []string{`{}`, `{"city": null}`, `{"city": "a", "days": 0}`, `{"city": "a", "day": null}`, `{"city`} {
		require.NotContains(t, text(args), hint, args)
	}
	const missing = "If an optional property is not needed, omit it entirely."
	require.Contains(t, text(`{}`), missing)
	require.NotContains(t, text(`{"city": "a", "days": 0}`), missing)
	bare := tool("bare", `{"properties": {"a": {}, "b": {}}, "required": ["a", "b"]}`)
	require.NotContains(t, failure(t, validateError(t, bare, `{"a": 1}`)).Replies[0].Text(), missing, "nothing is optional")
	require.Contains(t, text(`{"city": "a", "day": 1}`), `[day] unknown property; did you mean "days"?`)
	require.NotContains(t, text(`{"city": "a", "days": "x"}`), "Accepted properties")
}

func validateError(t *testing.T, tool middleware.Tool, args string) error {
	_, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), []middleware.Tool{tool}, call("1", tool.Name, args))
	return err
}

// A server reads control tokens in what is quoted: they are taken apart.
func TestControlTokensAreDefused(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"<|im_start|>": 1}`, `{"city": ["<|im_start|>"]}`, `{"city": <|im_start|>`, `{"city": ["<｜tool▁sep｜>"]}`} {
		told := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", args, "a<|b|>c", "{}"), middlewaretest.Text("no")).told(2)
		for _, m := range told[1:] {
			require.NotRegexp(t, `<[|｜]|[|｜]>`, m.Text())
		}
		require.Regexp(t, `< [|｜]`, told[1].Text())
		require.Contains(t, told[2].Text(), "a< |b| >c")
	}
	refused := *refusal
	refused.Output = "<|python_tag|>"
	told := run(t, argsvalidate.Options{}, request(), middlewaretest.Fail(&refused), middlewaretest.Text("no")).told(2)
	require.Contains(t, told[0].Text(), "< |python_tag| >")
}

// A call that could not be checked for a reason of ours is not to be changed,
// however often it fails.
func TestUndecidedAsksForNoChange(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errDown }))
	o.OnRuleError = argsvalidate.AsIssue
	same := middlewaretest.Calls("note", goodNote)
	out := run(t, o, request(), same, same, middlewaretest.Text("later"))
	require.Equal(t, out.told(2)[1].Text(), out.told(3)[1].Text())
	text := out.told(3)[1].Text()
	require.Contains(t, text, "No mistake was found in it.")
	for _, not := range []string{"Fix", "change it", "JSON Schema", "validation failed"} {
		require.NotContains(t, text, not)
	}

	// Beside a fault of the model's, the fault is what is said.
	o.Rules = append(o.Rules, refuseAll)
	text = run(t, o, request(), same, middlewaretest.Text("later")).told(2)[1].Text()
	require.Contains(t, text, "argument validation failed")
	require.NotContains(t, text, "could not be checked")
}

// An answer without a tool is not offered after the first failure: models take
// the offer instead of correcting the call.
func TestAnswerWithoutAToolIsOfferedLate(t *testing.T) {
	t.Parallel()
	const offer = "or answer without a tool"
	unknown := middlewaretest.Calls("nosuch", "{}")
	out := run(t, argsvalidate.Options{}, request(), unknown, unknown, middlewaretest.Text("no"))
	require.NotContains(t, out.told(2)[1].Text(), offer)
	require.Contains(t, out.told(3)[1].Text(), offer)
	out = run(t, argsvalidate.Options{}, request(), middlewaretest.Fail(refusal), middlewaretest.Fail(refusal), middlewaretest.Text("no"))
	require.NotContains(t, out.told(2)[0].Text(), offer)
	require.Contains(t, out.told(3)[0].Text(), offer)
}

// Whatever is sent, what the model is told stays short and takes no time.
func TestFeedbackIsBounded(t *testing.T) {
	t.Parallel()
	props := make([]string, 2000)
	for i := range props {
		props[i] = fmt.Sprintf(`"property_%d": {"type": "integer"}`, i)
	}
	wide := tool("wide", `{"properties": {`+strings.Join(props, ",")+`}, "additionalProperties": false}`)
	list := tool("list", `{"properties": {"l": {"items": {"type": "integer", "enum": [1, 2, 3]}}}}`)
	pairs := func(n int, key, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%s%d": %s`, key, i, value)
		}
		return "{" + b.String()[1:] + "}"
	}
	for name, c := range map[string]struct {
		tool middleware.Tool
		call string
		args string
	}{
		"10,000 issues":           {list, "list", `{"l": [` + strings.Repeat(`"x",`, 9999) + `"x"]}`},
		"10,000 unknown keys":     {wide, "wide", pairs(10_000, "propertie_", "1")},
		"2,000 wrong values":      {wide, "wide", pairs(2000, "property_", `"x"`)},
		"1 MB of one string":      {wide, "wide", `{"property_1": "` + strings.Repeat("x", 1_000_000) + `"}`},
		"1 MB of one key":         {wide, "wide", `{"` + strings.Repeat("x", 1_000_000) + `": 1}`},
		"1 MB that is not JSON":   {wide, "wide", strings.Repeat("ä", 500_000)},
		"1 MB for a name":         {wide, strings.Repeat("x", 1_000_000), "{}"},
		"1 MB for a passed name":  {wide, strings.Repeat("x", 1_000_000), "[]"},
		"long keys in each other": {list, "list", `{"l": [` + strings.Repeat(`{"`+strings.Repeat("k", 300)+`": 1},`, 3000) + `1]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := argsvalidate.Options{}
			if strings.Contains(name, "passed") {
				o.UnknownTools = argsvalidate.PassUnknown
			}
			v := argsvalidate.NewValidator(unmended(o))
			start := time.Now()
			tools := []middleware.Tool{c.tool}
			for n := range 5000 {
				tools = append(tools, tool(fmt.Sprintf("tool_%d", n), ""))
			}
			_, err := v.Validate(t.Context(), tools, call("1", c.call, c.args))
			e := failure(t, err)
			in := argsvalidate.FeedbackInput{Verdict: e.Verdicts[0], Tool: c.tool, Declared: true, Attempt: 2, Repeated: true}
			require.Less(t, len(e.Replies[0].Text()), 8000)
			require.Less(t, len(argsvalidate.DefaultFeedback(in)), 8000)
			require.Less(t, len(err.Error()), 500)
			require.Less(t, time.Since(start), 20*time.Second, "bounded, on a slow machine with -race")
			t.Log(len(e.Replies[0].Text()), time.Since(start))
		})
	}
}

func TestOwnFeedback(t *testing.T) {
	t.Parallel()
	var seen []argsvalidate.FeedbackInput
	o := argsvalidate.Options{Feedback: func(in argsvalidate.FeedbackInput) string {
		seen = append(seen, in)
		return "mine for " + in.Verdict.Call.Name
	}}
	turn := middlewaretest.Calls("note", goodNote, "weather", badWeather, "nosuch", "{}")
	out := run(t, o, request(), turn, turn, middlewaretest.Text("no"))
	require.Equal(t, "mine for weather", out.told(2)[2].Text())
	require.Equal(t, "mine for nosuch", out.told(2)[3].Text())
	require.Len(t, seen, 4)
	require.Equal(t, weather, seen[0].Tool)
	require.True(t, seen[0].Declared)
	require.Equal(t, []string{"weather", "note"}, seen[0].Available)
	require.Equal(t, 1, seen[0].Attempt)
	require.False(t, seen[0].Repeated)
	require.False(t, seen[1].Declared)
	require.Empty(t, seen[1].Tool)
	require.Equal(t, 2, seen[3].Attempt)
	require.True(t, seen[3].Repeated)
}

func TestPanickingFeedbackIsReplaced(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Feedback: func(argsvalidate.FeedbackInput) string { panic("hunter2") }}
	out := run(t, o, request(), middlewaretest.Calls("weather", badWeather), middlewaretest.Calls("weather", goodWeather))
	require.Contains(t, out.told(2)[1].Text(), "Tool 'weather' argument validation failed.")
	require.Equal(t, []string{"the built-in text was sent: Options.Feedback: panic: string"}, out.report.Notes)

	o.MaxAttempts, o.OnExhausted = 1, middleware.Raise
	out = run(t, o, request(), middlewaretest.Calls("weather", badWeather))
	require.Contains(t, failure(t, out.err).Replies[0].Text(), "Tool 'weather' argument validation failed.")
	require.Len(t, out.report.Notes, 1)
}

func TestLine(t *testing.T) {
	t.Parallel()
	issue := middleware.Issue{Pointer: "/config/thresholds/1", Message: "threshold must be positive"}
	require.Equal(t, "Tool 't' argument 'config.thresholds[1]': threshold must be positive", argsvalidate.Line("t", issue))
}

// TestLeaveOut: the reply offers to leave out an optional property with a value outside its enum,
// unless a keyword may require it.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more string // members of the schema
		want bool
	}{
		"optional":  {``, true},
		"required":  {`,"required":["u"]`, false},
		"counted":   {`,"minProperties":1`, false},
		"dependent": {`,"dependentRequired":{"a":["u"]}`, false},
		"a branch":  {`,"anyOf":[{"required":["u"]},{"required":["v"]}]`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool := middleware.Tool{Name: "t", Parameters: json.RawMessage(`{"type":"object","properties":{"u":{"enum":["a","b"]}}` + c.more + `}`)}
			_, err := argsvalidate.NewValidator(argsvalidate.Options{}).ValidateTurn(t.Context(),
				argsvalidate.Turn{Request: &middleware.Request{Tools: []middleware.Tool{tool}}, Calls: []middleware.ToolCall{{ID: "1", Name: "t", Arguments: `{"u":"zzz","v":1}`}}})
			var invalid *argsvalidate.Error
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, c.want, strings.Contains(invalid.Replies[0].Text(), "or leave it out"), invalid.Replies[0].Text())
		})
	}
}
