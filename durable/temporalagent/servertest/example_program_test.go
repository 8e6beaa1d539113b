package servertest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExampleProgram runs examples/durable on our server: it kills either worker,
// or none.
func TestExampleProgram(t *testing.T) {
	program := filepath.Join(t.TempDir(), "durable")
	out, err := exec.Command("go", "build", "-C", "../../../examples/durable", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := startServer(t, "")
	for _, kill := range []string{"0", "1", "2"} {
		t.Run("kill "+kill, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), program, "-kill", kill, "-id", "trip-"+kill)
			cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+s.address)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("%s", out)
			for _, once := range []string{
				"2026-12-03 is free", "found DY 1306", "held a seat", "booked and paid", "sent a mail", "You fly to London",
				`a person approves book_flight {"flight":"DY 1306"}`,
			} {
				require.Equal(t, 1, strings.Count(string(out), once), once)
			}
			require.Equal(t, kill != "0", strings.Contains(string(out), "*** worker "+kill+" is killed"))
		})
	}
}
