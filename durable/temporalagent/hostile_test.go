package temporalagent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// panics is a store that panics, from a number of Puts on.
type panics struct {
	memory
	puts int
}

func (p *panics) Put(ctx context.Context, key string, data []byte) error {
	if p.puts--; p.puts < 0 {
		panic("secret: the store panics")
	}
	return p.memory.Put(ctx, key, data)
}

// A panic in a function of the user's ends the run. The engine does not repeat the
// model call and the tool before it.
func TestPanics(t *testing.T) {
	t.Parallel()
	boom := func() { panic("secret") }
	for name, c := range map[string]struct {
		o            agentloop.Options
		store        BlobStore
		sink         Sink
		models, ran  int
		modelsPanics bool
	}{
		"the model":          {models: 1, modelsPanics: true},
		"the stop condition": {o: agentloop.Options{StopWhen: func(*agentloop.State) bool { boom(); return false }}, models: 1},
		"the source of tools": {o: agentloop.Options{Source: func(context.Context) ([]agentloop.Tool, error) {
			boom()
			return nil, nil
		}}},
		"the store, after a tool": {store: &panics{}, models: 1, ran: 1},
		"the sink":                {sink: func(context.Context, Event) error { boom(); return nil }, models: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models, ran := 0, 0
			tool := agentloop.RawTool("read", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
				ran++
				return agentloop.Text(strings.Repeat("x", blobSize+1)), nil
			})
			model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				models++
				if c.modelsPanics {
					boom()
				}
				if req.Sink != nil {
					if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: "x"}); err != nil {
						return nil, err
					}
				}
				return calling("read")(ctx, req)
			}
			c.o.Tools = []agentloop.Tool{tool}
			a, err := agentloop.New(model, c.o)
			require.NoError(t, err)
			var log bytes.Buffer
			_, _, err = inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": a}, Blobs: c.store, Sink: c.sink, Logger: slog.New(slog.NewTextHandler(&log, nil))}, middleware.User("go"))
			require.ErrorContains(t, err, "panic")
			require.Contains(t, log.String(), "hostile_test.go", "the stack")
			require.Equal(t, c.models, models)
			require.Equal(t, c.ran, ran)
		})
	}
}

// A decision about a run that has ended inside a workflow of the user's is refused:
// nothing would ever answer it.
func TestDecisionAfterTheEnd(t *testing.T) {
	t.Parallel()
	tool := agentloop.RawTool("later", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{}, agentloop.Suspend("later")
	})
	env := environment(t, WorkerOptions{Agents: agentOf(t, calling("later"), tool)})
	refused := ""
	env.RegisterDelayedCallback(func() {
		env.UpdateWorkflow(decideUpdate, "a", onReject(func(err error) { refused = err.Error() }),
			decision{CallID: "1", Kind: approved})
	}, 2*time.Hour)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		agent, cancel := workflow.WithCancel(ctx)
		workflow.Go(ctx, func(ctx workflow.Context) {
			_ = workflow.Sleep(ctx, time.Hour)
			cancel()
		})
		if _, err := RunIn(agent, InOptions{Agent: "a"}, middleware.User("go")); err == nil {
			return errors.New("the run was not canceled")
		}
		return workflow.Sleep(ctx, 24*time.Hour)
	})
	require.NoError(t, env.GetWorkflowError())
	require.Contains(t, refused, "has ended")
}

// What counts is the size in the history, where a character may take six bytes.
func TestSizeInTheHistory(t *testing.T) {
	t.Parallel()
	f := &turns{n: 1, result: strings.Repeat("<", 500_000)}
	s, _, err := inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": f.agent(t)}}, middleware.User("go"))
	require.ErrorIs(t, err, ErrTooLarge)
	require.ErrorContains(t, err, "the result of tool read")
	require.EqualValues(t, 1, f.ran.Load())
	require.Len(t, s.Steps, 1)
	h := Attach(&fake{}, Options{ID: "a"})
	require.ErrorIs(t, h.Reject(t.Context(), "a", strings.Repeat("<", 500_000)), ErrTooLarge)
}

