package temporalagent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// fake is a client that notes what it is asked for, and answers with a result or
// an error.
type fake struct {
	client.Client
	started client.StartWorkflowOptions
	in      startInput
	update  client.UpdateWorkflowOptions
	result  string
	err     error
}

func (f *fake) ExecuteWorkflow(_ context.Context, o client.StartWorkflowOptions, _ any, args ...any) (client.WorkflowRun, error) {
	f.started, f.in = o, args[0].(startInput)
	return f, f.err
}
func (f *fake) GetWorkflow(context.Context, string, string) client.WorkflowRun { return f }
func (f *fake) GetID() string                                                  { return "" }
func (f *fake) GetRunID() string                                               { return "" }
func (f *fake) GetFirstExecutionRunID() string                                 { return "" }
func (f *fake) GetWithOptions(ctx context.Context, v any, _ client.WorkflowRunGetOptions) error {
	return f.Get(ctx, v)
}
func (f *fake) Get(_ context.Context, v any) error {
	if f.err != nil {
		return f.err
	}
	return json.Unmarshal([]byte(f.result), v)
}
func (f *fake) QueryWorkflow(context.Context, string, string, string, ...any) (converter.EncodedValue, error) {
	return encoded{f}, f.err
}
func (f *fake) UpdateWorkflow(_ context.Context, o client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	f.update = o
	return updated{f}, nil
}

// encoded is the result of a query, updated that of an update.
type (
	encoded struct{ *fake }
	updated struct{ *fake }
)

func (encoded) HasValue() bool                   { return true }
func (e encoded) Get(v any) error                { return e.fake.Get(context.Background(), v) }
func (updated) WorkflowID() string               { return "" }
func (updated) RunID() string                    { return "" }
func (updated) UpdateID() string                 { return "" }
func (u updated) Get(context.Context, any) error { return u.err }

// Start uses the caller's options, and attaches to a run with the same ID.
func TestStart(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{TaskQueue: "q"}, {ID: "a"}} {
		_, err := Start(t.Context(), &fake{}, o, middleware.User("go"))
		require.ErrorContains(t, err, "must be set")
	}
	_, err := Start(t.Context(), &fake{}, Options{ID: "a", TaskQueue: "q"})
	require.ErrorIs(t, err, agentloop.ErrNoMessages)
	store := &memory{}
	f := &fake{}
	long := strings.Repeat("x", blobSize+1)
	_, err = Start(t.Context(), f, Options{ID: "a", TaskQueue: "q", Agent: "b", Blobs: store, Start: client.StartWorkflowOptions{ID: "other", WorkflowExecutionTimeout: time.Hour}}, middleware.User(long))
	require.NoError(t, err)
	require.Equal(t, client.StartWorkflowOptions{ID: "a", TaskQueue: "q", WorkflowExecutionTimeout: time.Hour,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE}, f.started)
	require.Equal(t, "b", f.in.Agent)
	require.Less(t, len(f.in.State), 300)
	s, err := newBlobs(store).open(t.Context(), f.in.conversation)
	require.NoError(t, err)
	require.Equal(t, long, s.Messages[0].Text())
	_, err = Run(t.Context(), &fake{err: errStore}, Options{ID: "a", TaskQueue: "q"}, middleware.User("go"))
	require.ErrorIs(t, err, errStore)
}

