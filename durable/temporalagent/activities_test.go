package temporalagent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

func agentOf(t *testing.T, model middleware.ModelCall, tools ...agentloop.Tool) map[string]*agentloop.Agent {
	a, err := agentloop.New(model, agentloop.Options{Tools: tools})
	require.NoError(t, err)
	return map[string]*agentloop.Agent{"a": a}
}

func answers(text string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(text)}, nil
	}
}

// The sink gets the events of each attempt, numbered. Its error is logged once,
// and the step goes on.
func TestSink(t *testing.T) {
	t.Parallel()
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		for _, text := range []string{"it ", "works"} {
			if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
				return nil, err
			}
		}
		return &middleware.Response{Message: middleware.Assistant("it works")}, nil
	}
	var log bytes.Buffer
	var got []Event
	fail := false
	o := WorkerOptions{Agents: agentOf(t, model), Logger: slog.New(slog.NewTextHandler(&log, nil)), Sink: func(_ context.Context, e Event) error {
		got = append(got, e)
		if fail {
			return errors.New("the reader is gone")
		}
		return nil
	}}
	_, _, err := inEnvironment(t, o, middleware.User("go"))
	require.NoError(t, err)
	require.Equal(t, []Event{
		{Run: "default-test-workflow-id", Turn: 1, Attempt: 1, Seq: 1, Event: middleware.Event{Kind: middleware.EventText, Step: 1, Text: "it "}},
		{Run: "default-test-workflow-id", Turn: 1, Attempt: 1, Seq: 2, Event: middleware.Event{Kind: middleware.EventText, Step: 1, Text: "works"}},
	}, got)
	require.Empty(t, log.String())
	fail, got = true, nil
	s, _, err := inEnvironment(t, o, middleware.User("go"))
	require.NoError(t, err)
	require.Equal(t, "it works", s.Answer())
	require.Len(t, got, 1)
	require.Contains(t, log.String(), "the reader is gone")
}

// An activity gives signs of life from its entry on, also while a model says
// nothing, and none after it.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	var once sync.Once
	env := environment(t, WorkerOptions{Heartbeat: time.Millisecond, HeartbeatTimeout: time.Second, Agents: agentOf(t, func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		select {
		case <-enough:
			return &middleware.Response{Message: middleware.Assistant("done")}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})})
	beats := 0
	env.SetOnActivityHeartbeatListener(func(*activity.Info, converter.EncodedValues) {
		if beats++; beats == 3 {
			once.Do(func() { close(enough) })
		}
	})
	execute(t, env, middleware.User("go"))
	require.NoError(t, env.GetWorkflowError())
	require.GreaterOrEqual(t, beats, 3)
}