// The messages that a run has not taken yet count too: a result that the server
// refuses would block the workflow for ever.
func TestSizeOfTheInbox(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"at the end": false, "where it continues as new": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := refuses
			if again {
				model = calling("look")
			}
			env := environment(t, WorkerOptions{Agents: agentOf(t, model, agentloop.RawTool("look", "", nil, nothing))})
			sent := 0
			env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
				for ; sent < 3; sent++ {
					env.UpdateWorkflow(messageUpdate, fmt.Sprint(sent), onReject(func(err error) { t.Error(err) }),
						[]middleware.Message{middleware.User(strings.Repeat("x", 900_000))})
				}
				env.SetContinueAsNewSuggested(again)
			})
			execute(t, env, middleware.User("go"))
			ran, known := runError(env.GetWorkflowError(), new(Result))
			require.False(t, known, "the result is too large to be beside the error")
			if again {
				require.ErrorIs(t, ran, ErrTooLarge)
			} else {
				require.ErrorContains(t, ran, "refused")
			}
		})
	}
}

// A reset of a workflow keeps the idempotency keys, the next run of a cron does not.
func TestRunID(t *testing.T) {
	t.Parallel()
	night := func(original string) string {
		return runID(&workflow.Info{WorkflowExecution: workflow.Execution{ID: "w", RunID: "now"}, FirstRunID: "first", OriginalRunID: original}, "k")
	}
	require.Equal(t, "w/first/k", night("first"))
	require.Equal(t, "w/second/k", night("second"))
}

// Temporal's messages are UTF-8: an error that is not could not be delivered.
func TestErrorText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"caf\xe9", "x" + strings.Repeat("é", maxErrorText)} {
		require.True(t, utf8.ValidString(final(errors.New(text)).Error()))
	}
}

// Put ends before the activity has to: otherwise the server takes the worker for
// lost, and the tool runs again. Its wait does not end with the run.
func TestPutHasADeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		timeout, least time.Duration
	}{{time.Minute, 50 * time.Second}, {time.Hour, 4 * time.Minute}} {
		store := &deadlines{}
		f := &turns{n: 1, result: strings.Repeat("x", blobSize+1)}
		_, _, err := inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": f.agent(t)}, Blobs: store,
			ToolActivity: map[string]workflow.ActivityOptions{"read": {StartToCloseTimeout: c.timeout}}}, middleware.User("go"))
		require.NoError(t, err)
		require.NotEmpty(t, store.left)
		for _, left := range store.left {
			require.Less(t, left, min(c.timeout, patience+time.Second))
			require.Greater(t, left, c.least)
		}
	}
}

// deadlines notes how much time each Put has.
type deadlines struct {
	memory
	left []time.Duration
}

func (d *deadlines) Put(ctx context.Context, key string, data []byte) error {
	until, ok := ctx.Deadline()
	if !ok {
		until = time.Now().Add(1000 * time.Hour)
	}
	d.left = append(d.left, time.Until(until))
	return d.memory.Put(ctx, key, data)
}

// An activity whose own HeartbeatTimeout is shorter than Heartbeat lives.
func TestShortHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	p, err := New(WorkerOptions{Agents: agentOf(t, answers("x"))})
	require.NoError(t, err)
	require.Equal(t, defaultHeartbeat, p.beat(activity.Info{}))
	require.Equal(t, defaultHeartbeat, p.beat(activity.Info{HeartbeatTimeout: 30 * time.Second}))
	require.Equal(t, time.Second, p.beat(activity.Info{HeartbeatTimeout: 3 * time.Second}))
}

// The reason of a rejection is part of a text, where a reference would stay one.
func TestLongReason(t *testing.T) {
	t.Parallel()
	f := &fake{}
	h := Attach(f, Options{ID: "a", Blobs: &memory{}})
	for _, reason := range []string{strings.Repeat("x", blobSize+1), mark} {
		require.NoError(t, h.Reject(t.Context(), "1", reason))
		require.Equal(t, decision{CallID: "1", Kind: rejected, Text: reason}, f.update.Args[0])
	}
}

// A message that arrives with the last step does not make the tools run that the
// stop condition has held back. It stays in the Result.
func TestMessageAfterTheStop(t *testing.T) {
	t.Parallel()
	ran := 0
	a, err := agentloop.New(calling("transfer"), agentloop.Options{
		Tools: []agentloop.Tool{agentloop.RawTool("transfer", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			ran++
			return agentloop.Result{}, nil
		})},
		StopWhen: func(s *agentloop.State) bool { return len(s.Messages[len(s.Messages)-1].ToolCalls) > 0 },
	})
	require.NoError(t, err)
	env := environment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": a}})
	var once sync.Once
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		once.Do(func() {
			env.UpdateWorkflow(messageUpdate, "a", onReject(func(err error) { t.Error(err) }), []middleware.Message{middleware.User("and this")})
		})
	})
	execute(t, env, middleware.User("go"))
	require.NoError(t, env.GetWorkflowError())
	result := new(Result)
	require.NoError(t, env.GetWorkflowResult(result))
	require.Zero(t, ran)
	require.Len(t, result.c.Inbox, 1)
}

