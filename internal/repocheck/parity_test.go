package repocheck

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parityRows is how many rows each group of docs/parity.md has. Features and
// requests (F, R) may be left out with a reason, weaknesses and defects may not.
var parityRows = map[string]int{
	"F3.": 43, "W3.": 76, // the peer
	"F4.": 48, "W4.": 22, // Elixir LangChain
	"F2.": 9, "W2.": 16, // langchain-mini
	"D": 20, "R": 10, // LangChain TS
}

// TestParity holds docs/parity.md: it has each row once, each row names a test
// that exists or says why it was not taken, and each weakness has a test.
func TestParity(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/parity.md")
	require.NoError(t, err)

	rows := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^\| ([FW]\d+\.\d+|[DR]\d+) \| .* \| (.*) \|$`).FindAllStringSubmatch(string(page), -1) {
		require.NotContains(t, rows, m[1], "twice")
		rows[m[1]] = m[2]
	}
	name := regexp.MustCompile("`([a-z/]+)\\.((?:Test|Example|Fuzz)\\w+)(?:/([^`]+))?`")
	total := 0
	for prefix, n := range parityRows {
		total += n
		mayBeLeftOut := strings.ContainsAny(prefix, "FR")
		for i := range n {
			id := fmt.Sprintf("%s%d", prefix, i+1)
			leftOut := strings.HasPrefix(rows[id], "not taken: ")
			require.True(t, leftOut && mayBeLeftOut || !leftOut && name.MatchString(rows[id]), "%s names no test", id)
		}
	}
	require.Len(t, rows, total)
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
