package temporalagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

const anything = mock.Anything

func nothing(context.Context, middleware.ToolCall) (agentloop.Result, error) {
	return agentloop.Result{}, nil
}

func execute(t *testing.T, env *testsuite.TestWorkflowEnvironment, msgs ...middleware.Message) {
	doc, err := json.Marshal(&agentloop.State{Messages: msgs})
	require.NoError(t, err)
	env.ExecuteWorkflow(workflowName, startInput{"a", ended{conversation: conversation{State: doc}}})
}

// echo answers with the number of messages of the user.
func echo(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	users := 0
	for _, m := range req.Messages {
		if m.Role == middleware.RoleUser {
			users++
		}
	}
	return &middleware.Response{Message: middleware.Assistant(fmt.Sprint(users))}, nil
}

// refuses is a model whose provider refuses the request.
func refuses(context.Context, *middleware.Request) (*middleware.Response, error) {
	return nil, &middleware.ModelError{StatusCode: 400, Err: errors.New("refused")}
}

// onReject is the callback of an update that may be refused.
func onReject(refused func(error)) *testsuite.TestUpdateCallback {
	return &testsuite.TestUpdateCallback{OnReject: refused, OnAccept: func() {}, OnComplete: func(any, error) {}}
}

// A message reaches a run before its next model step; one that comes with the
// answer continues the conversation. Messages of other roles are refused.
func TestMessages(t *testing.T) {
	t.Parallel()
	env := environment(t, WorkerOptions{Agents: agentOf(t, echo)})
	refused := map[string]string{}
	send := func(id string, v any) {
		env.UpdateWorkflow(messageUpdate, id, onReject(func(err error) { refused[id] = err.Error() }), v)
	}
	var once sync.Once
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		once.Do(func() {
			send("a", []middleware.Message{middleware.Assistant("I said")})
			send("b", []middleware.Message{})
			send("c", []middleware.Message{middleware.User("and this")})
		})
	})
	execute(t, env, middleware.User("go"))
	s, err := outcome(t, env, nil)
	require.NoError(t, err)
	require.Equal(t, "2", s.Answer())
	require.Len(t, s.Messages, 4)
	require.Len(t, refused, 2)
	require.Contains(t, refused["a"], "only messages of the user")
	require.Contains(t, refused["b"], agentloop.ErrNoMessages.Error())
}

// Decisions that do not fit are refused before they are accepted.
func TestRefusedDecisions(t *testing.T) {
	t.Parallel()
	l := &loop{r: &replica{State: pendingState(t)}}
	for _, c := range []struct {
		d      decision
		is     error
		wanted string
	}{
		{decision{CallID: "1", Kind: approved}, nil, ""},
		{decision{CallID: "1", Kind: edited, Text: "{}"}, nil, ""},
		{decision{CallID: "1", Kind: edited, Text: mark + fmt.Sprintf("%064d", 7)}, nil, ""},
		{decision{CallID: "1", Kind: edited, Text: "{"}, nil, "not JSON"},
		{decision{CallID: "1", Kind: "forget"}, nil, "unknown kind"},
		{decision{CallID: "2", Kind: approved}, agentloop.ErrUnknownCall, `"2"`},
	} {
		err := l.validateDecision(c.d)
		if c.wanted == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.wanted)
		if c.is != nil {
			ran, _ := runError(err, new(Result))
			require.ErrorIs(t, ran, c.is)
		}
	}
	_, err := readMessages(json.RawMessage(`"text"`))
	require.ErrorContains(t, err, "json")
	l.over = true
	require.ErrorContains(t, l.validateMessages(json.RawMessage(`[{"role":"user"}]`)), "has ended")
	l.queue = []*decision{{CallID: "1"}}
	ran, _ := runError(l.validateDecision(decision{CallID: "1", Kind: approved}), new(Result))
	require.ErrorIs(t, ran, agentloop.ErrDecided)
	waiting, err := l.pending()
	require.NoError(t, err)
	require.Empty(t, waiting)
	require.NoError(t, l.r.Approve("1"))
	l.queue = nil
	ran, _ = runError(l.validateDecision(decision{CallID: "1", Kind: approved}), new(Result))
	require.ErrorIs(t, ran, agentloop.ErrDecided)
}

