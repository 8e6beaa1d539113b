package middleware_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestStandardLibraryOnly: an import of the package brings no dependency
// along.
func TestStandardLibraryOnly(t *testing.T) {
	t.Parallel()
	const module = "github.com/toolmend/toolmend/"
	allowed := map[string]bool{module + "middleware": true, module + "middleware/middlewaretest": true}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./...").Output()
	require.NoError(t, err)
	found := strings.Fields(string(out))
	require.NotEmpty(t, found)
	for _, p := range found {
		require.True(t, allowed[p], "%s is not of the standard library", p)
	}
}
