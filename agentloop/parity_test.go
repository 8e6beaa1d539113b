package agentloop_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/agentlooptest"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/retry"
)

// The tests of this file show rows of docs/parity.md that no other test shows.

type parityArgs struct {
	City string `json:"city"`
	Days int    `json:"days,omitempty"`
}

const parityOslo = `{"city":"Oslo"}`

// parityTool is a tool that answers with its city.
func parityTool(name string) agentloop.Tool {
	return agentloop.NewTool(name, "About a city.", func(_ context.Context, args parityArgs) (agentloop.Result, error) {
		return agentloop.Text(name + " of " + args.City), nil
	})
}

// parityRun asks one question of an agent whose model plays turns under
// argsvalidate.
func parityRun(ctx context.Context, t *testing.T, tools []agentloop.Tool, turns ...middlewaretest.Turn) (*agentloop.State, *middlewaretest.Model) {
	t.Helper()
	model := middlewaretest.NewModel(t, turns...)
	agent, err := agentloop.New(argsvalidate.New(argsvalidate.Options{})(model.Call), agentloop.Options{Tools: tools})
	require.NoError(t, err)
	s := agentloop.NewState(middleware.User("Well?"))
	require.NoError(t, agent.Run(ctx, s))
	return s, model
}

// Empty arguments are an object before a tool's own parser reads them, the
// caller's context reaches the tool, and its side value stays in the program.
func TestParityWhatAToolGetsAndGives(t *testing.T) {
	t.Parallel()
	type tenant struct{}
	var parsed, ran []string
	tool := agentloop.ParsedTool(middleware.Tool{Name: "t"}, func(arguments string) (string, error) {
		parsed = append(parsed, arguments)
		return arguments, nil
	}, func(ctx context.Context, arguments string) (agentloop.Result, error) {
		ran = append(ran, arguments)
		return agentloop.Result{Text: ctx.Value(tenant{}).(string), Value: "hunter2"}, nil
	})
	tool.Serial = true // it notes what it gets
	s, model := parityRun(context.WithValue(t.Context(), tenant{}, "acme"), t, []agentloop.Tool{tool},
		middlewaretest.Calls("t", "", "t", "null"), middlewaretest.Text("Done."))
	require.Equal(t, []string{"{}", "{}"}, ran)
	require.Subset(t, []string{"{}"}, parsed)
	require.Equal(t, "acme", s.Messages[2].Text())
	v, ok := agentloop.Value[string](s)
	require.True(t, ok)
	require.Equal(t, "hunter2", v)
	for _, form := range []any{s, model.Requests()} {
		b, err := json.Marshal(form)
		require.NoError(t, err)
		require.NotContains(t, string(b), "hunter2")
	}
}

// A model that falls back does so for one call: no tool runs again.
func TestParityFallbackIsForOneCall(t *testing.T) {
	t.Parallel()
	ran := 0
	tool := agentloop.RawTool("weather", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		ran++
		return agentloop.Text("sun"), nil
	})
	first := middlewaretest.NewModel(t, middlewaretest.Calls("weather", parityOslo), middlewaretest.Fail(&middleware.ModelError{StatusCode: 503}))
	second := middlewaretest.NewModel(t, middlewaretest.Text("Sun."))
	agent, err := agentloop.New(retry.Fallback(nil, first.Call, second.Call), agentloop.Options{Tools: []agentloop.Tool{tool}})
	require.NoError(t, err)
	s := agentloop.NewState(middleware.User("Well?"))
	require.NoError(t, agent.Run(t.Context(), s))
	require.Equal(t, "Sun.", s.Answer())
	require.Equal(t, 1, ran)
	require.Equal(t, "sun", second.Requests()[0].Messages[2].Text())
}

// A structured answer is asked for again until it fits its type.
func TestParityExtract(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Calls("answer", `{"days":"two"}`), middlewaretest.Calls("answer", `{"city":"Oslo","days":2}`))
	got, s, err := agentloop.Extract[parityArgs](t.Context(), argsvalidate.New(argsvalidate.Options{})(model.Call), middleware.User("Well?"))
	require.NoError(t, err)
	require.Equal(t, parityArgs{"Oslo", 2}, got)
	require.Equal(t, 2, s.Steps[0].Attempts)
	require.Equal(t, "answer", model.Requests()[0].ToolChoice.Name)
}

// The record of a run has each call as the model wrote it and as it ran, under
// one type, and survives JSON.
func TestParityTrajectory(t *testing.T) {
	t.Parallel()
	s, _ := parityRun(t.Context(), t, []agentloop.Tool{parityTool("weather"), parityTool("news")},
		middlewaretest.Calls("weather", `{"city":"Oslo","days":"2"}`), middlewaretest.Calls("news", parityOslo, "weather", parityOslo), middlewaretest.Text("Done."))
	tr := agentlooptest.Of(s)
	require.Equal(t, `{"city":"Oslo","days":"2"}`, tr[0].Raw)
	require.Equal(t, `{"city":"Oslo","days":2}`, tr[0].Arguments)
	require.Equal(t, "/days", tr[0].Changes[0].Pointer)
	require.Equal(t, tr[0].Arguments, s.Messages[1].ToolCalls[0].Arguments)

	b, err := json.Marshal(tr)
	require.NoError(t, err)
	var back agentlooptest.Trajectory
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, tr, back)

	call := func(name, arguments string) agentlooptest.Call {
		return agentlooptest.Call{Name: name, Arguments: arguments}
	}
	for name, c := range map[string]struct {
		want  agentlooptest.Trajectory
		match agentlooptest.Match
		same  bool
	}{
		"strict":                 {agentlooptest.Trajectory{call("weather", `{"days":2.0,"city":"Oslo"}`), call("news", ""), call("weather", parityOslo)}, agentlooptest.Strict, true},
		"strict, other order":    {agentlooptest.Trajectory{call("news", ""), call("weather", ""), call("weather", "")}, agentlooptest.Strict, false},
		"strict, too few":        {agentlooptest.Trajectory{call("weather", "")}, agentlooptest.Strict, false},
		"strict, other argument": {agentlooptest.Trajectory{call("weather", parityOslo), call("news", ""), call("weather", "")}, agentlooptest.Strict, false},
		"strict subset":          {agentlooptest.Trajectory{call("weather", parityOslo), call("news", "{}"), call("weather", parityOslo)}, agentlooptest.Strict | agentlooptest.Subset, true},
		"any order":              {agentlooptest.Trajectory{call("news", ""), call("weather", ""), call("weather", "")}, agentlooptest.AnyOrder, true},
		"any order, too few":     {agentlooptest.Trajectory{call("news", "")}, agentlooptest.AnyOrder, false},
		"contains":               {agentlooptest.Trajectory{call("news", parityOslo)}, agentlooptest.Contains, true},
		"contains, twice":        {agentlooptest.Trajectory{call("news", ""), call("news", "")}, agentlooptest.Contains, false},
		"by turn":                {agentlooptest.Trajectory{{Name: "news", Turn: 1}}, agentlooptest.Contains, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.same, tr.Diff(c.want, c.match) == "", tr.Diff(c.want, c.match))
		})
	}
	require.True(t, tr.Before("weather", "news"))
	require.True(t, tr.Before("news", "weather"))
	require.False(t, tr.Before("weather", "nothing"))
	require.Len(t, tr.Named("weather"), 2)
	require.Len(t, tr.InTurn(2), 2)
}
