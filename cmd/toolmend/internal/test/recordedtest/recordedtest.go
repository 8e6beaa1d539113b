// Package recordedtest gives tests the recorded calls that are beside the repository.
package recordedtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
)

// sources are the nine sources of recorded calls.
var sources = []string{
	"bfcl-2024-08", "bfcl-v4-gptoss", "bfcl-v4-websearch", "tau-bench", "http-recordings",
	"llama-stack-recordings", "livemcpbench", "local-small-models", "toolbench-examples",
}

// Path returns the path of a file or directory of the recordings. It skips the test if
// that is missing: the recordings are beside the repository, and are not part of it.
func Path(t *testing.T, elem ...string) string {
	t.Helper()
	root, err := os.Getwd()
	require.NoError(t, err)
	for !exists(filepath.Join(root, "CONTRIBUTING.md")) {
		require.NotEqual(t, filepath.Dir(root), root, "the test does not run in the repository")
		root = filepath.Dir(root)
	}
	path := filepath.Join(append([]string{filepath.Dir(root), "shared", "data"}, elem...)...)
	if !exists(path) {
		t.Skip("not beside the repository: ", path)
	}
	return path
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Files returns the paths of the logs of recorded calls. It skips the test as Path does.
func Files(t *testing.T) []string {
	t.Helper()
	dir, files := Path(t, "recorded"), make([]string, len(sources))
	for i, name := range sources {
		files[i] = filepath.Join(dir, name+".jsonl.gz")
	}
	return files
}

// Each calls f with each recorded line and its turns. It skips the test as Path does.
func Each(t *testing.T, f func(recorded.Line, []recorded.Turn)) {
	t.Helper()
	files := Files(t)
	sets, err := recorded.OpenToolsets(recorded.ToolsetsBeside(files[0]))
	require.NoError(t, err)
	for _, path := range files {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		for line, err := range recorded.NewReader(filepath.Base(path), file).All() {
			require.NoError(t, err)
			turns, err := line.Turns(sets)
			require.NoError(t, err)
			f(line, turns)
		}
	}
}
