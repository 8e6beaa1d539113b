package check

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/recordedtest"
	"github.com/toolmend/toolmend/internal/report"
)

// cfworker is the validator that OpenRouter uses.
const cfworker = "@cfworker/json-schema@4.1.6"

// TestOpenRoutersValidator compares the buckets of all recorded calls with those that
// OpenRouter's own validator gives. It fetches the validator, and is run by `make
// reports`.
func TestOpenRoutersValidator(t *testing.T) {
	work := os.Getenv("REPORTS")
	if work == "" {
		t.Skip("it fetches a validator from npm: run make reports")
	}
	var in bytes.Buffer
	var ours []bucket
	var unusable []bool // the schema is not valid Draft 7
	m, e := newMeasurer(nil), json.NewEncoder(&in)
	recordedtest.Each(t, func(_ recorded.Line, turns []recorded.Turn) {
		for _, c := range turns[0].Calls {
			tool, known := report.ToolNamed(turns[0].Tools, c.Name)
			var schema *string
			if text := string(tool.Parameters); text != "" {
				schema = &text
			}
			require.NoError(t, e.Encode(map[string]any{"schema": schema, "known": known, "arguments": c.Arguments}))
			b, checked := m.openRouter(turns[0].Tools, c)
			ours, unusable = append(ours, b), append(unusable, !checked && schema != nil)
		}
	})

	home := filepath.Join(work, "openrouter")
	require.NoError(t, os.MkdirAll(home, 0o755))
	if out, err := osexec.CommandContext(t.Context(), "npm", "install", "--silent", "--prefix", home, cfworker).CombinedOutput(); err != nil {
		t.Skipf("cannot fetch %s: %v: %s", cfworker, err, out)
	}
	script, err := os.ReadFile(filepath.Join("testdata", "openrouter.mjs"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(home, "openrouter.mjs"), script, 0o600))
	node := osexec.CommandContext(t.Context(), "node", filepath.Join(home, "openrouter.mjs"))
	node.Stdin, node.Stderr = &in, os.Stderr
	out, err := node.Output()
	require.NoError(t, err)
	lines, i, other := bufio.NewScanner(bytes.NewReader(out)), 0, 0
	for ; lines.Scan(); i++ {
		if got := cmp.Or(string(ours[i]), "valid"); got != lines.Text() {
			require.True(t, unusable[i], "call %d: we say %s, OpenRouter's validator %s", i, got, lines.Text())
			other++
		}
	}
	require.Len(t, ours, i, strings.TrimSpace(string(out[:min(len(out), 200)])))
	require.LessOrEqual(t, other, 1, "calls of tools whose schema is not valid Draft 7")
	t.Logf("%d calls, of which %d differ: their schema is not valid Draft 7", i, other)
}
