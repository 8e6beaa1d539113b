package repocheck

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parityRows is how many rows each section of docs/parity.md has: what a system
// does, and its known problems. Only a problem must be covered by a test; the rest
// may say "not taken", with a reason.
var parityRows = map[string]int{
	"langchain-tool-args-validation-middleware: what it does":       43,
	"langchain-tool-args-validation-middleware: its known problems": 76,
	"Elixir LangChain: what it does":                                48,
	"Elixir LangChain: its known problems":                          22,
	"langchain-mini: what it does":                                  9,
	"langchain-mini: its known problems":                            16,
	"LangChain for TypeScript: its known problems":                  20,
	"LangChain for TypeScript: what its users ask for":              10,
}

// TestParity holds docs/parity.md: no row is missing, each row names a test that
// exists or says why it was not taken, and each problem has a test.
func TestParity(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/parity.md")
	require.NoError(t, err)

	name := regexp.MustCompile("`([a-z/]+)\\.((?:Test|Example|Fuzz)\\w+)(?:/([^`]+))?`")
	row := regexp.MustCompile(`(?m)^\| .* \| (.*) \|$`)
	for heading, n := range parityRows {
		_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
		require.True(t, ok, heading)
		section, _, _ = strings.Cut(section, "\n## ")
		rows := row.FindAllStringSubmatch(section, -1)[1:] // without the header
		require.Len(t, rows, n, heading)
		for _, m := range rows {
			leftOut := strings.HasPrefix(m[1], "not taken: ") && !strings.HasSuffix(heading, "problems")
			require.True(t, leftOut || name.MatchString(m[1]), "%s names no test", m[0])
		}
	}
	for _, m := range name.FindAllStringSubmatch(string(page), -1) {
		where := testFile(t, m[1], m[2])
		if !strings.Contains(where, m[3]) {
			t.Errorf("docs/parity.md: %s has no %q", m[1]+"."+m[2], m[3])
		}
	}
}

// testFile returns the test file of a package that defines a test, and the data
// that its cases may be read from; it fails the test if there is none.
func testFile(t *testing.T, pkg, test string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	require.NoError(t, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(string(src), "\nfunc "+test+"(") {
			data, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "testdata", "peer_cases.json"))
			return string(src) + string(data)
		}
	}
	t.Errorf("docs/parity.md: %s has no %s", pkg, test)
	return ""
}
