package temporalagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/testsuite"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// turns is an agent whose model calls a tool n times and then answers. It counts
// the calls of the tool.
type turns struct {
	n      int
	result string
	ran    atomic.Int64
}

func (f *turns) agent(t *testing.T) *agentloop.Agent {
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		said := 0
		for _, m := range req.Messages {
			if m.Role == middleware.RoleAssistant {
				said++
			}
			if m.Role == middleware.RoleTool && m.Text() != f.result {
				return nil, errors.New("the model got another result")
			}
		}
		if said == f.n {
			return &middleware.Response{Message: middleware.Assistant("done")}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: fmt.Sprint(said), Name: "read", Arguments: "{}"})}, nil
	}
	a, err := agentloop.New(model, agentloop.Options{MaxSteps: f.n + 1, Tools: []agentloop.Tool{
		agentloop.RawTool("read", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			f.ran.Add(1)
			return agentloop.Text(f.result), nil
		})}})
	require.NoError(t, err)
	return a
}

// inEnvironment runs an agent in the test environment, and returns how many bytes
// the history would have.
func inEnvironment(t *testing.T, o WorkerOptions, msgs ...middleware.Message) (s *agentloop.State, bytes int, err error) {
	env := environment(t, o)
	env.SetOnActivityStartedListener(func(_ *activity.Info, _ context.Context, args converter.EncodedValues) {
		var in json.RawMessage
		require.NoError(t, args.Get(&in))
		bytes += len(in)
	})
	env.SetOnActivityCompletedListener(func(_ *activity.Info, result converter.EncodedValue, _ error) {
		var out json.RawMessage
		if result != nil && result.HasValue() {
			require.NoError(t, result.Get(&out))
		}
		bytes += len(out)
	})
	execute(t, env, msgs...)
	s, err = outcome(t, env, o.Blobs)
	return s, bytes, err
}

func environment(t *testing.T, o WorkerOptions) *testsuite.TestWorkflowEnvironment {
	env := newEnvironment()
	p, err := New(o)
	require.NoError(t, err)
	p.Register(env)
	return env
}

func outcome(t *testing.T, env *testsuite.TestWorkflowEnvironment, b BlobStore) (*agentloop.State, error) {
	result := new(Result)
	ran := env.GetWorkflowError()
	if ran != nil {
		known := false
		if ran, known = runError(ran, result); !known {
			return nil, ran
		}
	} else {
		require.NoError(t, env.GetWorkflowResult(result))
	}
	s, err := result.State(t.Context(), b)
	require.NoError(t, err)
	return s, ran
}

// Five results of 1 MB each go through the store, and the history stays small.
func TestLargeResults(t *testing.T) {
	t.Parallel()
	f := &turns{n: 5, result: strings.Repeat("0123456789abcdef", 1<<16)}
	s, bytes, err := inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": f.agent(t)}, Blobs: &memory{}}, middleware.User("go"))
	require.NoError(t, err)
	require.Equal(t, "done", s.Answer())
	require.Equal(t, f.result, s.Results[4].Text)
	require.EqualValues(t, 5, f.ran.Load())
	require.Less(t, bytes, 20_000)
}

// With a store, twice as many turns are twice as many bytes.
func TestHistoryGrowsLinearly(t *testing.T) {
	t.Parallel()
	size := func(n int) int {
		f := &turns{n: n, result: strings.Repeat("x", 3000)}
		s, bytes, err := inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": f.agent(t)}, Blobs: &memory{}}, middleware.User("go"))
		require.NoError(t, err)
		require.Len(t, s.Results, n)
		require.Len(t, s.Steps, n+1)
		require.Equal(t, n, s.Results[n-1].Turn)
		return bytes
	}
	one, two := size(40), size(80)
	require.InDelta(t, 2, float64(two)/float64(one), 0.1, "%d bytes, %d bytes", one, two)
}

