package repocheck

import (
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width at which Markdown wraps.
const maxColumns = 120

var (
	firstHeading = regexp.MustCompile(`^# `)
	spacedSign   = regexp.MustCompile(`[0-9] %`)
)

// prose finds lines of Markdown that are too long, pages without exactly one
// first-level heading (the templates of .github have none), and percentages with a space before their sign. Lines of
// code blocks and tables, and a link or a word that cannot break, may be longer.
func prose(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.having(".md") {
		headings, fence := 0, ""
		for i, line := range strings.Split(all.read(t, file), "\n") {
			if spacedSign.MatchString(line) {
				problems = append(problems, problem(file, i+1, "has a space between a number and %%"))
			}
			trimmed := strings.TrimLeft(line, " \t>")
			if mark, _ := cutFence(trimmed); mark != "" && (fence == "" || fence == mark) {
				if fence == "" {
					fence = mark
				} else {
					fence = ""
				}
				continue
			}
			if fence != "" || strings.HasPrefix(line, "    ") && !inList(line) || strings.HasPrefix(trimmed, "|") {
				continue
			}
			if firstHeading.MatchString(line) {
				headings++
			}
			if utf8.RuneCountInString(line) > maxColumns && breaks(trimmed) {
				problems = append(problems, problem(file, i+1, "%d columns; the limit is %d", utf8.RuneCountInString(line), maxColumns))
			}
		}
		if headings != 1 && path.Dir(file) != ".github" {
			problems = append(problems, problem(file, 0, "has %d first-level headings, not 1", headings))
		}
	}
	return problems
}

// cutFence returns the mark of a line that begins or ends a code block, and the
// rest of the line.
func cutFence(line string) (mark, rest string) {
	for _, mark := range []string{"```", "~~~"} {
		if rest, ok := strings.CutPrefix(line, mark); ok {
			return mark, rest
		}
	}
	return "", line
}

// inList reports whether an indented line is an item of a list in a list, which
// is prose and no code.
func inList(line string) bool {
	line = strings.TrimLeft(line, " ")
	return strings.HasPrefix(line, "- ") || strings.HasPrefix(line, "* ")
}

// breaks reports whether a line could be wrapped: no word, link target or code
// span of it is as long as a line, and it is neither a heading nor a comment.
func breaks(line string) bool {
	if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "<!--") {
		return false
	}
	line = inlineCode.ReplaceAllStringFunc(line, func(code string) string { return strings.ReplaceAll(code, " ", "_") })
	for _, word := range strings.Fields(line) {
		if utf8.RuneCountInString(word) > maxColumns-4 { // and the marks of a list
			return false
		}
	}
	return true
}

func TestProse(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 30)
	check(t, prose, []bad{
		{"short", files{"a.md": "# A\n\nText, 3% of it.\n"}, nil},
		{"long", files{"a.md": "# A\n\n" + long + "\n"}, []string{"a.md:3: 150 columns"}},
		{"umlauts are one column each", files{"a.md": "# A\n\n" + strings.Repeat("ä ", 60) + "\n"}, nil},
		{"a long item of a list", files{"a.md": "# A\n\n- a\n    - " + long + "\n"}, []string{"a.md:4"}},
		{"code and tables", files{"a.md": "# A\n\n```sh\n# " + long + "\n```\n\n    " + long + "\n\n| " + long + "|\n"}, nil},
		{"a word that cannot break", files{"a.md": "# A\n\n- https://example.com/" + strings.Repeat("a", 120) + "\n"}, nil},
		{"a code span that cannot break", files{"a.md": "# A\n\n`" + long + "`.\n"}, nil},
		{"two headings", files{"a.md": "# A\n\n# B\n"}, []string{"a.md: has 2 first-level headings"}},
		{"no heading", files{"a.md": "text\n"}, []string{"a.md: has 0 first-level headings"}},
		{"a percentage", files{"a.md": "# A\n\n3 " + "% of\n"}, []string{"a.md:3: has a space"}},
		{"a percentage in code", files{"a.md": "# A\n\n```text\n3 " + "% of\n```\n"}, []string{"a.md:4: has a space"}},
	})
}

func TestProseOfRepository(t *testing.T) {
	t.Parallel()
	for _, problem := range prose(t, open(t, "../..")) {
		t.Error(problem)
	}
}
