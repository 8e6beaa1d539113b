package check

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
)

// joined returns the steps of the lines of a gateway's recording.
func joined(t *testing.T, lines string) []report.Step {
	t.Helper()
	var out []report.Step
	for i, text := range strings.Split(strings.TrimSpace(lines), "\n") {
		l := recorded.Line{File: "f", N: i + 1, Text: []byte(text)}
		turns, err := l.Turns(nil)
		if errors.Is(err, recorded.SkippedNoCalls) {
			continue // an attempt that failed
		}
		require.NoError(t, err)
		s := stepOf(l, &turns[0], nil)
		if len(out) == 0 || !out[len(out)-1].Join(&s) {
			out = append(out, s)
		}
	}
	return out
}

// The client got the last attempt, so that the failure of the first is none of the step.
func TestStepOfServed(t *testing.T) {
	t.Parallel()
	steps := joined(t, served())
	require.Len(t, steps, 1)
	s := steps[0]
	require.Equal(t, 1, s.Final)
	require.Empty(t, s.Error)
	require.Len(t, s.Attempts, 2)
	require.Equal(t, "x is missing", s.Attempts[0].Replies[0].Text)
	require.Equal(t, []int{2, 3}, []int{s.Attempts[0].Line, s.Attempts[1].Line})
	require.Equal(t, "enforce c anthropic /v1/messages", strings.Join([]string{s.Mode, s.Client, s.Format, s.Path}, " "))
	require.Equal(t, int64(22), s.Usage().InputTokens)
}

// The client got no answer: the step has the error of the last attempt.
func TestStepOfFailed(t *testing.T) {
	t.Parallel()
	steps := joined(t, strings.ReplaceAll(`{"id":"1-1/1","attempt":1,"attempts":2,"final":false,"error":"503","tools":[]}
{"id":"1-1/2","attempt":2,"attempts":2,"final":false,"error":"timeout","tools":[]}
{"id":"1-2/1","attempt":1,"attempts":1,"final":true,"tools":[]}`, `"tools"`, `"tool_calls":[{"name":"x"}],"tools"`))
	require.Len(t, steps, 2)
	require.Equal(t, -1, steps[0].Final)
	require.Equal(t, "timeout", steps[0].Error)
	require.Equal(t, 0, steps[1].Final)
}
