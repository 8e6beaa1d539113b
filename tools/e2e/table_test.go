package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A run writes the rows of its clients, and keeps all other rows.
func TestTable(t *testing.T) {
	t.Parallel()
	c, other := clients()[0], clients()[1]
	results := map[string]result{}
	for _, s := range all() {
		for _, f := range fronts {
			results[key(c, s, f)] = result{ended: endedDone, attempts: 2, calls: 3}
		}
	}
	results[key(c, scenarios[0], fronts[0])] = result{ended: endedError, attempts: 9, calls: 9, refused: []string{"a", "b"}}
	first := table(scenarios, "", map[string]string{c.name: row(c, "1.0", scenarios, results), other.name: failure(errors.New("npm install: exit status 1\nnpm error 404 Not | Found\nnpm error"))})
	require.Contains(t, first, "| "+c.title+" | "+c.format.Name+" | 1.0 | error 9/9, 2 refused → ok 2/3 | ok 2/3 → ok 2/3 |")
	require.Contains(t, first, "| "+other.title+" | "+other.format.Name+" | – | could not be installed: `npm error` |")
	require.Contains(t, first, "| – | not run |")
	again := table(scenarios, first, map[string]string{other.name: row(c, "2.0", scenarios, results)})
	require.Contains(t, again, "| 1.0 | error 9/9, 2 refused → ok 2/3 |", "kept")
	require.Equal(t, 1, strings.Count(again, "| 2.0 | error"), again)
	delete(results, key(c, scenarios[1], fronts[0]))
	require.Empty(t, row(c, "1.0", scenarios, results), "a result is missing")
}

// Each table keeps its rows, whichever of them a run has written.
func TestPage(t *testing.T) {
	t.Parallel()
	name := clients()[0].name
	intro := "\n" + tables[1].intro + "\n"
	rows := func(cells ...string) map[string][]string {
		var r []string
		for i, cell := range cells {
			if cell != "" {
				cell = " " + cell + strings.Repeat(" | x", len(tables[i].scenarios)) + " |"
			}
			r = append(r, cell)
		}
		return map[string][]string{name: r}
	}
	first := page("", rows("1.0", ""))
	require.Equal(t, 1, strings.Count(first, "| 1.0 |"))
	require.NotContains(t, first, intro, "no client has run its scenarios")
	second := page(first, rows("", "2.0"))
	require.Equal(t, second, page(second, nil))
	above, below, ok := strings.Cut(second, intro)
	require.True(t, ok)
	require.Equal(t, first, above)
	require.Equal(t, 1, strings.Count(below, "| 2.0 |"))
	third := page(second, rows("3.0", ""))
	require.Equal(t, 1, strings.Count(third, "| 3.0 |"))
	require.Contains(t, third, intro+below)
}

// The table shows what ended a program, and no text that differs from run to run.
func TestQuoted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ output, want string }{
		"an exception": {"Traceback\n  File x\nKeyError: 'path'\nDuring task with name 'tools' and id 'ee8c'", "`KeyError: 'path'`"},
		"the last one": {"TypeError: one\nopenai.APIStatusError: two\n    at x", "`openai.APIStatusError: two`"},
		"none":         {"one\ntwo | three", "`two / three`"},
	} {
		require.Equal(t, c.want, quoted(strings.Split(c.output, "\n")), name)
	}
}

func TestTableIn(t *testing.T) {
	t.Parallel()
	before, old, after, err := tableIn("before\n" + tableBegin + "\nold\n" + tableEnd + "\nafter\n")
	require.NoError(t, err)
	require.Equal(t, "before\n"+tableBegin+"\n", before)
	require.Equal(t, "\nold\n", old)
	require.Equal(t, "\n"+tableEnd+"\nafter\n", after)
	_, _, _, err = tableIn("before")
	require.Error(t, err)
}

// A table without a new row is the one on the page, so that a run of some clients changes
// their rows only.
func TestTableOfThePage(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "measured", "clients.md"))
	require.NoError(t, err)
	before, old, after, err := tableIn(string(b))
	require.NoError(t, err)
	require.Equal(t, string(b), before+page(old, nil)+after)
}
