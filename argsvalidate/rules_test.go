package argsvalidate_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// refuseAll is a rule that no call satisfies.
var refuseAll = argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
	return []middleware.Issue{{Message: "no"}}, nil
})

func withRules(rules ...argsvalidate.Rule) argsvalidate.Options {
	return argsvalidate.Options{Rules: rules}
}

func TestRulesRunInOrderOnWhatWouldRun(t *testing.T) {
	t.Parallel()
	var seen []string
	rule := func(n int) argsvalidate.Rule {
		return argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
			seen = append(seen, fmt.Sprint(n, " ", c.Name, " ", c.Arguments))
			return []middleware.Issue{{Pointer: "/text", Message: fmt.Sprint("rule ", n)}}, nil
		})
	}
	v := verdictOf(t, withRules(rule(0), rule(1)), note, `{"text": "a", "tags": null}`)
	require.Equal(t, []string{`0 note {"text": "a"}`, `1 note {"text": "a"}`}, seen, "the second sees the same call although the first has refused it")
	require.Equal(t, []middleware.Issue{
		{Code: "rule", Pointer: "/text", Message: "rule 0", Rule: "rule 0"}, {Code: "rule", Pointer: "/text", Message: "rule 1", Rule: "rule 1"},
	}, v.Issues)
	require.Equal(t, `{"text": "a", "tags": null}`, v.Call.Arguments, "an invalid call stays as it was sent")
	require.Empty(t, v.Changes)
}

func TestRulesDoNotRunOnCallsThatFailedTheirSchema(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { panic("not to be called") })
	for _, args := range []string{badNote, `{`, `[]`} {
		require.NotContains(t, codes(verdictOf(t, withRules(rule), note, args)), "rule")
	}
}

func TestRulesRunWithoutASchema(t *testing.T) {
	t.Parallel()
	o := withRules(refuseAll)
	require.Equal(t, []string{"rule"}, codes(verdictOf(t, o, tool("free", ""), "{}")))
	o.UnknownTools = argsvalidate.PassUnknown
	for _, tools := range [][]middleware.Tool{nil, {weather}} {
		verdicts, err := argsvalidate.NewValidator(o).Validate(t.Context(), tools, call("1", "other", "{}"))
		require.ErrorIs(t, err, argsvalidate.ErrInvalid)
		require.Equal(t, []string{"rule"}, codes(verdicts[0]))
	}
}

func TestWhatARuleSees(t *testing.T) {
	t.Parallel()
	type key struct{}
	var seen []argsvalidate.Call
	rule := argsvalidate.RuleFunc(func(ctx context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		require.Equal(t, "alice", ctx.Value(key{}))
		seen = append(seen, *c)
		return nil, nil
	})
	ctx := context.WithValue(t.Context(), key{}, "alice")
	req := request()
	a, b := call("1", "note", `{"text": "a", "tags": null}`), call("2", "weather", badWeather)
	model := middlewaretest.NewModel(t, answer(a, b))
	o := withRules(rule)
	o.MaxAttempts = 1
	_, err := argsvalidate.New(unmended(o))(model.Call)(ctx, req)
	require.ErrorIs(t, err, argsvalidate.ErrExhausted)
	require.Len(t, seen, 1)
	require.Equal(t, call("1", "note", `{"text": "a"}`), seen[0].ToolCall)
	require.Equal(t, note, seen[0].Tool)
	require.Equal(t, []middleware.ToolCall{b}, seen[0].Siblings, "as sent")
	require.Same(t, req, seen[0].Request)

	_, err = argsvalidate.NewValidator(o).Validate(ctx, req.Tools, a)
	require.NoError(t, err)
	require.Equal(t, &middleware.Request{Tools: req.Tools}, seen[1].Request)
	require.Empty(t, seen[1].Siblings)
}

func TestIssueCodesOfRules(t *testing.T) {
	t.Parallel()
	shared := []middleware.Issue{{Message: "bare"}, {Code: "own", Message: "with a code"}}
	rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return shared, nil })
	require.Equal(t, []string{"rule", "own"}, codes(verdictOf(t, withRules(rule), note, goodNote)))
	require.Empty(t, shared[0].Code, "the rule's own slice is not changed")
}

var errDown = errors.New("database is down")

