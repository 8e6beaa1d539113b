// Package tutorials_test does what the tutorials about these programs say, in an empty
// directory.
package tutorials_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/docpage"
)

func TestPages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("the pages are written for bash")
	}
	for page, program := range map[string]struct{ dir, module string }{
		"own-loop.md": {"ownloop", "bookings"},
		"agent.md":    {"agent", "assistant"},
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join("../../docs/tutorials", page))
			require.NoError(t, err)
			dir := t.TempDir()
			begin(t, dir, program.dir, program.module)
			docpage.Reader{Dir: dir, Env: []string{"GOFLAGS=-mod=mod", "GOPROXY=off", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "MODEL_URL="}}.Run(t, page, string(text))
		})
	}
}

// begin does what the first block of a page does, with the versions of this module
// instead of the newest ones: a test fetches nothing.
func begin(t *testing.T, dir, program, module string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	sources, err := filepath.Glob(filepath.Join(program, "*.go"))
	require.NoError(t, err)
	require.NotEmpty(t, sources)
	for _, source := range append(sources, "go.mod", "go.sum") {
		text, err := os.ReadFile(source)
		require.NoError(t, err)
		changed := string(text)
		if source == "go.mod" {
			changed = strings.Replace(changed, "module github.com/toolmend/toolmend/examples/tutorials", "module "+module, 1)
			changed = strings.ReplaceAll(changed, "=> ../..", "=> "+root)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(source)), []byte(changed), 0o600))
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", module)
	build.Dir, build.Env = dir, append(os.Environ(), "GOPROXY=off")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
}
