package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of toolmend mcp has a row for each target.
func TestMeasureMCP(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the command")
	}
	dir := t.TempDir()
	for _, args := range [][]string{{"build", "-o", dir, "."}, {"build", "-C", "../../cmd/toolmend", "-o", dir, "."}} {
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		require.NoError(t, err, string(out))
	}
	// This test program is not a server, so the measuring program runs itself.
	var out strings.Builder
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "load"), "-mcp", "-gateway", filepath.Join(dir, "toolmend"), "-blocks", "1", "-rounds", "5")
	cmd.Stdout, cmd.Stderr = &out, &out
	require.NoError(t, cmd.Run(), out.String())
	require.Contains(t, out.String(), "| toolmend mcp, repaired calls |")
}
