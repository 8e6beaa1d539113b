package agentloop_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/retry"
)

var errDown = &middleware.ModelError{StatusCode: 503}

// plays is a tool that returns these errors, one after the other, and then
// succeeds.
func plays(n *int, errs ...error) agentloop.Tool {
	return rawTool("t", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		if *n++; *n <= len(errs) {
			return agentloop.Result{Value: *n}, errs[*n-1]
		}
		return agentloop.Text("ok"), nil
	})
}

func TestRetryTools(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		errs []error
		runs int
		told string
		err  error
	}{
		"transient":     {[]error{errDown, fmt.Errorf("wrapped: %w", errDown)}, 3, "ok", nil},
		"exhausted":     {[]error{errDown, errDown, errDown, errDown}, 4, "middleware: model error: status 503", nil},
		"final":         {[]error{errBoom}, 1, "boom", nil},
		"then final":    {[]error{errDown, errBoom}, 2, "boom", nil},
		"abort":         {[]error{agentloop.Abort(errDown)}, 1, "", errDown},
		"suspend":       {[]error{fmt.Errorf("%w: %w", errDown, agentloop.Suspend("later"))}, 1, "", agentloop.ErrPending},
		"cancelled own": {[]error{context.Canceled}, 1, "context canceled", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := 0
				o := tools(plays(&n, c.errs...))
				o.ToolMiddleware = agentloop.RetryTools(retry.Options{})
				script := []middlewaretest.Turn{calls("t", "{}")}
				if c.err == nil {
					script = append(script, text("done"))
				}
				s, err := run(t, o, script...)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, c.runs, n)
				if c.err == nil {
					require.Equal(t, []string{c.told}, replies(s))
				}
			})
		})
	}
	require.Panics(t, func() { agentloop.RetryTools(retry.Options{MaxAttempts: -1}) })
}

// The end of the run's context ends the retries; the call is not answered.
func TestRetryToolsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		o := tools(plays(&n, errDown, errDown))
		o.ToolMiddleware = agentloop.RetryTools(retry.Options{MinDelay: time.Hour, MaxDelay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		s := goState()
		require.ErrorIs(t, newAgent(t, modelOf(t, calls("t", "{}")), o).Run(ctx, s), context.Canceled)
		require.Equal(t, agentloop.CallReady, s.Turn()[0].Status)
		synctest.Wait()
		require.Equal(t, 1, n)
	})
}

func TestLimitTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		busy := rawTool("busy", func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			time.Sleep(time.Second)
			return agentloop.Text("ok"), nil
		})
		hasty := takes("hasty", time.Second)
		hasty.Timeout = 1500 * time.Millisecond
		o := tools(busy, hasty)
		o.ToolMiddleware = agentloop.LimitTools(2)
		start := time.Now()
		s, err := run(t, o, calls("busy", "{}", "busy", "{}", "busy", "{}", "hasty", "{}", "hasty", "{}", "hasty", "{}"), text("done"))
		require.NoError(t, err)
		require.EqualValues(t, 2, most.Load(), "each tool has places of its own")
		require.Equal(t, 2*time.Second, time.Since(start))
		late := 0
		for _, r := range replies(s) {
			if r == "The tool was not done within 1.5s." {
				late++
			}
		}
		require.Equal(t, 1, late, "waiting counts")
	})
	require.PanicsWithValue(t, "agentloop: LimitTools: n must be at least 1, got 0", func() { agentloop.LimitTools(0) })
}