// Without a store, a value over 1 MB ends the run. The error names it, and no
// tool runs again.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		turns           *turns
		message, wanted string
		ran             int
	}{
		"a result":       {&turns{n: 1, result: strings.Repeat("x", 2_200_000)}, "go", "the result of tool read has 2200002 bytes", 1},
		"a conversation": {&turns{n: 5, result: strings.Repeat("x", 500_000)}, "go", "the conversation has", 3},
		"a message":      {&turns{}, strings.Repeat("x", maxValue), "the conversation has", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := inEnvironment(t, WorkerOptions{Agents: map[string]*agentloop.Agent{"a": c.turns.agent(t)}}, middleware.User(c.message))
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorContains(t, err, c.wanted)
			require.ErrorContains(t, err, "WorkerOptions.Blobs")
			require.EqualValues(t, c.ran, c.turns.ran.Load())
			if s != nil {
				require.Len(t, s.Steps, c.ran)
			}
		})
	}
	_, err := Start(t.Context(), nil, Options{ID: "a", TaskQueue: "q"}, middleware.User(strings.Repeat("x", maxValue)))
	require.ErrorIs(t, err, ErrTooLarge)
	h := Attach(nil, Options{ID: "a"})
	require.ErrorIs(t, h.Send(t.Context(), middleware.User(strings.Repeat("x", maxValue))), ErrTooLarge)
	require.ErrorIs(t, h.Reject(t.Context(), "a", strings.Repeat("x", maxValue+1)), ErrTooLarge)
}

// Long strings of any document come back from the store as they were, and so do
// texts that look like references.
func TestPack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := newBlobs(&memory{})
		b.limit = 8
		word := rapid.OneOf(rapid.String(), rapid.Just(mark+strings.Repeat("a", 64)), rapid.Just(`"\`), rapid.Just(mark))
		leaf := rapid.OneOf(rapid.Map(word, func(s string) any { return s }), rapid.Just[any](1.5), rapid.Just[any](nil))
		v := rapid.MapOf(word, rapid.OneOf(leaf, rapid.Map(rapid.SliceOf(leaf), func(l []any) any { return l }),
			rapid.Map(rapid.MapOf(word, leaf), func(m map[string]any) any { return m }))).Draw(t, "document")
		doc, err := json.MarshalIndent(v, "", rapid.SampledFrom([]string{"", " "}).Draw(t, "indent"))
		require.NoError(t, err)
		packed, err := b.pack(context.Background(), doc)
		require.NoError(t, err)
		back, err := b.unpack(context.Background(), packed)
		require.NoError(t, err)
		require.JSONEq(t, string(doc), string(back))
	})
}

// broken is a store that fails a number of times.
type broken struct {
	memory
	puts, gets int
	damage     bool
}

var errStore = errors.New("the store is down")

func (b *broken) Put(ctx context.Context, key string, data []byte) error {
	if b.puts--; b.puts >= 0 {
		return errStore
	}
	return b.memory.Put(ctx, key, data)
}

func (b *broken) Get(ctx context.Context, key string) ([]byte, error) {
	if b.gets--; b.gets >= 0 {
		return nil, errStore
	}
	data, err := b.memory.Get(ctx, key)
	if b.damage {
		data = append(data, '!')
	}
	return data, err
}

// A store that fails costs time, and no tool runs twice because of it.
func TestStoreFails(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40_000)
	for name, c := range map[string]struct {
		store  *broken
		is     error
		wanted string
		ran    int
	}{
		"for a moment":   {&broken{puts: 2, gets: 2}, nil, "", 2},
		"for ever":       {&broken{puts: 1 << 30}, nil, "put 40000 bytes into the blob store: the store is down", 1},
		"a damaged blob": {&broken{damage: true}, ErrLost, "is damaged", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &turns{n: 2, result: long}
			env := newEnvironment()
			p, err := New(WorkerOptions{Agents: map[string]*agentloop.Agent{"a": f.agent(t)}, Blobs: c.store})
			require.NoError(t, err)
			p.blobs.patience, p.blobs.room = time.Second, 0 // nothing is cached
			p.Register(env)
			began := env.Now()
			execute(t, env, middleware.User("go"))
			err = env.GetWorkflowError()
			require.EqualValues(t, c.ran, f.ran.Load())
			if c.wanted == "" {
				require.NoError(t, err)
				return
			}
			ran, _ := runError(err, new(Result))
			require.ErrorContains(t, ran, c.wanted)
			if c.is != nil {
				require.ErrorIs(t, ran, c.is)
				require.InDelta(t, 3*time.Minute, env.Now().Sub(began), float64(time.Minute))
			}
		})
	}
}
