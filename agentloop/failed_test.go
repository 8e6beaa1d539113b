package agentloop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// counted is weather, and how often it ran.
func counted() (agentloop.Tool, *int) {
	n := new(int)
	return agentloop.NewTool("weather", "", func(_ context.Context, in trip) (agentloop.Result, error) {
		*n++
		return agentloop.Text("sunny in " + in.City), nil
	}), n
}

// Where a turn holds an invalid call none of its calls runs, and the model is
// told of each: without a layer that validates, with one that passes, and with
// one that raises.
func TestFailedTurn(t *testing.T) {
	t.Parallel()
	stack := func(o argsvalidate.Options) middleware.Middleware { o.MaxAttempts = 1; return argsvalidate.New(o) }
	for name, layer := range map[string]middleware.Middleware{
		"bare":  middleware.Chain(),
		"pass":  stack(argsvalidate.Options{OnExhausted: middleware.Pass}),
		"raise": stack(argsvalidate.Options{}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, ran := counted()
			model := middlewaretest.NewModel(t, calls("weather", oslo, "weather", bad), calls("weather", oslo), text("done"))
			s := goState()
			require.NoError(t, newAgent(t, layer(model.Call), tools(tool)).Run(t.Context(), s))
			require.Equal(t, 1, *ran)
			require.Contains(t, replies(s)[0], "was not executed")
			require.Contains(t, replies(s)[1], "Tool 'weather' argument validation failed")
			require.Equal(t, "sunny in Oslo", replies(s)[2])
			require.False(t, s.Messages[2].IsError)
			require.True(t, s.Messages[3].IsError)
			require.Len(t, s.Results, 1)
			require.Equal(t, 0, s.Failures)
			require.Equal(t, middleware.Usage{InputTokens: 30, OutputTokens: 15}, s.Usage)
		})
	}
}

// TestEmptyMessages: a step that ends with an empty message is a failed turn, and does not end
// the run.
func TestEmptyMessages(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]argsvalidate.Options{"pass": {OnExhausted: middleware.Pass}, "raise": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, ran := counted()
			s := goState()
			require.NoError(t, newAgent(t, argsvalidate.New(o)(modelOf(t, text(""), text(""), calls("weather", oslo), text("done"))), tools(tool)).Run(t.Context(), s))
			require.Equal(t, 1, *ran)
			require.Equal(t, "done", s.Messages[len(s.Messages)-1].Text())
		})
	}
}

// What the step calls invalid does not run, whatever the agent's own rules say.
func TestInvalidByTheStep(t *testing.T) {
	t.Parallel()
	never := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		return []middleware.Issue{{Message: "not on a Sunday"}}, nil
	})
	tool, ran := counted()
	o := tools(tool)
	o.MaxFailures = 1
	s := goState()
	chain := argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, Rules: []argsvalidate.Rule{never}})
	err := newAgent(t, chain(modelOf(t, calls("weather", oslo))), o).Run(t.Context(), s)
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.Zero(t, *ran)
	require.Contains(t, replies(s)[0], "not on a Sunday")

	unsaid := middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", call("a", "weather", oslo)), Report: middleware.Report{Status: middleware.Invalid}})
	s, err = run(t, o, unsaid)
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.Zero(t, *ran)
	require.Len(t, replies(s), 1)
}

// A call that was cut off is not run, although what is left of it is valid.
func TestTruncatedCall(t *testing.T) {
	t.Parallel()
	cut := middlewaretest.Reply(&middleware.Response{FinishReason: middleware.FinishLength,
		Message: middleware.Assistant("", call("a", "weather", oslo), call("b", "weather", oslo))})
	tool, ran := counted()
	s, err := run(t, tools(tool), cut, text("done"))
	require.NoError(t, err)
	require.Zero(t, *ran)
	require.Contains(t, replies(s)[1], "cut off")
}

