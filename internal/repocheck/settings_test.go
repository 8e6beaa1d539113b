package repocheck

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// settingsPage lists the keys of settingsFile.
const (
	settingsPage = "docs/settings.md"
	settingsFile = "docs/toolmend.toml"
)

// TestSettings holds that the page has each key of the file, with its comments.
func TestSettings(t *testing.T) {
	t.Parallel()
	all := open(t, "../..")
	page := all.read(t, settingsPage)
	const begin, end = "<!-- The lists are written by the test TestSettings. -->\n", "<!-- end -->\n"
	before, rest, ok := strings.Cut(page, begin)
	require.True(t, ok)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := before + begin + settingsLists(all.read(t, settingsFile)) + end + after
	if *update {
		require.NoError(t, os.WriteFile("../../"+settingsPage, []byte(want), 0o644))
	}
	require.Equal(t, want, all.read(t, settingsPage), "go test ./internal/repocheck -run TestSettings -update writes it")
}

var (
	tableHead  = regexp.MustCompile(`^#?(\[+[a-z.]+\]+)$`)
	settingRow = regexp.MustCompile(`^#?([a-z_]+) += (.+?)(?: +# (.+))?$`)
	pageName   = regexp.MustCompile(`docs/([a-z/-]+\.md)`)
)

// settingsLists returns a list for each table of a file in TOML: a table of Markdown does
// not fit on a phone. What a comment says of
// a key goes on in the comment behind its value; a comment that ends with an empty line
// is about the table.
func settingsLists(toml string) string {
	var out strings.Builder
	var said []string
	rows := 0
	comment := func() string {
		text := pageName.ReplaceAllString(strings.Join(said, " "), "[$1]($1)")
		said = nil
		return text
	}
	head := func(name string) {
		out.WriteString("\n## " + name + "\n")
		if text := comment(); text != "" {
			out.WriteString("\n" + wrapped(text) + "\n")
		}
		rows = 0
	}
	_, toml, _ = strings.Cut(toml, "\n\n") // what the file itself is
	head("At the top")
	for line := range strings.Lines(toml) {
		line = strings.TrimSpace(line)
		switch table, row := tableHead.FindStringSubmatch(line), settingRow.FindStringSubmatch(line); {
		case table != nil && strings.Contains(out.String(), "\n## `"+table[1]+"`\n"): // a second example
			return out.String() + "\n"
		case table != nil:
			head("`" + table[1] + "`")
		case row != nil:
			if rows == 0 {
				out.WriteString("\n")
			}
			rows++
			if row[3] != "" {
				said = append(said, row[3])
			}
			item := wrapped("- **`" + row[1] + "`** = `" + row[2] + "`: " + comment())
			out.WriteString(strings.ReplaceAll(item, "\n", "\n  ") + "\n")
		case strings.HasPrefix(line, "# "):
			said = append(said, line[2:])
		case len(said) > 0:
			out.WriteString("\n" + wrapped(comment()) + "\n")
			rows = 0
		}
	}
	return out.String() + "\n"
}

// wrapped returns text in lines of at most 120 characters.
func wrapped(text string) string {
	var out, line string
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+len(" ")+len(word) > 118 { // and the indent of a list
			out, line = out+line+"\n", ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return out + line
}
