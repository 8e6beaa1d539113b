package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// start is one run of the program; the person types lines, then leaves.
func start(t *testing.T, file string, lines ...string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), strings.NewReader(strings.Join(lines, "\n")), &out, file))
	return out.String()
}

func TestDecisionsOverThreeRuns(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "state.json")

	first := start(t, file,
		"maybe", // asked again
		"a",     // the rent
		`e {"to":"power company","euros":"eighty"}`) // refused, and asked again
	require.Equal(t, 2, strings.Count(first, `pay {"to":"landlord","euros":900}`), first)
	require.Equal(t, 1, strings.Count(first, "***"), first)
	require.Contains(t, first, "*** 900 euros go to landlord\npay {\"to\":\"power company\",\"euros\":800}\n")
	_, again, refused := strings.Cut(first, "No: Tool 'pay' argument 'euros': wanted integer from 1 to 1000; sent string \"eighty\"\n")
	require.True(t, refused, first)
	require.Contains(t, again, `pay {"to":"power company","euros":800}`, "the edit was taken back")
	require.Contains(t, again, "2 to decide")

	second := start(t, file, `e {"to":"power company","euros":80}`, "r it is paid already")
	require.NotContains(t, second, "landlord\n", "what ran does not run again")
	require.Equal(t, 1, strings.Count(second, "***"), second)
	require.Contains(t, second, "*** 80 euros go to power company\npay {\"to\":\"phone company\",\"euros\":30}\n")
	const done = "Done: paid 900 to landlord; paid 80 to power company; " +
		"Tool call 'pay' was rejected by a human reviewer. Reason: it is paid already\n"
	require.True(t, strings.HasSuffix(second, done), second)

	require.Equal(t, done, start(t, file), "a run that is over stays over")
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	require.Equal(t, `pay {"to":"landlord","euros":900}
[a]pprove, [e]dit ARGUMENTS or [r]eject REASON? 
3 to decide. With -state FILE the next start goes on from here.
`, start(t, ""))
}

func TestAnEditPastTheLimitIsRefused(t *testing.T) {
	t.Parallel()
	out := start(t, "", `e {"to":"landlord","euros":9000}`, "r")
	require.Contains(t, out, "No: Tool 'pay' argument 'euros': ")
	require.NotContains(t, out, "***")
}

// A rule of the chain also runs on an edit.
func TestAnEditToAStrangerIsRefused(t *testing.T) {
	t.Parallel()
	out := start(t, "", `e {"to":"Mallory","euros":9}`, "r")
	require.Contains(t, out, `No: Tool 'pay' argument 'to': "Mallory" is not on the list of payees`)
	require.NotContains(t, out, "***")
}
