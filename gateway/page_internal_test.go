package gateway

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
)

// panicking is an error whose word cannot be found.
type panicking struct{ error }

func (panicking) ErrorType() string { panic("broken") }

// A step that panics is counted, and the next one is kept.
func TestKeeperPanics(t *testing.T) {
	t.Parallel()
	m, counted := counting(t)
	k := newKeeper(m, slog.New(slog.DiscardHandler))
	k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{}), err: panicking{}})
	require.Equal(t, 1, counted("panics"))
	k.observed(&exchange{checker: report.NewChecker(argsvalidate.Options{})})
	require.Equal(t, uint64(2), k.steps.Add(report.Step{}), "one was kept before")
}