// A step whose worker stops is made by another worker. A result that came just in
// time counts. The end of StartToCloseTimeout ends the run, or is told to the model.
func TestActivityThatIsInterrupted(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	tool := agentloop.RawTool("wait", "", nil, func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
		<-ctx.Done()
		return agentloop.Result{}, ctx.Err()
	})
	doc := []byte(`{"version":2,"run_id":"r","messages":[{"role":"user","parts":[{"text":"go"}]}]}`)
	in := stepInput{"a", conversation{State: doc}}
	call := toolInput{Agent: "a", Call: middleware.ToolCall{ID: "1", Name: "wait", Arguments: "{}"}}
	p, err := New(WorkerOptions{Agents: agentOf(t, waits, tool)})
	require.NoError(t, err)

	t.Run("the worker stops", func(t *testing.T) {
		t.Parallel()
		env, cancel := activities(t, p)
		stop := make(chan struct{})
		env.SetWorkerStopChannel(stop)
		close(stop)
		cancel()
		_, err := env.ExecuteActivity(modelActivity, in)
		require.ErrorContains(t, err, "canceled")
		_, err = env.ExecuteActivity(toolActivity, call)
		require.ErrorContains(t, err, "canceled")
	})
	t.Run("the grace of a worker that stops is over", func(t *testing.T) {
		t.Parallel()
		p, err := New(WorkerOptions{Agents: agentOf(t, waits, tool)})
		require.NoError(t, err)
		var o worker.Options
		require.NoError(t, p.ConfigureWorker(t.Context(), worker.PluginConfigureWorkerOptions{WorkerOptions: &o}))
		require.Equal(t, 10*time.Second, o.WorkerStopTimeout)
		o.WorkerStopTimeout = 40 * time.Millisecond // a user's
		require.NoError(t, p.ConfigureWorker(t.Context(), worker.PluginConfigureWorkerOptions{WorkerOptions: &o}))
		require.Equal(t, 40*time.Millisecond, o.WorkerStopTimeout)
		env, _ := activities(t, p)
		stop := make(chan struct{})
		env.SetWorkerStopChannel(stop)
		close(stop)
		_, err = env.ExecuteActivity(modelActivity, in)
		require.ErrorContains(t, err, "canceled")
		_, err = env.ExecuteActivity(toolActivity, call)
		require.ErrorContains(t, err, "canceled")
	})
	t.Run("the run is canceled", func(t *testing.T) {
		t.Parallel()
		env, cancel := activities(t, p)
		cancel()
		v, err := env.ExecuteActivity(modelActivity, in)
		require.NoError(t, err)
		var out stepOutput
		require.NoError(t, v.Get(&out))
		require.True(t, out.Canceled)
		v, err = env.ExecuteActivity(toolActivity, call)
		require.NoError(t, err)
		var ended toolOutput
		require.NoError(t, v.Get(&ended))
		require.Equal(t, toolOutput{Canceled: true}, ended)
	})
	t.Run("it takes too long", func(t *testing.T) {
		t.Parallel()
		short := workflow.ActivityOptions{StartToCloseTimeout: time.Second}
		p, err := New(WorkerOptions{Agents: agentOf(t, waits), ModelActivity: short})
		require.NoError(t, err)
		env := newEnvironment()
		p.Register(env)
		execute(t, env, middleware.User("go"))
		_, ran := outcome(t, env, nil)
		require.ErrorIs(t, ran, ErrLost)
		require.ErrorContains(t, ran, "StartToCloseTimeout has passed")
		s, _, err := inEnvironment(t, WorkerOptions{Agents: agentOf(t, calling("wait"), tool), ToolActivity: map[string]workflow.ActivityOptions{"wait": short}}, middleware.User("go"))
		require.NoError(t, err)
		require.Equal(t, "The tool was not done in time.", s.Results[0].Text)
	})
}

// calling is a model that calls a tool and then answers.
func calling(tool string) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == middleware.RoleTool {
			return &middleware.Response{Message: middleware.Assistant("done")}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: tool, Arguments: "{}"})}, nil
	}
}

func activities(t *testing.T, p *Plugin) (*testsuite.TestActivityEnvironment, context.CancelFunc) {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestActivityEnvironment()
	ctx, cancel := context.WithCancel(t.Context())
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	p.Register(registry{env})
	return env, cancel
}

// registry takes no workflows.
type registry struct {
	*testsuite.TestActivityEnvironment
}

func (registry) RegisterWorkflowWithOptions(any, workflow.RegisterOptions) {}

// A tool whose worker is lost each time is told to the model.
func TestToolIsLostEachTime(t *testing.T) {
	t.Parallel()
	env := environment(t, WorkerOptions{Agents: agentOf(t, calling("wait"), agentloop.RawTool("wait", "", nil, nothing))})
	env.OnActivity(toolActivity, anything, anything).Return(toolOutput{}, temporal.NewHeartbeatTimeoutError())
	execute(t, env, middleware.User("go"))
	s, err := outcome(t, env, nil)
	require.NoError(t, err)
	require.Contains(t, s.Results[0].Text, "its worker was lost each time")
	env.AssertNumberOfCalls(t, toolActivity, maxLost)
}

// An unknown agent, and a run without an agent's name.
func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	env := environment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"b": agentOf(t, answers("x"))["a"]}})
	execute(t, env, middleware.User("go"))
	_, err := outcome(t, env, nil)
	require.ErrorIs(t, err, ErrAgent)
	p, err := New(WorkerOptions{Agents: agentOf(t, answers("x"))})
	require.NoError(t, err)
	e, _ := activities(t, p)
	v, err := e.ExecuteActivity(toolActivity, toolInput{Agent: "none"})
	require.NoError(t, err)
	var out toolOutput
	require.NoError(t, v.Get(&out))
	require.ErrorIs(t, out.Error, ErrAgent)
}