// A run may begin with a long conversation of short messages, if there is a store.
func TestLongStart(t *testing.T) {
	t.Parallel()
	msgs := []middleware.Message{middleware.User(mark + strings.Repeat("0", 64))} // no reference
	for range 60 {
		msgs = append(msgs, middleware.Assistant(strings.Repeat("x", 10_000)), middleware.User(strings.Repeat("y", 10_000)))
	}
	store, f := &memory{}, &fake{}
	_, err := Start(t.Context(), f, Options{ID: "a", TaskQueue: "q", Agent: "a", Blobs: store}, msgs...)
	require.NoError(t, err)
	require.Less(t, sizeOf(f.in), 20_000)
	env := environment(t, WorkerOptions{Agents: agentOf(t, echo), Blobs: store})
	env.ExecuteWorkflow(workflowName, f.in)
	s, err := outcome(t, env, store)
	require.NoError(t, err)
	require.Equal(t, "61", s.Answer())
	require.Equal(t, msgs, s.Messages[:121])
}

// Many results in one turn that are short one by one fit too.
func TestManyResults(t *testing.T) {
	t.Parallel()
	const n = 40
	text := strings.Repeat("x", 30_000)
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if req.Messages[len(req.Messages)-1].Role == middleware.RoleTool {
			return &middleware.Response{Message: middleware.Assistant("done")}, nil
		}
		var calls []middleware.ToolCall
		for i := range n {
			calls = append(calls, middleware.ToolCall{ID: fmt.Sprint(i), Name: "read", Arguments: "{}"})
		}
		return &middleware.Response{Message: middleware.Assistant("", calls...)}, nil
	}
	tool := agentloop.RawTool("read", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Text(text), nil
	})
	s, bytes, err := inEnvironment(t, WorkerOptions{Agents: agentOf(t, model, tool), Blobs: &memory{}}, middleware.User("go"))
	require.NoError(t, err)
	require.Len(t, s.Results, n)
	require.Equal(t, text, s.Results[n-1].Text)
	require.Less(t, bytes, 200_000)
	require.Zero(t, room(16))
	require.Less(t, 1000*room(1000), maxValue)
}

// A message that was accepted is in the State, also if the run ends before it was
// taken.
func TestMessageBeforeAnError(t *testing.T) {
	t.Parallel()
	store := &memory{}
	env := environment(t, WorkerOptions{Blobs: store, Agents: agentOf(t, refuses)})
	long, err := newBlobs(store).packString(t.Context(), strings.Repeat("x", blobSize+1), blobSize)
	require.NoError(t, err)
	var once sync.Once
	env.SetOnActivityStartedListener(func(*activity.Info, context.Context, converter.EncodedValues) {
		once.Do(func() {
			env.UpdateWorkflow(messageUpdate, "a", onReject(func(err error) { t.Error(err) }), []middleware.Message{middleware.User(long)})
		})
	})
	execute(t, env, middleware.User("go"))
	s, err := outcome(t, env, store)
	require.ErrorContains(t, err, "refused")
	require.Len(t, s.Messages, 2)
	require.Len(t, s.Messages[1].Text(), blobSize+1)
}

// A call marked AtMostOnce whose arguments cannot be read has not run, and the
// model is told so.
func TestArgumentsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	p, err := New(WorkerOptions{Agents: agentOf(t, answers("x")), Blobs: &memory{}})
	require.NoError(t, err)
	in := toolInput{Agent: "a", Call: middleware.ToolCall{ID: "1", Name: "pay", Arguments: mark + strings.Repeat("0", 64)}}
	env, _ := activities(t, p)
	_, err = env.ExecuteActivity(toolActivity, in)
	require.ErrorContains(t, err, "get blob", "another attempt reads them")
	in.Marks.AtMostOnce = true
	v, err := env.ExecuteActivity(toolActivity, in)
	require.NoError(t, err)
	var out toolOutput
	require.NoError(t, v.Get(&out))
	require.True(t, out.IsError)
	require.Contains(t, out.Text, "did not run")
}