// undecided are rules that cannot decide, each in its way. The last one ignores
// its context.
func undecided(stop <-chan struct{}) map[string]argsvalidate.Rule {
	return map[string]argsvalidate.Rule{
		"error": argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errDown }),
		"error beside issues": argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
			return []middleware.Issue{{Message: "never said"}}, errDown
		}),
		"panic": argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { panic("hunter2") }),
		"late": argsvalidate.RuleFunc(func(ctx context.Context, _ *argsvalidate.Call) ([]middleware.Issue, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		"hanging":       argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { <-stop; return nil, nil }),
		"nil function":  argsvalidate.RuleFunc(nil),
		"FieldRule":     argsvalidate.FieldRule[string]{Path: "/text", Message: "m", Valid: func(string) bool { panic("hunter2") }},
		"typed, panics": argsvalidate.ForTool("note", func(context.Context, struct{}, *argsvalidate.Call) ([]middleware.Issue, error) { panic("hunter2") }),
	}
}

// A database that is down is not the model's fault: the step ends, under Pass
// too, and nothing of it is said to the model.
func TestRuleThatCannotDecideEndsTheStep(t *testing.T) {
	t.Parallel()
	for name := range undecided(nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stop := make(chan struct{})
				defer close(stop)
				o := withRules(undecided(stop)[name])
				o.OnExhausted = middleware.Pass
				start := time.Now()
				out := run(t, o, request(), middlewaretest.Calls("note", goodNote))
				require.LessOrEqual(t, time.Since(start), 10*time.Second)
				require.ErrorIs(t, out.err, argsvalidate.ErrRule)
				require.NotErrorIs(t, out.err, argsvalidate.ErrExhausted)
				require.Equal(t, "rule_failed", failure(t, out.err).ErrorType())
				require.Contains(t, out.err.Error(), "rule 0 on tool note: ")
				if name == "error" {
					require.ErrorIs(t, out.err, errDown)
				}
				require.Len(t, out.report.Attempts, 1)
				var panicked *middleware.PanicError
				require.Equal(t, slices.Contains([]string{"panic", "nil function", "FieldRule", "typed, panics"}, name), errors.As(out.err, &panicked), name)
				if panicked != nil {
					require.NotContains(t, out.err.Error(), "hunter2")
					require.Contains(t, string(panicked.Stack), "argsvalidate", "where it happened")
				}
				require.Equal(t, name == "late" || name == "hanging", errors.Is(out.err, context.DeadlineExceeded), name)

				_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{note}, call("1", "note", goodNote))
				require.ErrorIs(t, err, argsvalidate.ErrRule)
				require.NotErrorIs(t, err, argsvalidate.ErrInvalid)
			})
		})
	}
}

func TestRuleErrorAsIssue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		for name, rule := range undecided(stop) {
			o := withRules(rule)
			o.OnRuleError, o.MaxAttempts = argsvalidate.AsIssue, 2
			out := run(t, o, request(), middlewaretest.Calls("note", goodNote), middlewaretest.Text("later"))
			told := out.told(2)[1].Text()
			require.Equal(t, "Tool 'note': this call could not be checked, so it was not executed. No mistake was found in it. Send it again as it is, or go on without it.", told, name)
			require.Equal(t, []string{"undecided"}, codes(out.report.Attempts[0].Verdicts[0]))
			require.Len(t, out.report.Failures, 1)
			require.NotContains(t, told, "database")
			require.NotContains(t, told, "hunter2")
			require.Len(t, out.report.Notes, 1, "the operator is told why")
			require.Contains(t, out.report.Notes[0], "rule 0 on tool note: ")
		}
	})
}

func TestRuleErrorIgnored(t *testing.T) {
	t.Parallel()
	broken := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errDown })
	o := withRules(broken)
	o.OnRuleError = argsvalidate.Ignore
	out := run(t, o, request(), middlewaretest.Calls("note", goodNote))
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{"rule 0 on tool note: database is down"}, out.report.Notes)

	o.Rules = append(o.Rules, refuseAll)
	require.Equal(t, []string{"rule"}, codes(verdictOf(t, o, note, goodNote)), "the others still count")
}

func TestRuleTimeoutIsForEachCheck(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := argsvalidate.RuleFunc(func(ctx context.Context, _ *argsvalidate.Call) ([]middleware.Issue, error) {
			deadline, ok := ctx.Deadline()
			require.True(t, ok)
			require.Equal(t, time.Minute, time.Until(deadline))
			time.Sleep(50 * time.Second)
			return nil, nil
		})
		o := withRules(slow, slow)
		o.RuleTimeout = time.Minute
		require.True(t, verdictOf(t, o, note, goodNote).OK())
	})
}

