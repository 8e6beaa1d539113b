package agentloop_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// The context ends while tools run: what is finished is recorded, the model is
// told nothing, the state is saved, and the run can go on.
func TestCancelledInTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quickRuns := 0
		quick := rawTool("quick", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			quickRuns++
			return agentloop.Text("quick"), nil
		})
		var saved []*agentloop.State
		o := tools(quick, takes("slow", time.Minute), rawTool("deaf", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			time.Sleep(time.Hour)
			return agentloop.Text("deaf"), nil
		}))
		o.Checkpoint = func(ctx context.Context, s *agentloop.State) error {
			require.NoError(t, ctx.Err(), "what is done is saved, also when the context has ended")
			saved = append(saved, stored(t, s))
			return nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s := goState()
		start := time.Now()
		err := newAgent(t, modelOf(t, calls("quick", "{}", "slow", "{}", "deaf", "{}")), o).Run(ctx, s)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start), "a tool that ignores its context does not hold the run")
		require.Empty(t, replies(s))
		require.Equal(t, agentloop.CallDone, s.Turn()[0].Status)
		require.Len(t, saved, 4, "the answer, before tools, after quick, at the end")

		require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), saved[3]))
		require.Equal(t, []string{"quick", "call_2 done", "deaf"}, replies(saved[3]))
		require.Equal(t, 1, quickRuns)
		time.Sleep(time.Hour)
	})
}

// The error of a tool that aborts is returned although the context ends before
// the other tools are back.
func TestAbortBeforeTheContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		slow := rawTool("slow", func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
			time.Sleep(time.Second)
			cancel()
			return agentloop.Result{}, ctx.Err()
		})
		a := newAgent(t, modelOf(t, calls("slow", "{}", "t", "{}")), tools(slow, fails("t", agentloop.Abort(errBoom))))
		err := a.Run(ctx, goState())
		require.ErrorIs(t, err, errBoom)
		require.NotErrorIs(t, err, context.Canceled)
	})
}

// The context ends in the model call: the error is the context's, whatever the
// model makes of it, and its cause is found.
func TestCancelledInModel(t *testing.T) {
	t.Parallel()
	for name, modelErr := range map[string]error{"own error": errBoom, "context error": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			model := func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
				cancel(errStop)
				if modelErr == nil {
					return nil, context.Cause(ctx)
				}
				return nil, modelErr
			}
			s := goState()
			err := newAgent(t, model, agentloop.Options{}).Run(ctx, s)
			require.ErrorIs(t, err, context.Canceled)
			require.ErrorIs(t, err, errStop)
			require.Len(t, s.Messages, 1)
			require.ErrorIs(t, newAgent(t, model, agentloop.Options{}).Run(ctx, s), context.Canceled, "before the first step")
		})
	}
}

var errStop = errors.New("stop")

// The answer was there before the context ended: it is kept, and its calls are
// validated when the run goes on. A check that is cut off says nothing about them.
func TestCancelledBeforeValidation(t *testing.T) {
	t.Parallel()
	for range 20 { // which way a done context and a quick function race is open
		tool, ran := counted()
		ctx, cancel := context.WithCancel(t.Context())
		model := modelOf(t, calls("weather", oslo), text("done"))
		s := goState()
		a := newAgent(t, func(c context.Context, req *middleware.Request) (*middleware.Response, error) {
			resp, err := model(c, req)
			cancel()
			return resp, err
		}, tools(tool))
		require.ErrorIs(t, a.Run(ctx, s), context.Canceled)
		require.Zero(t, *ran)
		require.Len(t, s.Messages, 2)
		require.NoError(t, a.Run(t.Context(), stored(t, s)))
		require.Equal(t, 1, *ran)
	}
}
