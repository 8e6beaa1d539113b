package repocheck

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// undocumented finds packages without a package comment, and in packages that
// users can import exported identifiers without a doc comment. A comment on a
// group of constants or variables counts for all of them. That a comment starts
// with the name is what staticcheck.conf makes staticcheck see to.
func undocumented(t testing.TB, all tree) []string {
	fset := token.NewFileSet()
	packages := map[string][]*ast.File{} // by directory
	for _, file := range all.having(".go") {
		if isTest(file) {
			continue
		}
		f, err := parser.ParseFile(fset, file, all.read(t, file), parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		packages[path.Dir(file)] = append(packages[path.Dir(file)], f)
	}
	var problems []string
	for dir, files := range packages {
		p, err := doc.NewFromFiles(fset, files, dir)
		require.NoError(t, err)
		if p.Doc == "" {
			problems = append(problems, problem(dir, 0, "no file has a package comment"))
		}
		if public(dir) && p.Name != "main" {
			for _, node := range missing(p) {
				at := fset.Position(node.Pos())
				problems = append(problems, problem(at.Filename, at.Line, "exported without a doc comment"))
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// public reports whether users can import the package at dir, and would want
// to: programs and examples are read, not called.
func public(dir string) bool {
	return !slices.ContainsFunc(strings.Split(dir, "/"), func(s string) bool {
		return slices.Contains([]string{"internal", "cmd", "examples", "tools"}, s)
	})
}

// missing returns the exported declarations of a package without a doc comment.
func missing(p *doc.Package) []ast.Node {
	var found []ast.Node
	functions := p.Funcs
	values := slices.Concat(p.Consts, p.Vars)
	for _, typ := range p.Types {
		if typ.Doc == "" {
			found = append(found, typ.Decl)
		}
		functions = slices.Concat(functions, typ.Funcs, typ.Methods)
		values = slices.Concat(values, typ.Consts, typ.Vars)
	}
	for _, f := range functions {
		if f.Doc == "" {
			found = append(found, f.Decl)
		}
	}
	for _, v := range values {
		for _, spec := range v.Decl.Specs {
			s := spec.(*ast.ValueSpec)
			if v.Doc == "" && s.Doc == nil && slices.ContainsFunc(s.Names, (*ast.Ident).IsExported) {
				found = append(found, s)
			}
		}
	}
	return found
}
