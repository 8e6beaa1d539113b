package agentloop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// A call marked AtMostOnce does not start again after the state that was saved
// before it ran, and the model is told so. Decisions do not change that.
func TestAtMostOnce(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*agentloop.State) error{
		"":         func(*agentloop.State) error { return nil },
		"approved": func(s *agentloop.State) error { return s.Approve("call_1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ran := 0
			var saved []*agentloop.State
			tool := rawTool("pay", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
				ran++
				return agentloop.Text("paid"), nil
			})
			tool.AtMostOnce = true
			o := tools(tool)
			o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
				saved = append(saved, stored(t, s))
				return nil
			}
			_, err := run(t, o, calls("pay", "{}"), text("done"))
			require.NoError(t, err)
			require.Equal(t, 1, ran)

			lost := saved[1] // just before the tool ran
			require.NoError(t, decide(lost))
			require.NoError(t, newAgent(t, modelOf(t, text("sorry")), o).Run(t.Context(), lost))
			require.Equal(t, 1, ran)
			require.True(t, lost.Results[0].IsError)
			require.Contains(t, lost.Results[0].Text, "whether it ran is not known")
		})
	}
}

// A call marked AtMostOnce runs later if it did not begin: after a Checkpoint that
// failed, and after a sibling that ended the run.
func TestAtMostOnceThatDidNotBegin(t *testing.T) {
	t.Parallel()
	ran := 0
	tool := rawTool("pay", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		ran++
		return agentloop.Text("paid"), nil
	})
	tool.AtMostOnce, tool.Serial = true, true
	aborts := true
	o := tools(tool, rawTool("first", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		if aborts {
			return agentloop.Result{}, agentloop.Abort(errBoom)
		}
		return agentloop.Text("ok"), nil
	}))
	fail := 2
	o.Checkpoint = func(context.Context, *agentloop.State) error {
		if fail--; fail == 0 {
			return errBoom
		}
		return nil
	}
	s, err := run(t, o, calls("first", "{}", "pay", "{}"))
	require.ErrorContains(t, err, "checkpoint: boom")
	s = stored(t, s)
	require.ErrorIs(t, newAgent(t, scripted(0), o).Run(t.Context(), s), errBoom)
	require.Zero(t, ran)
	aborts = false
	require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
	require.Equal(t, 1, ran)
}

// A call that was cut off has an unknown outcome, too.
func TestAtMostOnceCutOff(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	tool := rawTool("pay", func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
		cancel()
		return agentloop.Result{}, ctx.Err()
	})
	tool.AtMostOnce = true
	s := goState()
	a := newAgent(t, modelOf(t, calls("pay", "{}"), text("done")), tools(tool))
	require.ErrorIs(t, a.Run(ctx, s), context.Canceled)
	require.NoError(t, a.Run(t.Context(), s))
	require.Contains(t, s.Results[0].Text, "whether it ran is not known")
}

// engine does each effect with a fresh copy of the state, as another process would.
type engine struct {
	t      *testing.T
	a      *agentloop.Agent
	decide func(*agentloop.State) error
	lose   int // the calls of Tools that report nothing
}

func (e *engine) Ask(s *agentloop.State) (agentloop.Step, error) {
	c := stored(e.t, s)
	step, err := e.a.Effects(e.t.Context()).Ask(c)
	*s = *stored(e.t, c)
	return step, err
}

func (e *engine) Await(s *agentloop.State) error {
	if err := e.decide(s); err != nil {
		return err
	}
	c := stored(e.t, s)
	err := e.a.Effects(e.t.Context()).Await(c)
	*s = *stored(e.t, c)
	return err
}

func (e *engine) Tools(calls []agentloop.CallInfo, done func(int, agentloop.Result, error)) error {
	if e.lose--; e.lose >= 0 {
		return nil
	}
	return e.a.Effects(e.t.Context()).Tools(calls, done)
}

// Drive comes to the same state as Run.
func TestDrive(t *testing.T) {
	t.Parallel()
	turns := func() middleware.ModelCall {
		return modelOf(t, calls("weather", oslo), calls("weather", bad), calls("weather", oslo, "none", "{}"), text("done"))
	}
	want, got := goState(), goState()
	got.RunID = want.RunID
	require.NoError(t, newAgent(t, turns(), tools(weather())).Run(t.Context(), want))
	require.NoError(t, agentloop.Drive(got, &engine{t: t, a: newAgent(t, turns(), tools(weather()))}))
	require.Equal(t, want.Messages, got.Messages)
	require.Equal(t, want.Usage, got.Usage)
	require.Equal(t, want.Steps, got.Steps)
}