// pendingState is a run whose call "1" waits.
func pendingState(t *testing.T) *agentloop.State {
	s := new(agentloop.State)
	require.NoError(t, json.Unmarshal([]byte(`{"version":2,"run_id":"r","messages":[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"1","name":"t","arguments":"{}"}]}],
		"turn":[{"call":{"id":"1","name":"t","arguments":"{}"},"raw":"{}","status":"waiting","reason":"approval","checked":true}]}`), s))
	return s
}

// Two agents in one workflow of the user's, each with its key. The error of one
// does not end the workflow.
func TestRunIn(t *testing.T) {
	t.Parallel()
	var keys []string
	tool := agentloop.RawTool("key", "", nil, func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
		info, _ := agentloop.CallFrom(ctx)
		keys = append(keys, info.Key)
		return agentloop.Text("ok"), nil
	})
	agents := agentOf(t, calling("key"), tool)
	agents["b"] = agentOf(t, refuses)["a"]
	env := environment(t, WorkerOptions{Agents: agents})
	env.ExecuteWorkflow(func(ctx workflow.Context) ([]*Result, error) {
		first, err := RunIn(ctx, InOptions{Agent: "a", Key: "one"}, middleware.User("go"))
		if err != nil {
			return nil, err
		}
		second, err := RunIn(ctx, InOptions{Agent: "a", Key: "two"}, middleware.User("go"))
		if err != nil {
			return nil, err
		}
		third, err := RunIn(ctx, InOptions{Agent: "b", Key: "three"}, middleware.User("go"))
		var m *middleware.ModelError
		if !errors.As(err, &m) || m.StatusCode != 400 {
			return nil, fmt.Errorf("the error is %w", err)
		}
		return []*Result{first, second, third}, nil
	})
	require.NoError(t, env.GetWorkflowError())
	var results []*Result
	require.NoError(t, env.GetWorkflowResult(&results))
	for i, want := range []string{"done", "done", ""} {
		s, err := results[i].State(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, want, s.Answer())
	}
	require.Equal(t, []string{"default-test-workflow-id//one/1/1", "default-test-workflow-id//two/1/1"}, keys)
}

// A workflow of the user's continues as new with the Result.
func TestRunInContinuesAsNew(t *testing.T) {
	t.Parallel()
	agents := agentOf(t, calling("look"), agentloop.RawTool("look", "", nil, nothing))
	mine := func(ctx workflow.Context, from *Result) (*Result, error) {
		r, err := RunIn(ctx, InOptions{Agent: "a", ContinueAsNew: true, From: from}, middleware.User("go"))
		if errors.Is(err, ErrContinueAsNew) {
			return nil, workflow.NewContinueAsNewError(ctx, "mine", r)
		}
		return r, err
	}
	env := environment(t, WorkerOptions{Agents: agents})
	env.RegisterWorkflowWithOptions(mine, workflow.RegisterOptions{Name: "mine"})
	env.SetContinueAsNewSuggested(true)
	env.ExecuteWorkflow("mine", nil)
	var again *workflow.ContinueAsNewError
	require.ErrorAs(t, env.GetWorkflowError(), &again)
	from := new(Result)
	require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &from))

	env = environment(t, WorkerOptions{Agents: agents})
	env.RegisterWorkflowWithOptions(mine, workflow.RegisterOptions{Name: "mine"})
	env.ExecuteWorkflow("mine", from)
	s, err := outcome(t, env, nil)
	require.NoError(t, err)
	require.Equal(t, "done", s.Answer())
	require.Len(t, s.Steps, 3)
	require.Equal(t, middleware.User("go"), s.Messages[3], "the further message")
}

