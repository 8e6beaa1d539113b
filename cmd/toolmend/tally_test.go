package main

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
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

// answeringInTurn is an upstream whose answers to model calls have a tool call
// with these arguments, one after the other.
func answeringInTurn(t *testing.T, arguments ...string) string {
	t.Helper()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":`+
			arguments[int(n.Add(1)-1)%len(arguments)]+`}}]}}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestServeSaysWhatItDid holds that the log ends with a summary.
func TestServeSaysWhatItDid(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]string{
		"enforce": "1 model call, 1 corrected (the model was asked again)",
		"repair":  "1 model call, 1 with an invalid tool call",
		"observe": "1 model call, 1 that mode enforce would have changed",
	} {
		s := startServe(t, "--upstream", answeringInTurn(t, `"{\"x\":\"one\"}"`, `"{\"x\":1}"`), "--mode", mode)
		post(t, "http://"+s.address+"/v1/chat/completions", strings.Replace(modelCall, `"type":"object"`, `"type":"object","properties":{"x":{"type":"integer"}}`, 1))
		s.stop()
		require.Equal(t, exitOK, <-s.code)
		require.Contains(t, s.stderr.String(), `"msg":"served","summary":"`+want+`"`)
	}
}