// A Handle reads long contents, sends them by reference, and returns the errors of
// the run.
func TestHandle(t *testing.T) {
	t.Parallel()
	store := &memory{}
	long := `{"text":"` + strings.Repeat("x", blobSize) + `"}`
	ref, err := newBlobs(store).packString(t.Context(), long, blobSize)
	require.NoError(t, err)
	f := &fake{result: fmt.Sprintf(`[{"call":{"id":"1","name":"t","arguments":%q},"reason":"approval","notes":["only 5 left"]}]`, ref)}
	h := Attach(f, Options{ID: "a", Key: "k", Blobs: store})
	waiting, err := h.Pending(t.Context())
	require.NoError(t, err)
	require.Equal(t, []agentloop.Pending{{Call: middleware.ToolCall{ID: "1", Name: "t", Arguments: long}, Reason: "approval", Notes: []string{"only 5 left"}}}, waiting)

	sent := func(err error) any {
		require.NoError(t, err)
		require.Equal(t, "a", f.update.WorkflowID)
		return f.update.Args[0]
	}
	require.Equal(t, decision{CallID: "1", Kind: approved}, sent(h.Approve(t.Context(), "1")))
	require.Equal(t, decideUpdate+"/k", f.update.UpdateName)
	require.Equal(t, decision{CallID: "1", Kind: edited, Text: ref}, sent(h.Edit(t.Context(), "1", long)))
	require.Equal(t, decision{CallID: "1", Kind: rejected, Text: "no"}, sent(h.Reject(t.Context(), "1", "no")))
	require.Equal(t, decision{CallID: "1", Kind: resolved, Text: "ok", IsError: true}, sent(h.Resolve(t.Context(), "1", agentloop.Result{Text: "ok", IsError: true})))
	require.Less(t, len(sent(h.Send(t.Context(), middleware.User(long))).(json.RawMessage)), 300)

	f.err = final(fmt.Errorf("%w: %q", agentloop.ErrDecided, "1"))
	require.ErrorIs(t, h.Approve(t.Context(), "1"), agentloop.ErrDecided)
	s, err := h.Wait(t.Context())
	require.ErrorIs(t, err, agentloop.ErrDecided)
	require.Nil(t, s)
	f.err = errStore
	require.ErrorIs(t, h.Approve(t.Context(), "1"), errStore)
	_, err = h.Pending(t.Context())
	require.ErrorIs(t, err, errStore)
	_, err = h.Wait(t.Context())
	require.ErrorIs(t, err, errStore)
	f.err, f.result = nil, `{"state":{"version":2,"messages":[{"role":"assistant","parts":[{"text":"hi"}]}]}}`
	s, err = h.Wait(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hi", s.Answer())
}

// Errors keep what errors.Is and errors.As find, through the history.
func TestFailure(t *testing.T) {
	t.Parallel()
	for _, s := range sentinels {
		f := roundTrip(t, fmt.Errorf("outer: %w", s.err))
		require.ErrorIs(t, f, s.err)
		require.Equal(t, "outer: "+s.err.Error(), f.Error())
		require.Equal(t, "toolmend."+s.name, f.errorType())
	}
	f := roundTrip(t, fmt.Errorf("outer: %w", &middleware.ModelError{StatusCode: 529, Code: "overloaded", RetryAfter: time.Second, Err: errStore}))
	var m *middleware.ModelError
	require.ErrorAs(t, f, &m)
	require.Equal(t, 529, m.StatusCode)
	require.Equal(t, "overloaded", m.Code)
	require.Equal(t, time.Second, m.RetryAfter)
	require.Equal(t, "toolmend.ModelError", f.errorType())
	require.Equal(t, "toolmend.Error", roundTrip(t, errStore).errorType())
	require.Less(t, len(roundTrip(t, errors.New(strings.Repeat("x", 1<<20))).Text), 10_000)
	require.Same(t, f, failureOf(errors.Join(f)))
}

func roundTrip(t *testing.T, err error) *failure {
	b, bad := json.Marshal(failureOf(err))
	require.NoError(t, bad)
	f := new(failure)
	require.NoError(t, json.Unmarshal(b, f))
	return f
}

// What Wait makes of the ways in which a workflow can end.
func TestRunError(t *testing.T) {
	t.Parallel()
	_, known := runError(errStore, new(Result))
	require.False(t, known)
	ran, known := runError(final(agentloop.ErrMaxSteps), new(Result))
	require.ErrorIs(t, ran, agentloop.ErrMaxSteps)
	require.False(t, known)
	ran, known = runError(temporal.NewCanceledError(), new(Result))
	require.ErrorIs(t, ran, context.Canceled)
	require.False(t, known)
	ran, known = runError(temporal.NewApplicationError("mine", "T"), new(Result))
	require.ErrorContains(t, ran, "mine")
	require.False(t, known)
	_, err := new(Result).State(t.Context(), nil)
	require.ErrorContains(t, err, "empty")
}

// A reference without a store is an error that names the option.
func TestNoStore(t *testing.T) {
	t.Parallel()
	key := strings.Repeat("0", 64)
	_, err := newBlobs(nil).open(t.Context(), conversation{State: []byte(`{"version":2,"messages":[{"role":"user","parts":[{"text":"` + mark + key + `"}]}]}`)})
	require.ErrorContains(t, err, "Blobs is not set")
	_, err = newBlobs(&memory{}).open(t.Context(), conversation{before{Key: key}, []byte(`{"version":2}`)})
	require.ErrorContains(t, err, "get blob "+key)
	b := newBlobs(&memory{})
	k, err := b.put(t.Context(), []byte("no segment"))
	require.NoError(t, err)
	_, err = b.open(t.Context(), conversation{before{Key: k}, []byte(`{"version":2}`)})
	require.ErrorContains(t, err, k)
}

// A worker that is older than the state of a run ends the run: at its start, and
// when a step of a newer worker is replayed.
func TestNewerState(t *testing.T) {
	t.Parallel()
	newer := json.RawMessage(`{"version":99}`)
	env := environment(t, WorkerOptions{Agents: agentOf(t, answers("x"))})
	env.ExecuteWorkflow(workflowName, startInput{"a", ended{conversation: conversation{State: newer}}})
	ran, _ := runError(env.GetWorkflowError(), new(Result))
	require.ErrorIs(t, ran, agentloop.ErrVersion)

	env = environment(t, WorkerOptions{Agents: agentOf(t, answers("x"))})
	env.OnActivity(modelActivity, anything, anything).Return(stepOutput{State: newer}, nil)
	execute(t, env, middleware.User("go"))
	ran, _ = runError(env.GetWorkflowError(), new(Result))
	require.ErrorIs(t, ran, agentloop.ErrVersion)
}

// The cache drops the oldest contents.
func TestCache(t *testing.T) {
	t.Parallel()
	m := &memory{}
	b := newBlobs(m)
	b.room = 40
	var keys []string
	for i := range 8 {
		k, err := b.put(t.Context(), bytes.Repeat([]byte{byte(i)}, 10))
		require.NoError(t, err)
		keys = append(keys, k)
	}
	for _, k := range keys {
		_, err := b.get(t.Context(), k)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, b.size, 40)
	require.Len(t, b.cache, len(b.order))
	require.Positive(t, m.gets.Load())
}

func TestWorkerOptions(t *testing.T) {
	t.Parallel()
	agents := agentOf(t, answers("x"))
	for wanted, o := range map[string]WorkerOptions{
		"there is no agent":    {},
		`agent "a" is nil`:     {Agents: map[string]*agentloop.Agent{"a": nil}},
		"must not be negative": {Agents: agents, Heartbeat: -1},
		"30s must be longer":   {Agents: agents, Heartbeat: time.Minute},
	} {
		_, err := New(o)
		require.ErrorContains(t, err, wanted)
	}
}

// Without a store the worker warns once. The plugin lets heartbeats through.
func TestPlugin(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	p, err := New(WorkerOptions{Agents: agentOf(t, answers("x")), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	require.NotEmpty(t, p.Name())
	var o worker.Options
	require.NoError(t, p.ConfigureWorker(t.Context(), worker.PluginConfigureWorkerOptions{WorkerOptions: &o}))
	require.Equal(t, defaultHeartbeat, o.MaxHeartbeatThrottleInterval)
	o.MaxHeartbeatThrottleInterval = time.Second
	require.NoError(t, p.ConfigureWorker(t.Context(), worker.PluginConfigureWorkerOptions{WorkerOptions: &o}))
	require.Equal(t, time.Second, o.MaxHeartbeatThrottleInterval)
	for range 2 {
		p.warn()
	}
	require.Equal(t, 1, strings.Count(log.String(), "WorkerOptions.Blobs is not set"))
}
