package repocheck

import (
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Room is a line of the house table: one package, or several when Path ends
// in "/...".
type Room struct {
	Floor   int
	Path    string // from the module's root, "." for the root itself
	StdOnly bool   // imports the standard library and rooms above it only
	Top     bool   // nothing outside the room imports it
}

// holds reports whether the package at dir is in the room.
func (r Room) holds(dir string) bool {
	if base, ok := strings.CutSuffix(r.Path, "/..."); ok {
		return dir == base || strings.HasPrefix(dir, base+"/")
	}
	return dir == r.Path
}

// Limit says which files may import packages whose path starts with Prefix.
type Limit struct {
	Prefix string
	Only   string // packages at this path may, tests everywhere may; "": only tests may
}

// Imports checks every import against the house: a package imports only rooms
// that stand before its own in the table, and what limits allow. Tests are
// free to import any room but those marked Top.
func Imports(t Tree, module string, house []Room, limits []Limit) ([]Problem, error) {
	var problems []Problem
	for _, file := range t.goFiles() {
		src, err := t.read(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(file)
		from := roomOf(house, dir)
		if from < 0 {
			problems = append(problems, Problem{file, 0, "package " + dir + " has no room in the house table"})
			continue
		}
		for _, spec := range f.Imports {
			imported, _ := strconv.Unquote(spec.Path.Value)
			if what := forbidden(file, house, from, limits, module, imported); what != "" {
				problems = append(problems, Problem{file, fset.Position(spec.Pos()).Line, what})
			}
		}
	}
	return problems, nil
}

// roomOf returns the index of the first room that holds dir, so that a more
// exact path stands before a wider one; -1 if there is none.
func roomOf(house []Room, dir string) int {
	return slices.IndexFunc(house, func(r Room) bool { return r.holds(dir) })
}

// forbidden says why file must not import imported, or "".
func forbidden(file string, house []Room, from int, limits []Limit, module, imported string) string {
	test := isTest(file)
	if dir, ok := inModule(module, imported); ok {
		to := roomOf(house, dir)
		switch {
		case to == from:
			return ""
		case to < 0:
			return "imports " + dir + ", which has no room in the house table"
		case house[to].Top:
			return "imports " + dir + ", which nothing may import"
		case !test && to > from:
			return "imports " + dir + ", which is not above " + house[from].Path + " in the house table"
		}
		return ""
	}
	// The first segment of a path outside the standard library has a dot.
	outside := strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
	if outside && !test && house[from].StdOnly {
		return "imports " + imported + ": standard library only"
	}
	for _, l := range limits {
		if strings.HasPrefix(imported, l.Prefix) && !test && (l.Only == "" || path.Dir(file) != l.Only) {
			if l.Only == "" {
				return "imports " + imported + ", which is for tests only"
			}
			return "imports " + imported + ", which only " + l.Only + " does"
		}
	}
	return ""
}

// inModule returns the path of a package from the module's root.
func inModule(module, imported string) (string, bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}
