package agentloop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

var (
	calls = middlewaretest.Calls
	text  = middlewaretest.Text
)

func TestUntilAnswer(t *testing.T) {
	t.Parallel()
	s, err := run(t, tools(weather()), calls("weather", oslo), text("It is sunny."))
	require.NoError(t, err)
	require.Equal(t, "It is sunny.", s.Answer())
	require.Equal(t, []string{"sunny in Oslo"}, replies(s))
	require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, s.Usage)
	require.Len(t, s.Steps, 2)
	require.Len(t, s.Messages, 4)
}

func TestNothingToDo(t *testing.T) {
	t.Parallel()
	a := newAgent(t, middlewaretest.NewModel(t).Call, tools(weather()))
	require.ErrorIs(t, a.Run(t.Context(), &agentloop.State{}), agentloop.ErrNoMessages)
	require.NoError(t, a.Run(t.Context(), agentloop.NewState(middleware.User("hi"), middleware.Assistant("hello"))), "answered already: the model is not asked")
}

func TestOnce(t *testing.T) {
	t.Parallel()
	o := tools(weather())
	o.StopWhen = once
	s := goState()
	a := newAgent(t, middlewaretest.NewModel(t, calls("weather", oslo), text("done")).Call, o)
	require.NoError(t, a.Run(t.Context(), s))
	require.Len(t, s.Turn(), 1, "the tool did not run")
	require.NoError(t, a.Run(t.Context(), s))
	require.Empty(t, s.Turn())
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, "done", s.Answer())
}

func TestUntilTool(t *testing.T) {
	t.Parallel()
	n := 0
	flaky := rawTool("flaky", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		if n++; n == 1 {
			return agentloop.Result{}, errBoom
		}
		return agentloop.Text("ok"), nil
	})
	o := tools(flaky, says("other", "fine"))
	o.StopWhen = agentloop.ToolSucceeded("flaky")
	s, err := run(t, o, calls("other", "{}"), calls("flaky", "{}"), calls("flaky", "{}"))
	require.NoError(t, err)
	require.Equal(t, []string{"fine", "boom", "ok"}, replies(s))

	o = tools(fails("flaky", errBoom), says("other", "fine"))
	o.StopWhen = agentloop.ToolUsed("flaky")
	_, err = run(t, o, calls("other", "{}"), calls("flaky", "{}"))
	require.NoError(t, err, "an error is a use")

	o.StopWhen = agentloop.ToolSucceeded()
	_, err = run(t, o, calls("flaky", "{}"), calls("other", "{}"))
	require.NoError(t, err)

	o.StopWhen = agentloop.AnyOf(agentloop.ToolSucceeded("flaky"), func(s *agentloop.State) bool { return len(s.Steps) == 2 })
	s, err = run(t, o, calls("flaky", "{}"), calls("flaky", "{}"))
	require.NoError(t, err)
	require.Len(t, s.Turn(), 1, "the own condition held right after the model step")
	require.PanicsWithValue(t, "agentloop: ToolUsed: no tool is named", func() { agentloop.ToolUsed() })
}

// What an earlier question brought about does not end the next run.
func TestUntilToolOfThisQuestion(t *testing.T) {
	t.Parallel()
	o := tools(says("submit", "ok"), says("look", "seen"))
	o.StopWhen = agentloop.ToolSucceeded("submit")
	s := goState()
	a := newAgent(t, middlewaretest.NewModel(t, calls("submit", "{}"), calls("look", "{}"), calls("submit", "{}")).Call, o)
	require.NoError(t, a.Run(t.Context(), s))
	require.NoError(t, s.Append(middleware.User("again")))
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"ok", "seen", "ok"}, replies(s))
}

func TestMaxSteps(t *testing.T) {
	t.Parallel()
	o := tools(says("t", "ok"))
	o.MaxSteps = 2
	_, err := run(t, o, calls("t", "{}"), text("done"))
	require.NoError(t, err, "an answer in the last step is in time")

	o.StopWhen = agentloop.ToolUsed("u")
	o.Tools = append(o.Tools, says("u", "ok"))
	_, err = run(t, o, calls("t", "{}"), calls("u", "{}"))
	require.NoError(t, err, "so is success of its tools")

	s, err := run(t, o, calls("t", "{}"), calls("t", "{}"))
	require.ErrorIs(t, err, agentloop.ErrMaxSteps)
	require.EqualError(t, err, "agentloop: too many steps: 2")
	require.Len(t, replies(s), 2, "the tools of the last step ran")

	many := make([]middlewaretest.Turn, 25)
	for i := range many {
		many[i] = calls("t", "{}")
	}
	_, err = run(t, tools(says("t", "ok")), many...)
	require.ErrorIs(t, err, agentloop.ErrMaxSteps)
}

// Leaving the iterator is allowed at every step, and the state goes on.
func TestStepsLeftAnywhere(t *testing.T) {
	t.Parallel()
	script := []middlewaretest.Turn{calls("weather", oslo), calls("weather", bad), calls("weather", oslo, "weather", oslo), text("done")}
	whole, err := run(t, tools(weather()), script...)
	require.NoError(t, err)
	a := newAgent(t, middlewaretest.NewModel(t, script...).Call, tools(weather()))
	s := goState()
	var kinds []string
	for s.Answer() != "done" {
		for step, err := range a.Steps(t.Context(), s) {
			require.NoError(t, err)
			switch {
			case step.Response != nil:
				kinds = append(kinds, "model")
			case len(step.Results) > 0:
				kinds = append(kinds, "tools")
			}
			break
		}
		s = stored(t, s)
	}
	require.Equal(t, []string{"model", "tools", "model", "model", "tools", "model"}, kinds)
	require.Equal(t, whole.Messages, s.Messages)
}

// A conversation may come with calls that have no reply: they are validated and
// run first.
func TestHistoryEndsInCalls(t *testing.T) {
	t.Parallel()
	a := newAgent(t, middlewaretest.NewModel(t, text("done")).Call, tools(weather()))
	s := agentloop.NewState(middleware.User("go"), middleware.Assistant("", call("a", "weather", oslo)))
	require.ErrorIs(t, s.Append(middleware.User("and?")), agentloop.ErrPending)
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"sunny in Oslo"}, replies(s))

	a = newAgent(t, middlewaretest.NewModel(t, text("done")).Call, tools(weather()))
	s = agentloop.NewState(middleware.User("go"), middleware.Assistant("", call("a", "weather", `nonsense`), call("a", "weather", oslo)))
	require.NoError(t, a.Run(t.Context(), s))
	require.Len(t, replies(s), 2)
	require.True(t, s.Messages[2].IsError)
	require.Equal(t, "{}", s.Messages[1].ToolCalls[0].Arguments, "what is not JSON is not sent on")
	require.Empty(t, s.Results)
}

func TestNextQuestion(t *testing.T) {
	t.Parallel()
	a := newAgent(t, middlewaretest.NewModel(t, text("one"), text("two")).Call, agentloop.Options{})
	s := goState()
	require.NoError(t, a.Run(t.Context(), s))
	require.NoError(t, s.Append(middleware.User("and?")))
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, "two", s.Answer())
	require.Len(t, s.Messages, 4)
	require.Empty(t, (&agentloop.State{}).Answer())
}
