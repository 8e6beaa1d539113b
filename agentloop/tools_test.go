package agentloop_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// takes is a tool that takes that long, and honours its context.
func takes(name string, d time.Duration) agentloop.Tool {
	return rawTool(name, func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		select {
		case <-time.After(d):
			return agentloop.Text(c.ID + " done"), nil
		case <-ctx.Done():
			return agentloop.Result{}, ctx.Err()
		}
	})
}

// Tools run concurrently up to the limit, and their results stand in call
// order.
func TestParallel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		parallel int
		want     time.Duration
	}{{0, 3 * time.Second}, {8, 3 * time.Second}, {1, 6 * time.Second}, {2, 3 * time.Second}} {
		t.Run(fmt.Sprint(c.parallel), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := tools(takes("s3", 3*time.Second), takes("s2", 2*time.Second), takes("s1", time.Second))
				o.Parallel = c.parallel
				start := time.Now()
				s, err := run(t, o, calls("s3", "{}", "s2", "{}", "s1", "{}"), text("done"))
				require.NoError(t, err)
				require.Equal(t, c.want, time.Since(start))
				require.Equal(t, []string{"call_1 done", "call_2 done", "call_3 done"}, replies(s))
			})
		})
	}
}

// A serial tool waits for those before it, and those after it wait for it.
func TestSerial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		serial := rawTool("serial", func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
			require.EqualValues(t, 0, running.Load())
			time.Sleep(time.Second)
			require.EqualValues(t, 0, running.Load())
			return agentloop.Text("serial"), nil
		})
		serial.Serial = true
		beside := rawTool("beside", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(time.Second)
			return agentloop.Text("beside"), nil
		})
		start := time.Now()
		s, err := run(t, tools(serial, beside), calls("beside", "{}", "beside", "{}", "serial", "{}", "serial", "{}", "beside", "{}"), text("done"))
		require.NoError(t, err)
		require.Equal(t, 4*time.Second, time.Since(start))
		require.EqualValues(t, 2, most.Load())
		require.Equal(t, []string{"beside", "beside", "serial", "serial", "beside"}, replies(s))
	})
}

func TestToolFaults(t *testing.T) {
	t.Parallel()
	panics := rawTool("panics", func(context.Context, middleware.ToolCall) (agentloop.Result, error) { panic("at line 7") })
	exits := rawTool("exits", func(context.Context, middleware.ToolCall) (agentloop.Result, error) { runtime.Goexit(); panic("never") })
	both := rawTool("both", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{Text: "kept", Value: 7}, errBoom
	})
	flagged := rawTool("flagged", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{Text: "no such city", IsError: true}, nil
	})
	s, err := run(t, tools(panics, exits, both, flagged, fails("silent", fmt.Errorf("")), says("latin", "caf\xe9")),
		calls("panics", "{}", "exits", "{}", "both", "{}", "flagged", "{}", "silent", "{}", "latin", "{}"), text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"the tool failed unexpectedly", "the tool failed unexpectedly", "boom\n\nkept", "no such city", "The tool failed.", "caf\uFFFD"}, replies(s))
	for i, m := range s.Messages[2:8] {
		require.Equal(t, i < 5, m.IsError)
	}
	var panicked *middleware.PanicError
	require.ErrorAs(t, s.Results[0].Err, &panicked)
	require.Equal(t, "at line 7", panicked.Value)
	require.Contains(t, string(panicked.Stack), "tools_test.go")
	require.ErrorIs(t, s.Results[2].Err, errBoom)
	require.NoError(t, s.Results[5].Err)
	v, ok := agentloop.Value[int](s)
	require.True(t, ok)
	require.Equal(t, 7, v)
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()
	s, err := run(t, tools(weather()), calls("nonsense", "{}"), text("done"))
	require.NoError(t, err)
	require.Contains(t, replies(s)[0], "Tool 'nonsense' does not exist.")
	require.Equal(t, 0, s.Failures)
	require.Empty(t, s.Results, "a failed turn")

	o := tools(weather(), agentloop.Tool{Def: middleware.Tool{Name: "web", Kind: middleware.KindHosted}})
	o.Validator = argsvalidate.NewValidator(argsvalidate.Options{UnknownTools: argsvalidate.PassUnknown})
	s, err = run(t, o, calls("nonsense", "{}", "web", "{}", "weather", oslo), text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"Tool 'nonsense' does not exist. Available tools: weather, web.", "Tool 'web' does not exist. Available tools: weather, web.", "sunny in Oslo"}, replies(s))
}

