package serve

import (
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTally holds what a record of the gateway counts as.
func TestTally(t *testing.T) {
	t.Parallel()
	some := map[string]int{"x": 1}
	for want, attrs := range map[string][]any{
		"1 model call, none needed a repair":                    {"status", "valid", "attempts", 1},
		"1 model call, 1 repaired":                              {"status", "valid", "attempts", 1, "repairs", some},
		"1 model call, 1 corrected (the model was asked again)": {"status", "valid", "attempts", 2, "issues", some, "repairs", some},
		"1 model call, 1 with an invalid tool call":             {"status", "invalid", "attempts", 4, "issues", some},
		"1 model call, 1 failed":                                {"status", "invalid", "attempts", 1, "issues", some, "error", "refused"},
		"1 model call, 1 that mode enforce would have changed":  {"status", "valid", "attempts", 1, "repairs", some, "would", "repaired"},
	} {
		s := &sums{}
		log := slog.New(tally{slog.NewTextHandler(io.Discard, nil), s})
		log.Info("model call", attrs...)
		log.Info("ready", attrs...)
		require.Equal(t, want, s.String())
	}
	s := &sums{}
	require.Equal(t, "0 model calls", s.String())
	log := slog.New(tally{slog.NewTextHandler(io.Discard, nil), s})
	log.Info("model call", "would", "passed")
	log.Info("model call", "status", "", "attempts", 2) // after a network error
	require.Equal(t, "2 model calls, none needed a repair", s.String())
}
