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

// TestLine holds the line about a program: a request that was asked again counts as such, whatever came of it.
func TestLine(t *testing.T) {
	t.Parallel()
	some := map[string]int{"x": 1}
	s := &sums{}
	log := slog.New(tally{slog.NewTextHandler(io.Discard, nil), s})
	require.Contains(t, s.line(0, "f"), "no request reached the gateway")
	for _, attrs := range [][]any{
		{"calls", 2, "attempts", 1, "repairs", some},
		{"calls", 1, "attempts", 2, "issues", some},
		{"calls", 1, "attempts", 3, "issues", some, "status", "invalid"},
		{"calls", 0, "attempts", 2, "error", "refused"},
		{"calls", 1, "attempts", 1, "would", "reasked", "issues", some},
	} {
		log.Info("model call", attrs...)
	}
	require.Equal(t, "5 model requests, 5 tool calls; requests: 1 repaired, 2 re-asked, 1 still invalid, 1 failed, 1 that mode enforce would have changed; log: f", s.line(9, "f"))
}