func TestRuleNameOfAnUndeclaredToolIsNotQuoted(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errDown }))
	o.UnknownTools = argsvalidate.PassUnknown
	out := run(t, o, request(), middlewaretest.Calls("hunter2", "{}"))
	require.EqualError(t, out.err, "argsvalidate: rule failed: rule 0 on an undeclared tool: database is down")
}

func TestForTool(t *testing.T) {
	t.Parallel()
	type args struct {
		From int `json:"from"`
		To   int `json:"to"`
		Deep struct {
			N int8 `json:"n"`
		} `json:"deep"`
	}
	rule := argsvalidate.ForTool("range", func(_ context.Context, a args, c *argsvalidate.Call) ([]middleware.Issue, error) {
		require.Equal(t, "range", c.Name)
		if a.From > a.To {
			return []middleware.Issue{{Pointer: "/from", Message: "from is after to"}}, nil
		}
		return nil, nil
	})
	for _, c := range []struct {
		tool, args string
		want       []middleware.Issue
	}{
		{"range", `{"from": 1, "to": 2}`, nil},
		{"range", `{"from": 3, "to": 2}`, []middleware.Issue{{Code: "rule", Pointer: "/from", Message: "from is after to", Rule: "rule 0"}}},
		{"range", `{"from": "x"}`, []middleware.Issue{{Code: "decode", Pointer: "/from", Message: "wanted a value that fits int; sent string", Rule: "rule 0"}}},
		{"other", `{"from": "x"}`, nil},
	} {
		require.Equal(t, c.want, verdictOf(t, withRules(rule), tool(c.tool, ""), c.args).Issues, c.args)
	}
	v := verdictOf(t, withRules(rule), tool("range", ""), `{"deep": {"n": 1000}}`)
	require.Equal(t, []string{"decode"}, codes(v))
	require.Equal(t, []string{"/deep/n"}, pointers(v))
}

func TestForbidPatternAtAnyDepth(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.ForbidPattern(regexp.MustCompile(`tmp_\d+`), "{value} is temporary", "t")
	args := `{"a": "tmp_1", "b": ["x", "see tmp_2"], "c": [{"d/e": "tmp_3"}], "tmp_4": 5}`
	v := verdictOf(t, withRules(rule), tool("t", ""), args)
	require.Equal(t, []middleware.Issue{
		{Code: "rule", Pointer: "/a", Message: "tmp_1 is temporary", Rule: "rule 0"},
		{Code: "rule", Pointer: "/b/1", Message: "tmp_2 is temporary", Rule: "rule 0"},
		{Code: "rule", Pointer: "/c/0/d~1e", Message: "tmp_3 is temporary", Rule: "rule 0"},
	}, v.Issues)
	require.True(t, verdictOf(t, withRules(rule), tool("u", ""), args).OK())
	require.PanicsWithValue(t, "argsvalidate: ForbidPattern: re: must not be nil", func() { argsvalidate.ForbidPattern(nil, "") })

	issues, err := rule.Check(t.Context(), &argsvalidate.Call{ToolCall: call("1", "t", `["tmp_1"]`)})
	require.NoError(t, err)
	require.Len(t, issues, 1, "not only in objects")
	_, err = rule.Check(t.Context(), &argsvalidate.Call{ToolCall: call("1", "t", `{"a": "tmp_1"`)})
	require.Error(t, err, "what cannot be read is not passed")
}

func TestInternalIDs(t *testing.T) {
	t.Parallel()
	const id = "LC_0f0e0d0c-0000-4000-8000-ABCDEF012345"
	for args, found := range map[string]bool{
		`{"a": "` + id + `"}`:                 true,
		`{"a": {"b": [{"c": "` + id + `"}]}}`: true,
		`{"a": "use ` + id + `, please"}`:     true,
		`{"a": "` + id + `\n"}`:               true,
		`{"a": "` + id[:30] + `"}`:            false,
		`{"a": "x` + id + `"}`:                false,
		`{"` + id + `": 1}`:                   false,
	} {
		v := verdictOf(t, withRules(argsvalidate.InternalIDs()), tool("t", ""), args)
		require.Equal(t, found, !v.OK(), args)
		if found {
			require.Contains(t, v.Issues[0].Message, "'"+id+"'")
			require.Contains(t, v.Issues[0].Message, "NOT a valid data identifier")
		}
	}
}
