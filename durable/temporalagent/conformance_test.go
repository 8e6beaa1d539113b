package temporalagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/durabletest"
)

// processes are the workers of a case: when one is killed, the next one takes over.
type processes struct {
	t    *testing.T
	c    *durabletest.Case
	o    testOptions
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
		o := ps.o.WorkerOptions
		o.Agents = map[string]*agentloop.Agent{"": ps.last.Agent}
		ps.p, err = New(o)
		require.NoError(ps.t, err)
		ps.p.blobs = ps.o.blobs()
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

// limit, if it is not 0, is the size of contents that are moved to the store.
type testOptions struct {
	WorkerOptions
	limit     int
	continues bool // as new, after each step
}

func (o testOptions) blobs() *blobs {
	b := newBlobs(o.Blobs)
	if o.limit > 0 {
		b.limit = o.limit
	}
	return b
}

// inTestEnvironment is the engine in the SDK's environment without a server. A
// workflow that continues as new gets an environment of its own.
func inTestEnvironment(o testOptions) durabletest.Engine {
	return func(t *testing.T, c *durabletest.Case) (*agentloop.State, error) {
		ps := &processes{t: t, c: c, o: o}
		doc, err := json.Marshal(&agentloop.State{Messages: c.Messages})
		require.NoError(t, err)
		doc, err = o.blobs().pack(t.Context(), doc)
		require.NoError(t, err)
		in := startInput{"", ended{conversation: conversation{State: doc}}}
		for {
			env := ps.environment()
			env.SetContinueAsNewSuggested(o.continues)
			env.ExecuteWorkflow(workflowName, in)
			require.True(t, env.IsWorkflowCompleted())
			result := new(Result)
			ran := env.GetWorkflowError()
			var again *workflow.ContinueAsNewError
			switch {
			case errors.As(ran, &again):
				require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(again.Input, &in))
				continue
			case ran == nil:
				require.NoError(t, env.GetWorkflowResult(result))
			default:
				known := false
				ran, known = runError(ran, result)
				require.True(t, known, ran)
			}
			s, err := result.open(t.Context(), o.blobs())
			require.NoError(t, err)
			return s, ran
		}
	}
}

func newEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(slog.New(slog.DiscardHandler))
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(time.Minute) // of the wall clock
	// A second is too short on a machine that runs all tests at once.
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute})
	return env
}

func (ps *processes) environment() *testsuite.TestWorkflowEnvironment {
	env := newEnvironment()
	_, p := ps.now()
	p.registerWorkflow(env)
	env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, stepInput) (stepOutput, error) { return p.model }), activity.RegisterOptions{Name: modelActivity})
	env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, stepInput) (stepOutput, error) { return p.check }), activity.RegisterOptions{Name: checkActivity})
	env.RegisterActivityWithOptions(onWorker(ps, func(p *Plugin) func(context.Context, toolInput) (toolOutput, error) { return p.tool }), activity.RegisterOptions{Name: toolActivity})
	h := Attach(&testClient{env: env}, Options{})
	h.blobs = ps.o.blobs()
	var look func()
	look = func() { // now and then, as a person does
		waiting, err := h.Pending(ps.t.Context())
		require.NoError(ps.t, err)
		require.NoError(ps.t, ps.c.Decide(waiting, decider{h}))
		env.RegisterDelayedCallback(look, 30*24*time.Hour)
	}
	env.RegisterDelayedCallback(look, 24*time.Hour)
	return env
}

// testClient is a client of a test environment. Its updates do not wait for the
// end: it would come only after the callback that sends them.
type testClient struct {
	client.Client
	env *testsuite.TestWorkflowEnvironment
	n   int
}

func (c *testClient) QueryWorkflow(_ context.Context, _, _, query string, args ...any) (converter.EncodedValue, error) {
	return c.env.QueryWorkflow(query, args...)
}

func (c *testClient) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	c.n++
	f := &fake{}
	c.env.UpdateWorkflow(o.UpdateName, strconv.Itoa(c.n), onReject(func(err error) { f.err = err }), o.Args...)
	return updated{f}, nil
}

// decider is a Handle without contexts.
type decider struct{ h *Handle }

func (d decider) Approve(id string) error { return d.h.Approve(context.Background(), id) }
func (d decider) Edit(id, arguments string) error {
	return d.h.Edit(context.Background(), id, arguments)
}
func (d decider) Reject(id, reason string) error {
	return d.h.Reject(context.Background(), id, reason)
}
func (d decider) Resolve(id string, r agentloop.Result) error {
	return d.h.Resolve(context.Background(), id, r)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("plain", func(t *testing.T) {
		t.Parallel()
		durabletest.Run(t, inTestEnvironment(testOptions{}))
	})
	t.Run("continued as new", func(t *testing.T) {
		t.Parallel()
		durabletest.Run(t, inTestEnvironment(testOptions{continues: true}))
	})
	t.Run("in a store", func(t *testing.T) { // nearly every text, and every step a segment
		t.Parallel()
		durabletest.Run(t, inTestEnvironment(testOptions{WorkerOptions: WorkerOptions{Blobs: &memory{}}, limit: 16}))
	})
	t.Run("in a store, continued as new", func(t *testing.T) {
		t.Parallel()
		durabletest.Run(t, inTestEnvironment(testOptions{WorkerOptions: WorkerOptions{Blobs: &memory{}}, limit: 16, continues: true}))
	})
}

// memory is a BlobStore for tests.
type memory struct {
	blobs sync.Map
	gets  atomic.Int64
}

func (m *memory) Put(_ context.Context, key string, data []byte) error {
	m.blobs.Store(key, bytes.Clone(data))
	return nil
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.gets.Add(1)
	v, ok := m.blobs.Load(key)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return v.([]byte), nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.blobs.Delete(key)
	return nil
}
