package repocheck

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// navigation finds pages below docs that are in no section of the site, or in several by
// their names.
func navigation(t testing.TB, all tree) []string {
	const file = "docs/site/nav.json"
	var sections []struct {
		Text  string
		Pages []string
	}
	require.NoError(t, json.Unmarshal([]byte(all.read(t, file)), &sections))
	var problems []string
	for _, page := range all.files {
		if !strings.HasPrefix(page, "docs/") || path.Ext(page) != ".md" {
			continue
		}
		named, matched := 0, false
		for _, s := range sections {
			for _, pattern := range s.Pages {
				ok, err := path.Match(pattern, page)
				require.NoError(t, err, pattern)
				matched = matched || ok
				if pattern == page {
					named++
				}
			}
		}
		if !matched {
			problems = append(problems, problem(page, 0, "in no section of %s", file))
		}
		if named > 1 {
			problems = append(problems, problem(page, 0, "%d times in %s", named, file))
		}
	}
	return problems
}

func TestNavigation(t *testing.T) {
	t.Parallel()
	require.Empty(t, navigation(t, open(t, "../..")))
	const nav = `[{"text":"Start","pages":["README.md","docs/a.md"]},{"text":"More","pages":["docs/more/*.md","docs/gone.md"]}]`
	check(t, navigation, []bad{
		{"in a section", files{"docs/site/nav.json": nav, "docs/a.md": "", "docs/more/b.md": "", "docs/more/b.toml": "", "other.md": ""}, nil},
		{"in none", files{"docs/site/nav.json": nav, "docs/b.md": "", "docs/more/deep/c.md": ""}, []string{"docs/b.md: in no section", "docs/more/deep/c.md: in no section"}},
		{"twice", files{"docs/site/nav.json": `[{"pages":["docs/a.md"]},{"pages":["docs/a.md"]}]`, "docs/a.md": ""}, []string{"docs/a.md: 2 times"}},
	})
}
