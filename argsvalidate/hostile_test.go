package argsvalidate_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestPanickingSinkEndsTheStep(t *testing.T) {
	t.Parallel()
	req := request()
	req.Sink = func(middleware.Event) error { panic("hunter2") }
	model := middlewaretest.NewModel(t, middlewaretest.Calls("note", goodNote))
	_, err := argsvalidate.New(argsvalidate.Options{})(model.Call)(t.Context(), req)
	require.EqualError(t, err, "argsvalidate: the request's sink panicked: string")
}

// The end of the context says nothing about a call.
func TestCancellationIsNoVerdict(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	typed := tool("typed", "")
	typed.Decode = func(string) error { return nil }
	verdicts, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(ctx, []middleware.Tool{typed}, call("1", "typed", `{}`))
	if err != nil { // the function may have been back first
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, "undecided", verdicts[0].Issues[0].Code)
	}
	for _, on := range []argsvalidate.OnRuleError{argsvalidate.FailStep, argsvalidate.AsIssue, argsvalidate.Ignore} {
		o := withRules(argsvalidate.RuleFunc(func(ctx context.Context, _ *argsvalidate.Call) ([]middleware.Issue, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}))
		o.OnRuleError = on
		_, err := argsvalidate.NewValidator(o).Validate(ctx, []middleware.Tool{note}, call("1", "note", goodNote))
		require.ErrorIs(t, err, context.Canceled, "a permission that was not given is not granted")
	}
}

// A function that hangs costs one time-out a message, not one a call.
func TestLateFunctionIsNotCalledAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		defer close(stop)
		hang := func() { <-stop }
		typed := tool("typed", "")
		typed.Decode = func(string) error { hang(); return nil }
		o := argsvalidate.Options{RuleTimeout: time.Minute, Feedback: func(argsvalidate.FeedbackInput) string { hang(); return "" },
			Fixers: []argsvalidate.Fixer{func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
				hang()
				return "", false
			}}}
		var calls []middleware.ToolCall
		for i := range 100 {
			calls = append(calls, call(fmt.Sprint(i), "typed", `{}`))
		}
		start := time.Now()
		_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{typed}, calls...)
		require.ErrorIs(t, err, argsvalidate.ErrInvalid)
		require.Equal(t, 3*time.Minute, time.Since(start), "Decode, the fixer and Feedback, once each")
	})
}

func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		runtime.Goexit()
		return nil, nil
	}))
	_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{note}, call("1", "note", goodNote))
	require.EqualError(t, err, "argsvalidate: rule failed: rule 0 on tool note: it ended its goroutine")
}

// A panic's text may be what the model wrote.
func TestPanicTextIsNotTold(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) { panic(c.Arguments) }))
	_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{note}, call("1", "note", `{"text": "hunter2"}`))
	require.NotContains(t, err.Error(), "hunter2")
	require.Contains(t, err.Error(), "panic: string")
}

// A rule that could not decide leaves no call looking valid.
func TestUndecidedCallsAreNotValid(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errors.New("down") }))
	verdicts, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{note}, call("1", "note", goodNote), call("2", "note", goodNote))
	require.ErrorIs(t, err, argsvalidate.ErrRule)
	var e *argsvalidate.Error
	require.ErrorAs(t, err, &e)
	require.Nil(t, e.Replies, "nothing to tell the model")
	for _, v := range verdicts {
		require.Equal(t, []string{"undecided"}, codes(v))
	}
	out := run(t, o, request(), middlewaretest.Calls("note", goodNote))
	require.Equal(t, middleware.Invalid, out.report.Status)
}

// encoding/json takes "Amount" for the field amount, and the last one wins: a
// rule would see another value than the tool.
func TestForToolRefusesKeysThatDifferInCaseOnly(t *testing.T) {
	t.Parallel()
	rule := argsvalidate.ForTool("pay", func(_ context.Context, args struct{ Amount int }, _ *argsvalidate.Call) ([]middleware.Issue, error) {
		if args.Amount > 100 {
			return []middleware.Issue{{Message: "too much"}}, nil
		}
		return nil, nil
	})
	pay := tool("pay", `{"properties":{"amount":{"type":"integer"}}}`)
	require.Equal(t, []string{"duplicate_key"}, codes(verdictOf(t, withRules(rule), pay, `{"amount": 5000, "Amount": 1}`)))
	require.True(t, verdictOf(t, withRules(rule), pay, `{"amount": 5}`).OK())
}

// Raised limits do not switch rules off.
func TestRulesReadWhatTheValidatorAccepted(t *testing.T) {
	t.Parallel()
	o := withRules(argsvalidate.InternalIDs(), argsvalidate.FieldRule[int]{Path: "/n", Valid: func(n int) bool { return n < 10 }, Message: "too many"})
	o.Limits = argsvalidate.Limits{Bytes: 4 << 20, Depth: 100}
	args := `{"s": "` + strings.Repeat("x", 1<<20) + `", "id": "lc_12345678-1234-1234-1234-123456789abc", "n": 5000,
		"deep": ` + strings.Repeat("[", 90) + strings.Repeat("]", 90) + `}`
	require.Equal(t, []string{"rule", "rule"}, codes(verdictOf(t, o, tool("t", ""), args)))
}

func TestOptionsAreTheValidatorsOwn(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{"note": {MaxAttempts: 1}}}
	v := argsvalidate.NewValidator(o)
	o.PerTool["note"] = argsvalidate.ToolOptions{Strip: 200}
	_, err := v.Validate(t.Context(), []middleware.Tool{note}, call("1", "note", goodNote))
	require.NoError(t, err)
}

func TestEmptyNameIsNoTool(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{UnknownTools: argsvalidate.PassUnknown}
	_, err := argsvalidate.NewValidator(o).Validate(t.Context(), []middleware.Tool{{}}, call("1", "", `{}`))
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
}

func TestNilModelCallPanicsWhenTheStackIsBuilt(t *testing.T) {
	t.Parallel()
	require.PanicsWithValue(t, "argsvalidate: New: the model call is nil", func() { argsvalidate.New(argsvalidate.Options{})(nil) })
}

// Whatever a tool or a rule says of a call, the model is told in a few words.
func TestWordsOfOthersAreBounded(t *testing.T) {
	t.Parallel()
	typed := tool("typed", "")
	typed.Decode = func(string) error { return errors.New(strings.Repeat("no ", 1<<20)) }
	_, err := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), []middleware.Tool{typed}, call("1", "typed", `{}`))
	var e *argsvalidate.Error
	require.ErrorAs(t, err, &e)
	require.Less(t, len(e.Replies[0].Text()), 8300)
}

// White space around null is not a schema either.
func TestNullIsNoSchema(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	for _, parameters := range []string{"", "null", " null\n"} {
		validated, notes := v.Inspect(middleware.Tool{Name: "t", Parameters: []byte(parameters)})
		require.False(t, validated)
		require.Empty(t, notes, "%q", parameters)
	}
}
