package agentloop_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// lists is a source that gives one list after the other, the last one for ever.
func lists(ls ...[]agentloop.Tool) agentloop.Source {
	n := -1
	return func(context.Context) ([]agentloop.Tool, error) {
		n = min(n+1, len(ls)-1)
		return ls[n], nil
	}
}

func offered(r *middleware.Request) []string {
	var names []string
	for _, t := range r.Tools {
		names = append(names, t.Name)
	}
	return names
}

// Each model step is sent the tools of the moment, and its calls are run by
// them, although the source has others by then.
func TestSourceIsAskedBeforeEachModelStep(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, answer(call("1", "a", `{}`)), answer(call("2", "b", `{}`), call("3", "own", `{}`)), middlewaretest.Text("done"))
	source := lists([]agentloop.Tool{says("a", "from a")}, []agentloop.Tool{says("b", "from b")}, nil)
	s := goState()
	require.NoError(t, newAgent(t, model.Call, agentloop.Options{Tools: []agentloop.Tool{says("own", "mine")}, Source: source}).Run(t.Context(), s))
	require.Equal(t, []string{"from a", "from b", "mine"}, replies(s))
	require.Equal(t, []string{"own", "a"}, offered(model.Requests()[0]))
	require.Equal(t, []string{"own", "b"}, offered(model.Requests()[1]))
	require.Equal(t, []string{"own"}, offered(model.Requests()[2]))
}

// A call to a tool that is gone is told to the model as one to an unknown tool.
func TestSourceToolGone(t *testing.T) {
	t.Parallel()
	source := lists([]agentloop.Tool{says("a", "from a"), says("b", "")}, []agentloop.Tool{says("b", "")})
	s, err := run(t, agentloop.Options{Source: source}, answer(call("1", "a", `{}`)), answer(call("2", "a", `{}`)), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Equal(t, "from a", replies(s)[0])
	require.Contains(t, replies(s)[1], "Available tools: b")
}

// What a person approved days ago runs by the tools of now.
func TestSourceOnResuming(t *testing.T) {
	t.Parallel()
	s, err := run(t, agentloop.Options{Source: lists([]agentloop.Tool{says("a", "old").NeedsApproval()})}, answer(call("1", "a", `{}`)))
	require.ErrorIs(t, err, agentloop.ErrPending)
	s = stored(t, s)
	require.NoError(t, s.Approve("1"))
	a := newAgent(t, modelOf(t, middlewaretest.Text("done")), agentloop.Options{Source: lists([]agentloop.Tool{says("a", "new")})})
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"new"}, replies(s))
}

// No stranger's tool takes the place of the program's own, or ends the run.
func TestSourceLeavesOutWhatNewRefuses(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, answer(call("1", "own", `{}`), call("2", "good", `{}`)), middlewaretest.Text("done"))
	pay := says("pay", "paid")
	pay.Approval = true // without a Validator
	source := lists([]agentloop.Tool{pay, says("own", "theirs"), says("web", ""), says("", ""), rawTool("none", nil), says("good", "1st"), says("good", "2nd")})
	s := goState()
	a, err := agentloop.New(model.Call, agentloop.Options{Tools: []agentloop.Tool{says("own", "mine")}, Source: source,
		Request: &middleware.Request{Tools: []middleware.Tool{{Name: "web", Kind: middleware.KindHosted}}}})
	require.NoError(t, err)
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"mine", "1st"}, replies(s))
	require.Equal(t, []string{"web", "own", "good"}, offered(model.Requests()[0]))
}

// The same slice is not wrapped again, so that caches and limits live on.
func TestSourceIsWrappedOncePerSlice(t *testing.T) {
	t.Parallel()
	var wrapped int
	first := []agentloop.Tool{says("a", "x"), says("b", "y")}
	s, err := run(t, agentloop.Options{Source: lists(first, first, first[:1]), ToolMiddleware: func(next agentloop.ToolFunc) agentloop.ToolFunc {
		wrapped++
		return next
	}}, answer(call("1", "a", `{}`)), answer(call("2", "b", `{}`)), middlewaretest.Text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"x", "y"}, replies(s))
	require.Equal(t, 3, wrapped, "two of the first list, one of the last")
}

func TestSourceErrorEndsTheRun(t *testing.T) {
	t.Parallel()
	n := 0
	source := func(context.Context) ([]agentloop.Tool, error) {
		if n++; n == 1 {
			return []agentloop.Tool{says("a", "x")}, nil
		}
		return nil, errBoom
	}
	s, err := run(t, agentloop.Options{Source: source}, answer(call("1", "a", `{}`)))
	require.ErrorIs(t, err, errBoom)
	require.ErrorContains(t, err, "agentloop: Options.Source: boom")
	require.Equal(t, []string{"x"}, replies(s), "the run can go on from here")
	_, err = run(t, agentloop.Options{Source: source})
	require.ErrorIs(t, err, errBoom)
}

// The end of the context is that, not a fault of the source.
func TestSourceCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	a := newAgent(t, modelOf(t), agentloop.Options{Source: func(ctx context.Context) ([]agentloop.Tool, error) {
		cancel(errBoom)
		return nil, ctx.Err()
	}})
	err := a.Run(ctx, goState())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, errBoom)
	err = newAgent(t, modelOf(t), agentloop.Options{Source: func(context.Context) ([]agentloop.Tool, error) {
		return nil, errors.New("asked after the end")
	}}).Run(ctx, goState())
	require.ErrorIs(t, err, context.Canceled)
	require.NotContains(t, err.Error(), "asked after the end")
}

// Runs side by side each keep the tools of their own step.
func TestSourceConcurrently(t *testing.T) {
	t.Parallel()
	ls := [][]agentloop.Tool{{says("a", "x")}, {says("a", "x"), says("b", "y")}}
	var n atomic.Int64
	a := newAgent(t, func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if len(req.Messages) > 6 {
			return &middleware.Response{Message: middleware.Assistant("done")}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("", call("", req.Tools[len(req.Tools)-1].Name, `{}`))}, nil
	}, agentloop.Options{Source: func(context.Context) ([]agentloop.Tool, error) { return ls[n.Add(1)%2], nil }})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s := goState()
			if err := a.Run(context.Background(), s); err != nil {
				t.Error(err)
			}
			for _, r := range s.Results {
				if r.IsError || r.Text != map[string]string{"a": "x", "b": "y"}[r.Call.Name] {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	wg.Wait()
}
