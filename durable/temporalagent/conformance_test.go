package temporalagent

import (
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/durabletest"
)

// processes are the workers of a case: when one is killed, the next one takes over.
type processes struct {
	t    *testing.T
	c    *durabletest.Case
	o    WorkerOptions
	mu   sync.Mutex
	last *durabletest.Process
	p    *Plugin
}

func (ps *processes) now() (*durabletest.Process, *Plugin) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.last == nil || ps.last.Killed() {
		var err error
		ps.last, err = ps.c.Process(ps.t.Context(), nil)
		require.NoError(ps.t, err)
		o := ps.o
		o.Agents = map[string]*agentloop.Agent{"": ps.last.Agent}
		ps.p, err = New(o)
		require.NoError(ps.t, err)
	}
	return ps.last, ps.p
}

// onWorker runs an activity on the worker of the moment. If that is killed, the
// server misses its heartbeats.
func onWorker[I, O any](ps *processes, f func(*Plugin) func(context.Context, I) (O, error)) func(context.Context, I) (O, error) {
	return func(ctx context.Context, in I) (O, error) {
		process, p := ps.now()
		ctx, cancel := context.WithCancel(ctx)
		defer context.AfterFunc(process.Context, cancel)()
		out, err := f(p)(ctx, in)
		if process.Killed() {
			var none O
			return none, temporal.NewHeartbeatTimeoutError()
		}
		return out, err
	}
}

// inTestEnvironment is the engine in the SDK's environment without a server.
func inTestEnvironment(o WorkerOptions) durabletest.Engine {
	return func(t *testing.T, c *durabletest.Case) (*agentloop.State, error) {
		var suite testsuite.WorkflowTestSuite
		suite.SetLogger(slog.New(slog.DiscardHandler))
		env := suite.NewTestWorkflowEnvironment()
		ps := &processes{t: t, c: c, o: o}
		_, p := ps.now()
		p.registerWorkflow(env)
		env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, stepInput) (stepOutput, error) { return p.model }), activity.RegisterOptions{Name: modelActivity})
		env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, stepInput) (stepOutput, error) { return p.check }), activity.RegisterOptions{Name: checkActivity})
		env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, toolInput) (toolOutput, error) { return p.tool }), activity.RegisterOptions{Name: toolActivity})

		doc, err := json.Marshal(&agentloop.State{Messages: c.Messages})
		require.NoError(t, err)
		decider := &updates{t: t, env: env}
		var look func()
		look = func() { // now and then, as a person does
			v, err := env.QueryWorkflow(pendingQuery)
			require.NoError(t, err)
			var calls []pendingCall
			require.NoError(t, v.Get(&calls))
			waiting := make([]agentloop.Pending, len(calls))
			for i, c := range calls {
				waiting[i] = agentloop.Pending(c)
			}
			require.NoError(t, c.Decide(waiting, decider))
			env.RegisterDelayedCallback(look, 30*24*time.Hour)
		}
		env.RegisterDelayedCallback(look, 24*time.Hour)
		env.ExecuteWorkflow(workflowName, startInput{"", conversation{State: doc}})
		require.True(t, env.IsWorkflowCompleted())
		result := new(Result)
		ran := env.GetWorkflowError()
		if ran == nil {
			require.NoError(t, env.GetWorkflowResult(result))
		} else {
			known := false
			ran, known = runError(ran, result)
			require.True(t, known, ran)
		}
		s, err := result.State(t.Context(), o.Blobs)
		require.NoError(t, err)
		return s, ran
	}
}

// updates sends decisions.
type updates struct {
	t   *testing.T
	env *testsuite.TestWorkflowEnvironment
	n   int
}

func (u *updates) Approve(id string) error { return u.send(decision{CallID: id, Kind: approved}) }
func (u *updates) Edit(id, arguments string) error {
	return u.send(decision{CallID: id, Kind: edited, Text: arguments})
}
func (u *updates) Reject(id, reason string) error {
	return u.send(decision{CallID: id, Kind: rejected, Text: reason})
}
func (u *updates) Resolve(id string, r agentloop.Result) error {
	return u.send(decision{CallID: id, Kind: resolved, Text: r.Text, IsError: r.IsError})
}

func (u *updates) send(d decision) error {
	u.n++
	var refused error
	u.env.UpdateWorkflow(decideUpdate, strconv.Itoa(u.n), &testsuite.TestUpdateCallback{
		OnReject: func(err error) { refused = err }, OnAccept: func() {}, OnComplete: func(any, error) {}}, d)
	return refused
}

func TestConformance(t *testing.T) {
	t.Parallel()
	durabletest.Run(t, inTestEnvironment(WorkerOptions{}))
}
