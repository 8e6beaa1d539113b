package sarif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/sarif"
)

func TestWrite(t *testing.T) {
	t.Parallel()
	run := sarif.NewRun("p")
	for _, id := range []string{"a", "b", "a"} {
		run.Add(sarif.Rule{ID: id}, sarif.Result{Level: "error", Message: sarif.Escaped(`[<x>](y) \`)})
	}
	var b strings.Builder
	require.NoError(t, run.Write(&b, ""))
	require.Equal(t, 1, strings.Count(b.String(), "\n"))
	require.Contains(t, b.String(), `"rules":[{"id":"a"},{"id":"b"}]`)
	for _, want := range []string{`{"ruleId":"a","ruleIndex":0,`, `{"ruleId":"b","ruleIndex":1,`, `\\[<x>\\](y) \\\\`} {
		require.Contains(t, b.String(), want)
	}
}

func TestInFile(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a b/c.jsonl": "a%20b/c.jsonl", "/a/%": "file:///a/%25", "a:b": "./a:b", "\xff": "%EF%BF%BD",
	} {
		require.Equal(t, want, sarif.InFile(path, 1).Artifact.URI)
	}
	require.Equal(t, &sarif.Region{StartLine: 3}, sarif.InFile("x", 3).Region)
	require.Nil(t, sarif.InFile("x", 0).Region)
}
