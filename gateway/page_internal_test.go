package gateway

import (
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/page"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/report"
)

// panicking is an error whose word cannot be found.
type panicking struct{ error }

func (panicking) ErrorType() string { panic("broken") }

// While steps are not kept as fast as exchanges end, exchanges are dropped; none
// waits. A step that panics is counted, and the next one is kept.
func TestKeeperNeverDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var drops, panics atomic.Int64
		gate := make(chan struct{})
		k := &keeper{
			steps: page.NewSteps(1 << 20), drop: func() { drops.Add(1) },
			broken: func(*exchange, any) { <-gate; panics.Add(1) },
		}
		k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{}), err: panicking{}})
		time.Sleep(keepDelay) // virtual
		synctest.Wait()
		for range waitingSteps + 10 {
			k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{})})
		}
		require.EqualValues(t, 10, drops.Load())
		large := &exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Assistant(strings.Repeat("x", waitingStepBytes))}}}}
		k.observed(large)
		require.EqualValues(t, 11, drops.Load())
		close(gate)
		synctest.Wait()
		require.EqualValues(t, 1, panics.Load())
		require.False(t, k.working)
		require.Zero(t, k.bytes)
		k.observed(large)
		require.EqualValues(t, 12, drops.Load(), "too large at any time")
		k.observed(&exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Message{ToolCalls: []middleware.ToolCall{{Name: strings.Repeat("x", waitingStepBytes)}}}}}}})
		require.EqualValues(t, 13, drops.Load(), "models choose the names too")
	})
}