// A call of another kind is not validated against the tool's schema, so it does not run.
func TestKindOfCall(t *testing.T) {
	t.Parallel()
	free := call("a", "weather", "free text")
	free.Kind = middleware.KindCustom
	s, err := run(t, tools(weather()), answer(free), text("done"))
	require.NoError(t, err)
	require.Contains(t, replies(s)[0], "does not exist")

	custom := says("custom", "ran")
	custom.Def.Kind = middleware.KindCustom
	free.Name = "custom"
	s, err = run(t, tools(custom), answer(free), text("done"))
	require.NoError(t, err)
	require.Equal(t, []string{"ran"}, replies(s))
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		honours := takes("honours", time.Hour)
		honours.Timeout = time.Second
		quick := takes("quick", time.Second)
		quick.Timeout = 2 * time.Second
		ignores := rawTool("ignores", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			time.Sleep(time.Minute)
			return agentloop.Text("too late"), nil
		})
		ignores.Timeout = time.Second
		start := time.Now()
		s, err := run(t, tools(honours, ignores, quick), calls("honours", "{}", "ignores", "{}", "quick", "{}"), text("done"))
		require.NoError(t, err)
		require.Equal(t, []string{"The tool was not done within 1s.", "The tool was not done within 1s.", "call_3 done"}, replies(s))
		require.ErrorIs(t, s.Results[0].Err, context.DeadlineExceeded)
		require.ErrorIs(t, s.Results[1].Err, context.DeadlineExceeded)
		require.Equal(t, time.Second, time.Since(start))
		time.Sleep(time.Minute)
	})
}

// A tool ends the run: what was under way is recorded, what was not begun is
// not, and the run may go on.
func TestAbort(t *testing.T) {
	t.Parallel()
	first := true
	aborts := rawTool("aborts", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		if first {
			first = false
			return agentloop.Result{}, fmt.Errorf("wrapped: %w", agentloop.Abort(errBoom))
		}
		return agentloop.Text("second try"), nil
	})
	aborts.Serial = true
	ran := 0
	after := rawTool("after", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		ran++
		return agentloop.Text("after"), nil
	})
	o := tools(says("before", "before"), aborts, after)
	s, err := run(t, o, calls("before", "{}", "aborts", "{}", "after", "{}"))
	require.ErrorIs(t, err, errBoom)
	require.Empty(t, replies(s), "the model is not told")
	require.Zero(t, ran)
	require.Equal(t, agentloop.CallDone, s.Turn()[0].Status)
	require.Equal(t, []agentloop.CallStatus{agentloop.CallReady, agentloop.CallReady}, []agentloop.CallStatus{s.Turn()[1].Status, s.Turn()[2].Status})
	a := newAgent(t, modelOf(t, text("done")), o)
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"before", "second try", "after"}, replies(s))
	require.Panics(t, func() { _ = agentloop.Abort(nil) })
}

func TestSuspendAndResolve(t *testing.T) {
	t.Parallel()
	o := tools(fails("pay", agentloop.Suspend("waits for the bank")), says("other", "fine"))
	s, err := run(t, o, calls("pay", "{}", "other", "{}"))
	require.ErrorIs(t, err, agentloop.ErrPending)
	s = stored(t, s)
	require.Equal(t, []agentloop.Pending{{Call: call("call_1", "pay", "{}"), Reason: "waits for the bank"}}, s.Pending())
	require.Empty(t, replies(s))
	require.NoError(t, s.Resolve("call_1", agentloop.Result{Text: "paid", Value: 9}))
	require.ErrorIs(t, s.Resolve("call_1", agentloop.Result{}), agentloop.ErrDecided)
	require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
	require.Equal(t, []string{"paid", "fine"}, replies(s))
	v, _ := agentloop.Value[int](s)
	require.Equal(t, 9, v)
}