// Cancellation ends a wait, and the state is beside it. The update of a
// decision that comes at the same time returns.
func TestCancelWhilePending(t *testing.T) {
	t.Parallel()
	tool := agentloop.RawTool("later", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{}, agentloop.Suspend("later")
	})
	env := environment(t, WorkerOptions{Agents: agentOf(t, calling("later"), tool)})
	env.RegisterDelayedCallback(env.CancelWorkflow, 24*time.Hour)
	execute(t, env, middleware.User("go"))
	s, err := outcome(t, env, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.Pending(), 1)

	env = environment(t, WorkerOptions{Agents: agentOf(t, calling("later"), tool)})
	told := false
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(decideUpdate, "a", &testsuite.TestUpdateCallback{OnReject: func(error) { told = true }, OnAccept: func() {}, OnComplete: func(any, error) { told = true }},
			decision{CallID: "1", Kind: resolved, Text: "now"})
		env.CancelWorkflow()
	}, 24*time.Hour)
	execute(t, env, middleware.User("go"))
	_, err = outcome(t, env, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.True(t, told)
}

// The activities have the options of the worker where it sets some.
func TestActivityOptions(t *testing.T) {
	t.Parallel()
	once := agentloop.RawTool("once", "", nil, nothing)
	once.AtMostOnce = true
	for name, c := range map[string]struct {
		tool agentloop.Tool
		own  workflow.ActivityOptions
		want func(*testing.T, workflow.ActivityOptions)
	}{
		"defaults": {agentloop.RawTool("t", "", nil, nothing), workflow.ActivityOptions{}, func(t *testing.T, o workflow.ActivityOptions) {
			require.Equal(t, stepTimeout, o.StartToCloseTimeout)
			require.Equal(t, defaultHeartbeatTimeout, o.HeartbeatTimeout)
			require.EqualValues(t, maxLost, o.RetryPolicy.MaximumAttempts)
			require.True(t, o.WaitForCancellation)
		}},
		"own": {agentloop.RawTool("t", "", nil, nothing), workflow.ActivityOptions{TaskQueue: "gpu", StartToCloseTimeout: time.Minute, HeartbeatTimeout: time.Second, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3}}, func(t *testing.T, o workflow.ActivityOptions) {
			require.Equal(t, "gpu", o.TaskQueue)
			require.Equal(t, time.Minute, o.StartToCloseTimeout)
			require.Equal(t, time.Second, o.HeartbeatTimeout)
			require.EqualValues(t, 3, o.RetryPolicy.MaximumAttempts)
		}},
		"once": {once, workflow.ActivityOptions{RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 3}}, func(t *testing.T, o workflow.ActivityOptions) {
			require.EqualValues(t, 1, o.RetryPolicy.MaximumAttempts)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := &loop{o: InOptions{ToolActivity: map[string]workflow.ActivityOptions{"t": c.own, "once": c.own}}}
			c.want(t, l.toolOptions(agentloop.CallInfo{Call: middleware.ToolCall{Name: c.tool.Def.Name}, AtMostOnce: c.tool.AtMostOnce}))
		})
	}
}

// If a decision cannot be validated at all, its update returns the error with
// which the run ends, and so does one that came meanwhile.
func TestDecisionThatCannotBeValidated(t *testing.T) {
	t.Parallel()
	tool := agentloop.RawTool("later", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{}, agentloop.Suspend("later")
	})
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "later", Arguments: "{}"}, middleware.ToolCall{ID: "2", Name: "later", Arguments: "{}"})}, nil
	}
	env := environment(t, WorkerOptions{Agents: agentOf(t, model, tool)})
	env.OnActivity(checkActivity, anything, anything).After(time.Hour).Return(stepOutput{}, errStore)
	told := map[string]string{}
	decide := func(id string) func() {
		return func() {
			env.UpdateWorkflow(decideUpdate, id, &testsuite.TestUpdateCallback{OnReject: func(err error) { t.Error(err) }, OnAccept: func() {}, OnComplete: func(_ any, err error) { told[id] = fmt.Sprint(err) }},
				decision{CallID: id, Kind: resolved, Text: "now"})
		}
	}
	env.RegisterDelayedCallback(decide("1"), 24*time.Hour)
	env.RegisterDelayedCallback(decide("2"), 24*time.Hour+time.Minute)
	execute(t, env, middleware.User("go"))
	_, err := outcome(t, env, nil)
	require.ErrorIs(t, err, ErrLost)
	require.Contains(t, told["1"], "the store is down")
	require.Contains(t, told["2"], "the run has ended")
}
