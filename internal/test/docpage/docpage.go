// Package docpage reads the code blocks of Markdown pages, and runs a page as its
// reader would.
//
// A comment directly in front of a block says what a test does with it:
//
//	<!-- file: NAME -->     the block is the content of NAME in the reader's directory
//	<!-- run -->            the shell runs the block; run: 1 expects that exit code
//	<!-- start -->          the same, and the commands go on until the page ends
//	<!-- prints -->         what the commands in front of it print, standard error included
//
// In the output of a page "…" stands for any text of a line, and a line that is "…"
// alone for any lines. The width of columns does not matter.
package docpage

import (
	"regexp"
	"strings"
)

// Block is a code block.
type Block struct {
	Line     int    // of its first line of code, from 1
	Language string // "" for an indented block
	Text     string // without the indentation of the whole block
	Mark     string // the comment in front of it, without <!-- and -->; "" if there is none
	Indented bool   // it is set off by four spaces, not by ```
}

var (
	fence   = regexp.MustCompile("^( *)```([a-z]*)$")
	comment = regexp.MustCompile(`^\s*<!-- (.*) -->$`)
)

// Blocks returns the code blocks of a page in their order.
func Blocks(page string) []Block {
	var blocks []Block
	lines := strings.Split(page, "\n")
	mark := ""
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := fence.FindStringSubmatch(line); m != nil {
			b := Block{Line: i + 2, Language: m[2], Mark: mark}
			var text []string
			for i++; i < len(lines) && strings.TrimSpace(lines[i]) != "```"; i++ {
				text = append(text, strings.TrimPrefix(lines[i], m[1]))
			}
			b.Text = strings.Join(text, "\n") + "\n"
			blocks = append(blocks, b)
		} else if isIndented(line) && (i == 0 || strings.TrimSpace(lines[i-1]) == "") {
			b := Block{Line: i + 1, Mark: mark, Indented: true}
			var text []string
			for ; i < len(lines) && (isIndented(lines[i]) || strings.TrimSpace(lines[i]) == "" && i+1 < len(lines) && isIndented(lines[i+1])); i++ {
				text = append(text, strings.TrimPrefix(lines[i], "    "))
			}
			i--
			b.Text = strings.Join(text, "\n") + "\n"
			blocks = append(blocks, b)
		}
		switch m := comment.FindStringSubmatch(line); {
		case m != nil:
			mark = m[1]
		case strings.TrimSpace(line) != "":
			mark = ""
		}
	}
	return blocks
}

func isIndented(line string) bool {
	return strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != ""
}

// spaces are what aligns the columns of a table.
var spaces = regexp.MustCompile(` {2,}`)

// Matches reports whether output is what a page shows.
func Matches(shown, output string) bool {
	shown, output = spaces.ReplaceAllString(shown, " "), spaces.ReplaceAllString(output, " ")
	var pattern strings.Builder
	pattern.WriteString(`^`)
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(`(?:.*\n)*?`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), "…", `.*`))
		pattern.WriteString(` *\n`)
	}
	pattern.WriteString(`$`)
	return regexp.MustCompile(pattern.String()).MatchString(strings.TrimRight(output, "\n") + "\n")
}
