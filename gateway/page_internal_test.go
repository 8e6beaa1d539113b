package gateway

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// panicking is an error whose word cannot be found.
type panicking struct{ error }

func (panicking) ErrorType() string { panic("broken") }

// gated is a log whose writer waits.
type gated struct{ gate chan struct{} }

func (g gated) Write(p []byte) (int, error) { <-g.gate; return len(p), nil }

// While steps are not kept as fast as exchanges end, exchanges are dropped; none
// waits. A step that panics is counted, and the next one is kept.
func TestKeeperNeverDelays(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, counted := counting(t)
		log := gated{make(chan struct{})}
		k := newKeeper(m, slog.New(slog.NewTextHandler(log, nil)))
		k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{}), err: panicking{}})
		time.Sleep(gatherDelay) // of the test's own clock
		synctest.Wait()
		for range waitingSteps + 10 {
			k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{})})
		}
		require.Equal(t, 10, counted("dropped"))
		large := &exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Assistant(strings.Repeat("x", waitingStepBytes))}}}}
		k.observed(large)
		require.Equal(t, 11, counted("dropped"))
		close(log.gate)
		synctest.Wait()
		require.Equal(t, 1, counted("panics"))
		require.Zero(t, k.queue.running)
		k.observed(large)
		require.Equal(t, 12, counted("dropped"), "too large at any time")
		k.observed(&exchange{report: middleware.Report{Attempts: []middleware.Attempt{{Message: middleware.Message{ToolCalls: []middleware.ToolCall{{Name: strings.Repeat("x", waitingStepBytes)}}}}}}})
		require.Equal(t, 13, counted("dropped"), "models choose the names too")
	})
}
