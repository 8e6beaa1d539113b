package repocheck

import (
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// maxFileBytes limits what a file costs every clone, which holds each of its versions.
const maxFileBytes = 500_000

// sizes finds files that are too big.
func sizes(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.files {
		info, err := fs.Stat(all, file)
		require.NoError(t, err)
		if info.Size() > maxFileBytes {
			problems = append(problems, problem(file, 0, "%d bytes; the limit is %d", info.Size(), maxFileBytes))
		}
	}
	return problems
}

// The patterns are put together from pieces so that this file does not hold
// what it looks for.
var unwanted = []*regexp.Regexp{
	regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`), // marks of work left for later
	regexp.MustCompile(`(^|[^\w.~/-])(` + // an absolute path on somebody's machine, and no part of a URL or a longer path
		"/" + `(home|work|root|tmp|Users|mnt)/[\w.-]|` + "[A-Z]:" + `\\+(Users|home)\b)`),
}

// words finds marks of work left for later and paths on somebody's machine in
// all text files: issues are the place for the one, and the other is true for
// nobody else.
func words(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.files {
		text := all.read(t, file)
		if strings.Contains(text, "\x00") {
			continue
		}
		for _, pattern := range unwanted {
			for _, at := range pattern.FindAllStringIndex(text, -1) {
				line := 1 + strings.Count(text[:at[1]], "\n")
				problems = append(problems, problem(file, line, "holds %s", strconv.Quote(strings.TrimSpace(text[at[0]:at[1]]))))
			}
		}
	}
	return problems
}

// caseFiles finds files of package casefile whose test is gone.
func caseFiles(t testing.TB, all tree) []string {
	var problems []string
	known := map[string]bool{} // folder and test
	for _, file := range all.files {
		dir, name, ok := strings.Cut(file, "/testdata/")
		if !ok || path.Ext(file) != ".txtar" {
			continue
		}
		test, _, _ := strings.Cut(strings.TrimSuffix(name, ".txtar"), "/")
		there, seen := known[dir+test]
		if !seen {
			there = slices.ContainsFunc(all.files, func(f string) bool {
				return path.Dir(f) == dir && isTest(f) && strings.Contains(all.read(t, f), "\nfunc "+test+"(")
			})
			known[dir+test] = there
		}
		if !there {
			problems = append(problems, problem(file, 0, "is of %s, which is not a test of %s", test, dir))
		}
	}
	return problems
}

// decisionName is the form of a decision note's file name.
var decisionName = regexp.MustCompile(`^(\d{4})-[a-z0-9]+(-[a-z0-9]+)*\.md$`)

// decisions finds files of docs/decisions that are not NNNN-title.md, or have the
// number of another one.
func decisions(_ testing.TB, all tree) []string {
	var problems []string
	last := 0
	for _, file := range all.files {
		if path.Dir(file) != "docs/decisions" {
			continue
		}
		m := decisionName.FindStringSubmatch(path.Base(file))
		if m == nil {
			problems = append(problems, problem(file, 0, "is not named NNNN-title.md"))
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if n == last {
			problems = append(problems, problem(file, 0, "has number %04d, as another note", n))
		}
		last = n
	}
	return problems
}

var (
	linkTarget = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	inlineCode = regexp.MustCompile("`[^`]*`")
	fencedCode = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
	heading    = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	noAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// links finds links of Markdown files to files and headings of the repository
// that do not exist.
func links(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.having(".md") {
		// Code is blanked, so that line numbers stay.
		text := fencedCode.ReplaceAllStringFunc(all.read(t, file), func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) })
		text = inlineCode.ReplaceAllString(text, "")
		for _, at := range linkTarget.FindAllStringSubmatchIndex(text, -1) {
			link := text[at[2]:at[3]]
			if strings.Contains(link, ":") {
				continue // a URL
			}
			name, anchor, _ := strings.Cut(link, "#")
			target := path.Join(path.Dir(file), name)
			if name == "" {
				target = file
			}
			line := 1 + strings.Count(text[:at[0]], "\n")
			if _, err := fs.Stat(all, target); err != nil {
				problems = append(problems, problem(file, line, "links to %s, which does not exist", link))
			} else if anchor != "" && !slices.Contains(anchors(all.read(t, target)), anchor) {
				problems = append(problems, problem(file, line, "links to %s, a heading that %s does not have", link, target))
			}
		}
	}
	return problems
}

// anchors returns the names of a page's headings in links, as GitHub makes them.
func anchors(text string) []string {
	var names []string
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return names
}

const exampleIndex = "docs/examples.md"

// unlisted finds directories of examples without a link in the index.
func unlisted(t testing.TB, all tree) []string {
	index := ""
	if slices.Contains(all.files, exampleIndex) {
		index = all.read(t, exampleIndex)
	}
	var problems []string
	for _, file := range all.files {
		dir := path.Dir(file)
		parts := strings.Split(dir, "/")
		program := path.Base(file) == "main.go"
		data := len(parts) == 2 && path.Ext(file) != ".go" && path.Ext(file) != ".mod" && path.Ext(file) != ".sum" && path.Ext(file) != ".md"
		if parts[0] != "examples" || !program && !data || slices.Contains(parts, "testdata") {
			continue
		}
		if !strings.Contains(index, "](../"+dir+"/") && !slices.Contains(problems, problem(dir, 0, "has no link in "+exampleIndex)) {
			problems = append(problems, problem(dir, 0, "has no link in "+exampleIndex))
		}
	}
	return problems
}
