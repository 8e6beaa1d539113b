package repocheck

import (
	"go/scanner"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// rings are the rings of the map, the innermost first. The rows of the map are in their
// order, so an import of a row above never leads outwards.
var rings = []string{"core", "policy", "text", "wire", "HTTP", "outer", "test"}

// maxCore is how many lines of code the core may have. What it decides about a call must
// stay small enough for one reader.
const maxCore = 20_000

// ringed finds rows of the map in no ring or out of order, and a core that is too big.
func ringed(t testing.TB, all tree) []string {
	rooms := readMap(all.read(t, design))
	var problems []string
	last := 0
	for _, row := range rooms {
		switch at := slices.Index(rings, row.ring); {
		case at < 0:
			problems = append(problems, problem(design, 0, "%s is in the ring %s, which is none of %s", row.paths[0], row.ring, strings.Join(rings, ", ")))
		case at < last:
			problems = append(problems, problem(design, 0, "%s (%s) is below a row of the ring %s", row.paths[0], row.ring, rings[last]))
		default:
			last = at
		}
	}
	lines := 0
	for _, file := range all.having(".go") {
		if _, line := rooms.find(path.Dir(file)); line >= 0 && rooms[line].ring == rings[0] && !isTest(file) {
			lines += codeLines(all.read(t, file))
		}
	}
	if lines > maxCore {
		problems = append(problems, problem(design, 0, "the core has %d lines of code; the limit is %d", lines, maxCore))
	}
	return problems
}

// codeLines counts the lines of Go code, without blank lines and comments. A line of more
// than 160 columns counts as several.
func codeLines(src string) int {
	const columns = 160
	fset := token.NewFileSet()
	var s scanner.Scanner
	s.Init(fset.AddFile("", -1, len(src)), []byte(src), nil, 0)
	lines := strings.Split(src, "\n")
	n, counted := 0, 0 // lines, and the last line that is counted
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && lit == "\n" { // the end of a line
			continue
		}
		first := fset.Position(pos).Line
		for line := max(first, counted+1); line <= first+strings.Count(lit, "\n"); line++ {
			n += 1 + (len(lines[line-1])-1)/columns
			counted = line
		}
	}
}

func TestRings(t *testing.T) {
	t.Parallel()
	with := func(rows string, all files) files {
		all[design] = "| ring | package | content |\n|---|---|---|\n" + rows
		return all
	}
	long := "package a\n\nvar (\n" + strings.Repeat("\t_ = 0 // none\n\n", maxCore-4) + ")\n" // maxCore - 1 lines
	check(t, ringed, []bad{
		{"in order", with("| core | `a` | |\n| core | `b` | |\n| HTTP | `c` | |\n| test | `d` | |\n", files{}), nil},
		{"out of order", with("| policy | `a` | |\n| core | `b`, `c` | |\n| outer | `d` | |\n", files{}), []string{"b (core) is below a row of the ring policy"}},
		{"unknown", with("| crust | `a` | |\n", files{}), []string{"a is in the ring crust"}},
		{"core of the right size", with("| core | `a` | |\n| HTTP | `b` | |\n", files{"a/a.go": long, "a/deep/a.go": "package a\n", "a/a_test.go": long, "b/b.go": long}), nil},
		{"core too big", with("| core | `a` | |\n", files{"a/a.go": long, "a/deep/b.go": "package a\n\nvar b = `\n`\n"}), []string{"the core has 20002 lines of code; the limit is 20000"}},
		{"wide lines", with("| core | `a` | |\n", files{"a/a.go": long, "a/b.go": "package a // " + strings.Repeat("x", 160) + "\n"}), []string{"the core has 20001 lines"}},
	})
}
