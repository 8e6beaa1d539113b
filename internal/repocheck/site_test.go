package repocheck

import (
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	maxEntries  = 25   // of the sidebar of the site
	maxSections = 5    // of the sidebar
	maxWords    = 2000 // of a page; references, measurements and history may be longer
	maxReadme   = 600
)

var longPages = regexp.MustCompile(`^(CHANGELOG|docs/(settings|commands|parity|reference|measured/.*|decisions/.*))\.md$`)

// tooLong finds pages with more words than a reader has time for.
func tooLong(t testing.TB, all tree) []string {
	var problems []string
	for _, page := range all.having(".md") {
		most := maxWords
		if page == "README.md" {
			most = maxReadme
		}
		if n := len(strings.Fields(all.read(t, page))); n > most && !longPages.MatchString(page) {
			problems = append(problems, problem(page, 0, "has %d words; the limit is %d", n, most))
		}
	}
	return problems
}

// navigation finds pages below docs that are in no section of the site, or in several by
// their names, and a sidebar that is too long to read.
func navigation(t testing.TB, all tree) []string {
	const file = "docs/site/nav.json"
	var sections []struct {
		Text        string
		Pages, Also []string
	}
	require.NoError(t, json.Unmarshal([]byte(all.read(t, file)), &sections))
	var problems []string
	entries := 0
	for _, s := range sections {
		entries += len(s.Pages)
	}
	if entries > maxEntries || len(sections) > maxSections {
		problems = append(problems, problem(file, 0, "%d entries in %d sections; the limits are %d and %d", entries, len(sections), maxEntries, maxSections))
	}
	for _, page := range all.files {
		if !strings.HasPrefix(page, "docs/") || path.Ext(page) != ".md" {
			continue
		}
		named, matched := 0, false
		for _, s := range sections {
			for _, pattern := range slices.Concat(s.Pages, s.Also) {
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
	const nav = `[{"text":"Start","pages":["README.md","docs/a.md"]},{"text":"More","pages":["docs/gone.md"],"also":["docs/more/*.md"]}]`
	long := `[{"pages":["` + strings.Repeat(`x.md","`, maxEntries) + `x.md"]}]`
	check(t, navigation, []bad{
		{"in a section", files{"docs/site/nav.json": nav, "docs/a.md": "", "docs/more/b.md": "", "docs/more/b.toml": "", "other.md": ""}, nil},
		{"in none", files{"docs/site/nav.json": nav, "docs/b.md": "", "docs/more/deep/c.md": ""}, []string{"docs/b.md: in no section", "docs/more/deep/c.md: in no section"}},
		{"twice", files{"docs/site/nav.json": `[{"pages":["docs/a.md"]},{"pages":["docs/a.md"]}]`, "docs/a.md": ""}, []string{"docs/a.md: 2 times"}},
		{"too many entries", files{"docs/site/nav.json": long}, []string{"docs/site/nav.json: 26 entries in 1 sections"}},
		{"too many sections", files{"docs/site/nav.json": `[{},{},{},{},{},{}]`}, []string{"docs/site/nav.json: 0 entries in 6 sections"}},
	})
}

// unreachable finds pages without an entry in the sidebar to which no link leads from
// those that have one. A link to a directory counts for its pages.
func unreachable(t testing.TB, all tree) []string {
	var sections []struct{ Pages, Also []string }
	require.NoError(t, json.Unmarshal([]byte(all.read(t, "docs/site/nav.json")), &sections))
	var queue, problems []string
	for _, s := range sections {
		queue = append(queue, s.Pages...)
	}
	seen := map[string]bool{}
	for len(queue) > 0 {
		page := queue[0]
		queue = queue[1:]
		if seen[page] || !slices.Contains(all.files, page) {
			continue
		}
		seen[page] = true
		for _, m := range pageLink.FindAllStringSubmatch(all.read(t, page), -1) {
			to := path.Join(path.Dir(page), m[1])
			queue = append(queue, to)
			for _, file := range all.having(".md") {
				if path.Dir(file) == to {
					queue = append(queue, file)
				}
			}
		}
	}
	for _, page := range all.having(".md") {
		if strings.HasPrefix(page, "docs/") && !seen[page] {
			problems = append(problems, problem(page, 0, "no page of the sidebar leads to it"))
		}
	}
	return problems
}

var pageLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

func TestUnreachable(t *testing.T) {
	t.Parallel()
	require.Empty(t, unreachable(t, open(t, "../..")))
	const nav = `[{"pages":["docs/a.md"],"also":["docs/*.md"]}]`
	check(t, unreachable, []bad{
		{"by two links", files{"docs/site/nav.json": nav, "docs/a.md": "[b](x/b.md#there)", "docs/x/b.md": "[c](../c.md)", "docs/c.md": ""}, nil},
		{"in a directory", files{"docs/site/nav.json": nav, "docs/a.md": "[b](x)", "docs/x/b.md": ""}, nil},
		{"by none", files{"docs/site/nav.json": nav, "docs/a.md": "[b](https://example.com/b.md)", "docs/b.md": "[a](a.md)"}, []string{"docs/b.md: no page"}},
	})
}

func TestTooLong(t *testing.T) {
	t.Parallel()
	require.Empty(t, tooLong(t, open(t, "../..")))
	check(t, tooLong, []bad{
		{"short", files{"README.md": strings.Repeat("a ", maxReadme), "docs/a.md": strings.Repeat("a ", maxWords)}, nil},
		{"long", files{"docs/a.md": strings.Repeat("a ", maxWords+1)}, []string{"docs/a.md: has 2001 words"}},
		{"a reference", files{"docs/settings.md": strings.Repeat("a ", maxWords+1), "docs/measured/a.md": strings.Repeat("a ", maxWords+1)}, nil},
		{"the first page", files{"README.md": strings.Repeat("a ", maxReadme+1)}, []string{"README.md: has 601 words; the limit is 600"}},
	})
}
