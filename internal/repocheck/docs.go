package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Docs checks that every package has a package comment, and that in packages
// that users can import every exported identifier, methods included, has a doc
// comment that starts with its name. A comment on a group of constants or
// variables counts for all of them.
func Docs(t Tree) ([]Problem, error) {
	var problems []Problem
	described := make(map[string]bool) // package directory: has a package comment
	for _, file := range t.goFiles() {
		if isTest(file) {
			continue
		}
		src, err := t.read(file)
		if err != nil {
			return nil, err
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		dir := path.Dir(file)
		described[dir] = described[dir] || f.Doc != nil
		if public(dir) && f.Name.Name != "main" {
			for _, d := range f.Decls {
				for _, u := range undocumented(d) {
					problems = append(problems, Problem{file, fset.Position(u.pos).Line, u.text})
				}
			}
		}
	}
	for dir, ok := range described {
		if !ok {
			problems = append(problems, Problem{dir, 0, "no file has a package comment"})
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.String(), b.String()) })
	return problems, nil
}

// public reports whether users can import the package at dir, and would want
// to: programs and examples are read, not called.
func public(dir string) bool {
	return !slices.ContainsFunc(strings.Split(dir, "/"), func(s string) bool {
		return s == "internal" || s == "cmd" || s == "examples"
	})
}

// finding is a Problem before its position is worked out.
type finding struct {
	pos  token.Pos
	text string
}

// undocumented returns what is wrong with the comments of one declaration.
func undocumented(d ast.Decl) []finding {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && receiverIsExported(d) {
			return judge(d.Pos(), d.Doc, d.Name.Name)
		}
	case *ast.GenDecl:
		return undocumentedSpecs(d)
	}
	return nil
}

// undocumentedSpecs looks at each type, constant and variable of a declaration,
// which may be a group in parentheses.
func undocumentedSpecs(d *ast.GenDecl) []finding {
	var found []finding
	group := d.Lparen.IsValid()
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() {
				found = append(found, judge(s.Pos(), specDoc(s.Doc, d, group), s.Name.Name)...)
			}
		case *ast.ValueSpec:
			if group && d.Doc != nil {
				continue // the group's comment is theirs
			}
			var names []string
			for _, n := range s.Names {
				if n.IsExported() {
					names = append(names, n.Name)
				}
			}
			if len(names) > 0 {
				found = append(found, judge(s.Pos(), specDoc(s.Doc, d, group), names...)...)
			}
		}
	}
	return found
}

// specDoc returns the comment of a spec: outside a group it is the
// declaration's.
func specDoc(own *ast.CommentGroup, d *ast.GenDecl, group bool) *ast.CommentGroup {
	if own == nil && !group {
		return d.Doc
	}
	return own
}

// judge finds fault with a doc comment that is missing, or that starts with
// none of names.
func judge(pos token.Pos, doc *ast.CommentGroup, names ...string) []finding {
	text := doc.Text()
	if text == "" {
		return []finding{{pos, "exported " + names[0] + " has no doc comment"}}
	}
	for _, name := range names {
		if rest, ok := strings.CutPrefix(text, name); ok {
			if r, _ := utf8.DecodeRuneInString(rest); r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				return nil
			}
		}
	}
	return []finding{{pos, "the doc comment of " + names[0] + " does not start with its name"}}
}

// receiverIsExported reports whether d is a function, or a method of an
// exported type.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	t := d.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return false
		}
	}
}
