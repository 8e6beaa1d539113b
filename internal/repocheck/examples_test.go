package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// exampleMark announces the code block that follows it in a Markdown file:
//
//	<!-- example: path/to/file.go#Name -->
//
// Name is a function, whose whole declaration or whose body alone the block
// repeats, or a region of the file between the lines "// region: Name" and
// "// endregion". Without #Name the block is the whole file.
var exampleMark = regexp.MustCompile(`^<!-- example: ([^\s#]+)(?:#(\S+))? -->$`)

// examples finds marked code blocks of Markdown files that differ from the code
// that the mark names.
func examples(t testing.TB, all tree) []string {
	var problems []string
	for _, file := range all.having(".md") {
		lines := strings.Split(all.read(t, file), "\n")
		for i, line := range lines {
			m := exampleMark.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			block, ok := codeBlock(lines[i+1:])
			if !ok {
				problems = append(problems, problem(file, i+1, "no Go code block follows the example mark"))
			} else if what := differs(all, block, m[1], m[2]); what != "" {
				problems = append(problems, problem(file, i+1, "%s", what))
			}
		}
	}
	return problems
}

// codeBlock returns the Go code block that lines start with, blank lines
// aside.
func codeBlock(lines []string) (string, bool) {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	if len(lines) == 0 || strings.TrimSpace(lines[0]) != "```go" {
		return "", false
	}
	for i, line := range lines[1:] {
		if strings.TrimSpace(line) == "```" {
			return strings.Join(lines[1:i+1], "\n"), true
		}
	}
	return "", false
}

// differs says how block is not the code that the mark names, or "".
func differs(all tree, block, file, name string) string {
	src, err := fs.ReadFile(all, file)
	if err != nil {
		return "cannot read the example: " + err.Error()
	}
	forms := codeForms(string(src), name)
	if len(forms) == 0 {
		return file + " has no function or region " + name
	}
	for _, form := range forms {
		if tidy(form) == tidy(block) {
			return ""
		}
	}
	return "the block differs from " + file + "#" + name
}

// codeForms returns the texts that a block for name may have.
func codeForms(src, name string) []string {
	if name == "" {
		return []string{src}
	}
	if _, rest, ok := strings.Cut(src, "// region: "+name+"\n"); ok {
		region, _, _ := strings.Cut(rest, "// endregion")
		return []string{region}
	}
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "", src, parser.SkipObjectResolution)
	if err != nil {
		return nil
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == name && fn.Body != nil {
			at := func(p token.Pos) int { return fset.Position(p).Offset }
			body := src[at(fn.Body.Lbrace)+1 : at(fn.Body.Rbrace)]
			// What an Example prints is told to go test, not to the reader.
			body, _, _ = strings.Cut(body, "\n\t// Output:")
			return []string{src[at(fn.Pos()):at(fn.End())], body}
		}
	}
	return nil
}

// tidy removes what may differ: the indentation of the whole and the white
// space around it.
func tidy(code string) string {
	lines := strings.Split(code, "\n")
	for {
		for _, line := range lines {
			if line != "" && line[0] != '\t' {
				return strings.TrimSpace(strings.Join(lines, "\n"))
			}
		}
		cut := false
		for i, line := range lines {
			if line != "" {
				lines[i], cut = line[1:], true
			}
		}
		if !cut {
			return ""
		}
	}
}