// A custom call that was cut off does not run, with or without a layer that
// validates calls.
func TestTruncatedCustomCall(t *testing.T) {
	t.Parallel()
	c := middleware.ToolCall{ID: "a", Name: "patch", Arguments: "*** Begin", Kind: middleware.KindCustom}
	tool := says("patch", "applied")
	tool.Def.Kind = middleware.KindCustom
	cut := middlewaretest.Reply(&middleware.Response{FinishReason: middleware.FinishLength, Message: middleware.Assistant("", c)})
	whole := middlewaretest.Reply(&middleware.Response{FinishReason: middleware.FinishToolCalls, Message: middleware.Assistant("", c)})
	s, err := run(t, tools(tool), cut, whole, text("done"))
	require.NoError(t, err)
	require.Len(t, replies(s), 2)
	require.Contains(t, replies(s)[0], "cut off, because the answer reached its length limit\nNothing was executed. Send the call again")
	require.Equal(t, "applied", replies(s)[1])

	s = goState()
	o := tools(tool)
	o.Request = &middleware.Request{MaxTokens: 50}
	require.NoError(t, newAgent(t, argsvalidate.New(argsvalidate.Options{})(modelOf(t, cut, whole, text("done"))), o).Run(t.Context(), s))
	require.Equal(t, []string{"applied"}, replies(s), "asked for again inside of the step")
}

func TestMaxFailures(t *testing.T) {
	t.Parallel()
	wrong := calls("weather", bad)
	s, err := run(t, tools(weather()), wrong, wrong, calls("weather", oslo), wrong, wrong, wrong)
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.ErrorContains(t, err, "agentloop: too many failed turns in a row: 3")
	require.Equal(t, 3, s.Failures)
	// The caller goes on: it counts anew.
	a := newAgent(t, modelOf(t, wrong, wrong, text("done")), tools(weather()))
	require.NoError(t, a.Run(t.Context(), stored(t, s)))
}

// A tool that fails is not a failed turn.
func TestToolErrorsDoNotCount(t *testing.T) {
	t.Parallel()
	c := calls("t", "{}")
	s, err := run(t, tools(fails("t", errBoom)), c, c, c, c, text("done"))
	require.NoError(t, err)
	require.Equal(t, 0, s.Failures)
}

// A call that the provider itself refused is a failed turn as well, with and
// without a layer that asks again about it.
func TestRefusal(t *testing.T) {
	t.Parallel()
	refusal := middlewaretest.Fail(&middleware.ModelError{StatusCode: 400, Err: middleware.ErrInvalidToolCall})
	s, err := run(t, tools(weather()), refusal, calls("weather", oslo), text("done"))
	require.NoError(t, err)
	require.Contains(t, s.Messages[1].Text(), "was refused")
	require.Contains(t, s.Messages[1].Text(), "Available tools: weather.")
	require.Equal(t, middleware.Invalid, s.Steps[0].Status)

	chain := argsvalidate.New(argsvalidate.Options{MaxAttempts: 2})
	s = goState()
	require.NoError(t, newAgent(t, chain(modelOf(t, refusal, refusal, text("done"))), tools(weather())).Run(t.Context(), s))
	require.Equal(t, 2, s.Steps[0].Attempts)
	_, err = run(t, tools(weather()), refusal, refusal, refusal)
	require.ErrorIs(t, err, agentloop.ErrFailures)
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
}

// Any other error of the model ends the run, and what it cost is counted.
func TestModelError(t *testing.T) {
	t.Parallel()
	chain := argsvalidate.New(argsvalidate.Options{})
	s := goState()
	a := newAgent(t, chain(modelOf(t, calls("weather", bad), middlewaretest.Fail(errBoom))), tools(weather()))
	require.ErrorIs(t, a.Run(t.Context(), s), errBoom)
	require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, s.Usage)
	require.Len(t, s.Messages, 1)
	_, err := run(t, agentloop.Options{}, middlewaretest.Reply(nil))
	require.ErrorIs(t, err, middleware.ErrNoResponse)
}

// A rule that cannot decide ends the run. The answer is kept: it is validated when
// the run goes on.
func TestRuleError(t *testing.T) {
	t.Parallel()
	var down error = errBoom
	tool, ran := counted()
	o := tools(tool)
	o.Validator = argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{
		argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, down })}})
	a := newAgent(t, modelOf(t, calls("weather", oslo), text("done")), o)
	s := goState()
	require.ErrorIs(t, a.Run(t.Context(), s), errBoom)
	require.Zero(t, *ran)
	down = nil
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, 1, *ran)
}

func TestBudget(t *testing.T) {
	t.Parallel()
	ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 2})
	s := goState()
	call := budget.New()(modelOf(t, calls("weather", oslo), calls("weather", oslo)))
	err := newAgent(t, call, tools(weather())).Run(ctx, s)
	require.ErrorIs(t, err, budget.ErrExceeded)
	spent := b.Spent()
	require.Equal(t, 2, spent.ModelCalls)
	require.Equal(t, s.Usage, spent.Usage)
	require.Len(t, replies(s), 2)
}