// An engine that has lost a call reports nothing: the call runs again, and one
// marked AtMostOnce does not.
func TestDriveLostCalls(t *testing.T) {
	t.Parallel()
	ran := map[string]int{}
	count := func(name string) agentloop.Tool {
		return rawTool(name, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			ran[name]++
			return agentloop.Text(name), nil
		})
	}
	pay := count("pay")
	pay.AtMostOnce = true
	s := goState()
	a := newAgent(t, modelOf(t, calls("look", "{}", "pay", "{}"), text("done")), tools(count("look"), pay))
	require.NoError(t, agentloop.Drive(s, &engine{t: t, a: a, lose: 2}))
	require.Equal(t, map[string]int{"look": 1}, ran)
	require.Contains(t, s.Results[1].Text, "whether it ran is not known")
}

// An engine waits for decisions in Await. An edit that is not valid waits again.
func TestDriveDecisions(t *testing.T) {
	t.Parallel()
	edits := []string{bad, oslo}
	e := &engine{t: t, a: newAgent(t, modelOf(t, calls("weather", `{"city":"Rome"}`), text("done")), tools(weather().NeedsApproval()))}
	var problems []string
	e.decide = func(s *agentloop.State) error {
		p := s.Pending()[0]
		problems = append(problems, p.Problem)
		next := edits[0]
		edits = edits[1:]
		return s.Edit(p.Call.ID, next)
	}
	s := goState()
	require.NoError(t, agentloop.Drive(s, e))
	require.Equal(t, "sunny in Oslo", s.Results[0].Text)
	require.Len(t, problems, 2)
	require.Empty(t, problems[0])
	require.Contains(t, problems[1], "not valid")

	e.decide = func(*agentloop.State) error { return errBoom }
	e.a = newAgent(t, modelOf(t, calls("weather", oslo)), tools(weather().NeedsApproval()))
	require.ErrorIs(t, agentloop.Drive(goState(), e), errBoom)
}

// The effects of an activity: the calls that a conversation ends with are
// validated before the model is asked, limits hold over all of a run, and errors
// of a Source end it.
func TestEffects(t *testing.T) {
	t.Parallel()
	s := agentloop.NewState(middleware.User("go"), middleware.Assistant("", call("a", "weather", oslo)))
	require.NoError(t, agentloop.Drive(s, &engine{t: t, a: newAgent(t, modelOf(t, text("done")), tools(weather()))}))
	require.Equal(t, []string{"sunny in Oslo"}, replies(s))

	o := tools(weather())
	o.MaxSteps = 2
	err := agentloop.Drive(goState(), &engine{t: t, a: newAgent(t, modelOf(t, calls("weather", oslo), calls("weather", oslo)), o)})
	require.ErrorIs(t, err, agentloop.ErrMaxSteps)

	o = tools(weather())
	o.StopWhen = func(s *agentloop.State) bool { return len(s.Steps) > 0 }
	s = goState()
	require.NoError(t, agentloop.Drive(s, &engine{t: t, a: newAgent(t, modelOf(t, calls("weather", oslo)), o)}))
	require.Empty(t, s.Results)
	require.NotEmpty(t, s.Messages[1].ToolCalls)

	gone := errors.New("gone")
	o = tools()
	o.Source = func(context.Context) ([]agentloop.Tool, error) { return nil, gone }
	e := newAgent(t, scripted(0), o).Effects(t.Context())
	_, err = e.Ask(goState())
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, e.Await(goState()), gone)
	require.ErrorIs(t, e.Tools(nil, nil), gone)
	_, err = newAgent(t, scripted(0), tools()).Effects(t.Context()).Ask(&agentloop.State{})
	require.ErrorIs(t, err, agentloop.ErrNoMessages)
}

// A call that was validated with another schema does not run in an activity.
func TestOtherSchema(t *testing.T) {
	t.Parallel()
	ran := 0
	tool := func(schema string) agentloop.Tool {
		return agentloop.RawTool("pay", "", []byte(schema), func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			ran++
			return agentloop.Text("paid"), nil
		})
	}
	old := newAgent(t, modelOf(t, calls("pay", "{}"), text("done")), tools(tool(`{"type":"object"}`)))
	now := newAgent(t, scripted(0), tools(tool(`{"type":"object","required":["to"]}`), says("other", "ok")))
	s := goState()
	e := &engine{t: t, a: old}
	_, err := e.Ask(s)
	require.NoError(t, err)
	stop := func(place int, r agentloop.Result, err error) {
		require.Equal(t, 0, place)
		require.NoError(t, err)
		require.True(t, r.IsError)
		require.Contains(t, r.Text, "Call it again")
	}
	swapped := &swap{engine: e, tools: func(calls []agentloop.CallInfo, done func(int, agentloop.Result, error)) error {
		require.NoError(t, now.Effects(t.Context()).Tools(calls, stop))
		return now.Effects(t.Context()).Tools(calls, done)
	}}
	require.NoError(t, agentloop.Drive(s, swapped))
	require.Zero(t, ran)
	require.Contains(t, s.Results[0].Text, "did not run")
}

// swap is an engine whose tools run elsewhere.
type swap struct {
	*engine
	tools func([]agentloop.CallInfo, func(int, agentloop.Result, error)) error
}

func (s *swap) Tools(calls []agentloop.CallInfo, done func(int, agentloop.Result, error)) error {
	return s.tools(calls, done)
}
