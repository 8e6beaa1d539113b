package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/middleware"
)

// No unit of work starts after the context has ended: no call, no repair, no
// rule. Each case ends the context in its first unit and counts the units.
func TestNoUnitStartsAfterTheContext(t *testing.T) {
	t.Parallel()
	calls := func(n int, args string) []middleware.ToolCall {
		all := make([]middleware.ToolCall, n)
		for i := range all {
			all[i] = call(fmt.Sprint(i), "t", args)
		}
		return all
	}
	for name, prepare := range map[string]func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall){
		"calls": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			tool := anyTool("t")
			tool.Decode = func(string) error { unit(); return nil }
			return argsvalidate.Options{}, tool, calls(100, `{}`)
		},
		"calls without a function": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			fix := func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
				unit()
				return "", false
			}
			return argsvalidate.Options{Fixers: []argsvalidate.Fixer{fix}}, anyTool("t"), append(calls(1, `[]`), calls(99, `{}`)...)
		},
		"rules of one call": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { unit(); return nil, nil })
			return argsvalidate.Options{Rules: []argsvalidate.Rule{rule, rule}}, anyTool("t"), calls(1, `{}`)
		},
		"a rule on many calls": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { unit(); return nil, nil })
			return argsvalidate.Options{Rules: []argsvalidate.Rule{rule}}, anyTool("t"), calls(100, `{}`)
		},
		"fixers": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			fix := func(context.Context, middleware.Tool, middleware.ToolCall, []middleware.Issue) (string, bool) {
				unit()
				return "", false
			}
			return argsvalidate.Options{Fixers: []argsvalidate.Fixer{fix, fix}}, anyTool("t"), calls(1, `[]`)
		},
		"repairs": func(unit func()) (argsvalidate.Options, middleware.Tool, []middleware.ToolCall) {
			numbers := tool("t", `{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`)
			numbers.Decode = func(string) error { unit(); return fmt.Errorf("no") }
			return argsvalidate.Options{}, numbers, calls(1, `{"a":"1","b":"2"}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var units atomic.Int32
			var calls []middleware.ToolCall
			var verdicts []middleware.Verdict
			var err error
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var o argsvalidate.Options
				var tool middleware.Tool
				o, tool, calls = prepare(func() { units.Add(1); cancel() })
				verdicts, err = argsvalidate.NewValidator(o).Validate(ctx, []middleware.Tool{tool}, calls...)
				synctest.Wait() // for what was started and not waited for
			})
			require.EqualValues(t, 1, units.Load())
			require.Error(t, err)
			require.Len(t, verdicts, len(calls))
			for i, v := range verdicts {
				require.Equal(t, calls[i].ID, v.Call.ID)
			}
			if len(calls) > 1 {
				require.ErrorIs(t, err, context.Canceled)
				require.Equal(t, []string{"undecided"}, codes(verdicts[len(calls)-1]))
			}
		})
	}
}

// A step whose context ends while an answer is validated asks no more, and
// words no feedback.
func TestNoFeedbackAfterTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	bad := tool("t", `{"properties":{"a":{"type":"integer"}}}`)
	told := 0
	o := argsvalidate.Options{Feedback: func(argsvalidate.FeedbackInput) string { told++; return "no" }}
	asked := 0
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		asked++
		cancel()
		return &middleware.Response{Message: middleware.Assistant("", call("1", "t", `{"a":"x"}`))}, nil
	}
	_, err := argsvalidate.New(o)(model)(ctx, request(bad))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.Equal(t, 1, asked)
	require.Zero(t, told)
}

// A hundred invalid calls read their schema once, for validation, for repairs
// and for the feedback.
func TestSchemasAreReadOnce(t *testing.T) {
	var properties strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&properties, `"unused%d":{"type":"string"},`, i)
	}
	big := tool("t", `{"properties":{"a":{"type":"integer"}},"required":["a"],"$defs":{"d":{"const":{`+properties.String()+`"z":1}}}}`)
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	bytes := func(n int) uint64 {
		calls := make([]middleware.ToolCall, n)
		for i := range calls {
			calls[i] = call(fmt.Sprint(i), "t", `{"a":[]}`)
		}
		return allocated(func() {
			_, err := v.Validate(t.Context(), []middleware.Tool{big}, calls...)
			require.Error(t, err)
		})
	}
	bytes(1) // fills the cache
	require.Less(t, bytes(100), uint64(10*len(big.Parameters)), "allocated by a hundred calls; read for each, the schema alone takes more than 100 times its size")
}

// A suggestion is looked for in the first few texts only, and the names of the
// tools are read once.
func TestUnknownToolsAreBounded(t *testing.T) {
	tools := make([]middleware.Tool, 2000)
	for i := range tools {
		tools[i] = anyTool(fmt.Sprintf("some_tool_of_the_server_%d", i))
	}
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	var failed *argsvalidate.Error
	bytes := func(n int) uint64 {
		calls := make([]middleware.ToolCall, n)
		for i := range calls {
			calls[i] = call(fmt.Sprint(i), fmt.Sprintf("some_tool_of_the_server_1%dx", i), `{}`)
		}
		return allocated(func() {
			_, err := v.Validate(t.Context(), tools, calls...)
			require.ErrorAs(t, err, &failed)
		})
	}
	few, many := bytes(2), bytes(100)
	require.Less(t, many, 4*few, "fifty times the calls")
	require.Contains(t, failed.Replies[0].Text(), "Did you mean")
	require.NotContains(t, failed.Replies[99].Text(), "Did you mean")
}

// Rules share one list of siblings.
func TestSiblingsAreShared(t *testing.T) {
	var seen [][]middleware.ToolCall
	rule := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		seen = append(seen, c.Siblings)
		return nil, nil
	})
	v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{rule}, Limits: argsvalidate.Limits{Calls: 10_000}})
	decoded := 0
	bytes := func(n int) uint64 {
		calls := counts(n)
		return allocated(func() {
			seen = nil
			_, err := v.Validate(t.Context(), []middleware.Tool{counted(&decoded)}, calls...)
			require.NoError(t, err)
		})
	}
	require.Less(t, bytes(1600), 16*bytes(200), "eight times the calls")
	calls := counts(3)
	seen = nil
	_, err := v.Validate(t.Context(), []middleware.Tool{counted(&decoded)}, calls...)
	require.NoError(t, err)
	require.Equal(t, [][]middleware.ToolCall{{calls[1], calls[2]}, {calls[2], calls[0]}, {calls[0], calls[1]}}, seen)
}

// The calls of one message share the work of validation. Past it they are
// unchecked, except those that are valid and cost little.
func TestCallsShareTheWork(t *testing.T) {
	dear := tool("dear", `{"properties":{"a":{"pattern":"(x+x+){1,300}y"}}}`)
	calls := make([]middleware.ToolCall, 100)
	for i := range calls {
		calls[i] = call(fmt.Sprint(i), "dear", `{"a":"`+strings.Repeat("x", 300)+`"}`)
	}
	calls[99] = call("99", weather.Name, goodWeather)
	verdicts, _ := argsvalidate.NewValidator(argsvalidate.Options{}).Validate(t.Context(), []middleware.Tool{dear, weather}, calls...)
	require.Equal(t, []string{"pattern"}, codes(verdicts[0]))
	require.Equal(t, []string{"unchecked"}, codes(verdicts[98]))
	require.Empty(t, verdicts[99].Issues)
}

// The context is obeyed inside the validation of one call.
func TestContextEndsWithinACall(t *testing.T) {
	t.Parallel()
	list := tool("list", `{"properties":{"a":{"items":{"type":"string"}}}}`)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	verdicts, err := v.Validate(ctx, []middleware.Tool{list}, call("1", "list", `{"a":[`+strings.Repeat("1,", 100_000)+`1]}`))
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []string{"undecided"}, codes(verdicts[0]))
}

// The calls of one message share the issues that are made. Each still gets a few.
func TestCallsShareTheIssues(t *testing.T) {
	names := make([]string, 60_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"name%d"`, i)
	}
	dear := tool("dear", `{"required":[`+strings.Join(names, ",")+`]}`)
	calls := make([]middleware.ToolCall, 100)
	for i := range calls {
		calls[i] = call(fmt.Sprint(i), "dear", `{}`)
	}
	calls[99] = call("99", weather.Name, goodWeather)
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	var verdicts []middleware.Verdict
	validate := func(calls []middleware.ToolCall) func() {
		return func() {
			verdicts, _ = v.Validate(t.Context(), []middleware.Tool{dear, weather}, calls...)
		}
	}
	one := allocated(validate(calls[:1]))
	require.Equal(t, "required", verdicts[0].Issues[0].Code)
	require.Len(t, verdicts[0].Issues, schema.MaxIssues)
	require.Less(t, allocated(validate(calls)), 25*one, "bytes allocated for a hundred calls")
	require.Equal(t, "required", verdicts[0].Issues[0].Code)
	require.Len(t, verdicts[98].Issues, 50)
	require.Empty(t, verdicts[99].Issues)
}

// What a schema declares is read once for a hundred invalid calls.
func TestDeclarationsAreReadOnce(t *testing.T) {
	properties := make([]string, 1500)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"declared_property_%d":{"type":"string"}`, i)
	}
	closed := tool("t", `{"additionalProperties":false,"properties":{`+strings.Join(properties, ",")+`}}`)
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	validate := func(n int) func() {
		calls := make([]middleware.ToolCall, n)
		for i := range calls {
			calls[i] = call(fmt.Sprint(i), "t", `{"declared_prop":1}`)
		}
		return func() { _, _ = v.Validate(t.Context(), []middleware.Tool{closed}, calls...) }
	}
	validate(1)() // fills the cache
	require.Less(t, allocated(validate(100)), uint64(100*5*len(closed.Parameters)), "bytes allocated for a hundred calls")
}