// A suspended call that is approved runs again.
func TestSuspendAndApprove(t *testing.T) {
	t.Parallel()
	var keys []string
	pay := rawTool("pay", func(ctx context.Context, _ middleware.ToolCall) (agentloop.Result, error) {
		info, _ := agentloop.CallFrom(ctx)
		if keys = append(keys, info.Key); len(keys) == 1 {
			return agentloop.Result{}, agentloop.Suspend("bank")
		}
		return agentloop.Text("paid"), nil
	})
	pay.Approval = true
	s, err := run(t, tools(pay), calls("pay", "{}"))
	require.ErrorIs(t, err, agentloop.ErrPending)
	require.NoError(t, s.Approve("call_1"))
	require.ErrorIs(t, newAgent(t, modelOf(t), tools(pay)).Run(t.Context(), s), agentloop.ErrPending)
	require.Equal(t, "bank", s.Pending()[0].Reason)
	require.False(t, s.Turn()[0].Decided, "a call that suspends itself needs a new decision")
	s = stored(t, s)
	require.NoError(t, s.Approve("call_1"))
	require.NoError(t, newAgent(t, modelOf(t, text("done")), tools(pay)).Run(t.Context(), s))
	require.Equal(t, []string{"paid"}, replies(s))
	require.Equal(t, []string{s.RunID + "/1/call_1", s.RunID + "/1/call_1"}, keys, "the idempotency key is the same in each process")
}

func TestSideValue(t *testing.T) {
	t.Parallel()
	tool := rawTool("t", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{Text: "kept", Value: trip{City: "secret"}}, nil
	})
	s, err := run(t, tools(tool), calls("t", "{}"), text("done"))
	require.NoError(t, err)
	v, ok := agentloop.Value[trip](s)
	require.True(t, ok)
	require.Equal(t, "secret", v.City)
	_, ok = agentloop.Value[string](s)
	require.False(t, ok)
	_, ok = agentloop.Value[trip](stored(t, s))
	require.False(t, ok, "side values do not survive JSON")
}

func TestReturnDirect(t *testing.T) {
	t.Parallel()
	direct := func(tool agentloop.Tool) agentloop.Tool { tool.ReturnDirect = true; return tool }
	s, err := run(t, tools(direct(says("t", "the result"))), calls("t", "{}"))
	require.NoError(t, err)
	require.Equal(t, "the result", s.Answer())
	require.Equal(t, middleware.RoleAssistant, last(s).Role)

	s, err = run(t, tools(direct(fails("t", errBoom))), calls("t", "{}"), text("sorry"))
	require.NoError(t, err)
	require.Equal(t, "sorry", s.Answer(), "an error is never the answer")

	o := tools(direct(says("t", "")))
	s, err = run(t, o, calls("t", "{}"))
	require.NoError(t, err)
	require.Empty(t, s.Answer())
	require.NoError(t, s.Append(middleware.User("and?")))
	require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s))
	require.Len(t, s.Messages, 5, "an answer of nothing is not sent on: providers refuse it")
}

func TestCallFrom(t *testing.T) {
	t.Parallel()
	var got agentloop.CallInfo
	tool := rawTool("t", func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		got, _ = agentloop.CallFrom(ctx)
		require.Equal(t, c, got.Call)
		return agentloop.Result{}, nil
	})
	tool.Title, tool.Def.Description = "Looks it up", "d"
	s, err := run(t, tools(tool), calls("t", "{}"), text("done"))
	require.NoError(t, err)
	require.Equal(t, agentloop.CallInfo{Call: call("call_1", "t", "{}"), Title: "Looks it up", Description: "d", Key: s.RunID + "/1/call_1"}, got)
	tool.Title = ""
	_, err = run(t, tools(tool), calls("t", "{}"), text("done"))
	require.NoError(t, err)
	require.Equal(t, "t", got.Title)
	_, ok := agentloop.CallFrom(t.Context())
	require.False(t, ok)
}

func TestChainTools(t *testing.T) {
	t.Parallel()
	var order []string
	layer := func(name string) agentloop.ToolMiddleware {
		return func(next agentloop.ToolFunc) agentloop.ToolFunc {
			return func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
				order = append(order, name)
				return next(ctx, c)
			}
		}
	}
	mws := []agentloop.ToolMiddleware{layer("a"), nil, agentloop.ChainTools(layer("b"), layer("c"))}
	chain := agentloop.ChainTools(mws...)
	clear(mws)
	o := tools(says("t", "ok"))
	o.ToolMiddleware = chain
	_, err := run(t, o, calls("t", "{}"), text("done"))
	require.NoError(t, err)
	require.True(t, slices.Equal([]string{"a", "b", "c"}, order), order)
}
