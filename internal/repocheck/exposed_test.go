package repocheck

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exposed finds types of internal packages in the exported functions, methods,
// fields and types of public packages. A user cannot name such a type.
func exposed(t testing.TB, all tree) []string {
	fset := token.NewFileSet()
	var problems []string
	for _, file := range all.having(".go") {
		if isTest(file) || !public(path.Dir(file)) {
			continue
		}
		f, err := parser.ParseFile(fset, file, all.read(t, file), parser.SkipObjectResolution)
		require.NoError(t, err)
		internal := internalImports(f)
		ast.FileExports(f)
		for _, d := range f.Decls {
			ast.Inspect(d, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					return n.Recv == nil || exportedReceiver(n.Recv.List[0].Type)
				case *ast.BlockStmt: // the body of a function
					return false
				case *ast.ValueSpec: // users read the type, not the value
					n.Values = nil
				case *ast.SelectorExpr:
					if pkg, ok := n.X.(*ast.Ident); ok && internal[pkg.Name] {
						problems = append(problems, problem(file, fset.Position(n.Pos()).Line, "exports %s.%s, a type of an internal package", pkg.Name, n.Sel.Name))
					}
				}
				return true
			})
		}
	}
	return problems
}

// exportedReceiver reports whether a method of that receiver belongs to an
// exported type.
func exportedReceiver(typ ast.Expr) bool {
	switch typ := typ.(type) {
	case *ast.StarExpr:
		return exportedReceiver(typ.X)
	case *ast.IndexExpr:
		return exportedReceiver(typ.X)
	case *ast.IndexListExpr:
		return exportedReceiver(typ.X)
	case *ast.Ident:
		return typ.IsExported()
	}
	return true
}

// internalImports returns the names under which a file imports internal
// packages.
func internalImports(f *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, spec := range f.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if !slices.Contains(strings.Split(imported, "/"), "internal") {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names[name] = true
	}
	return names
}

func TestExposed(t *testing.T) {
	t.Parallel()
	src := func(decl string) files {
		return files{"p/a.go": "package p\n\nimport (\n\t\"example.com/m/internal/doc\"\n\t\"example.com/m/open\"\n\tin \"example.com/m/internal/view\"\n)\n\n" + decl + "\n"}
	}
	check(t, exposed, []bad{
		{"parameter", src("func F(a int, d *doc.Doc) {}"), []string{"p/a.go:9: exports doc.Doc"}},
		{"renamed import", src("func F() []in.View { return nil }"), []string{"exports in.View"}},
		{"method", src("func (T) M(map[string]doc.Doc) {}"), []string{"doc.Doc"}},
		{"field", src("type T struct {\n\tD doc.Doc\n\td doc.Doc\n}"), []string{"p/a.go:10"}},
		{"embedded", src("type T struct{ *doc.Doc }"), []string{"doc.Doc"}},
		{"interface", src("type T interface{ M() doc.Doc }"), []string{"doc.Doc"}},
		{"alias", src("type T = doc.Doc"), []string{"doc.Doc"}},
		{"type parameter", src("func F[D doc.Doc]() {}"), []string{"doc.Doc"}},
		{"variable", src("var V doc.Doc"), []string{"doc.Doc"}},
		{"value", src("var Err, other = doc.Err, open.X"), nil},
		{"body", src("func F() open.T {\n\tvar d doc.Doc\n\treturn d\n}"), nil},
		{"not exported", src("func f(doc.Doc) {}\n\ntype t struct{ D doc.Doc }\n\nfunc (t) M(doc.Doc) {}\n\ntype T struct{ d *doc.Doc }"), nil},
		{"in an internal package", files{"internal/p/a.go": src("var V doc.Doc")["p/a.go"], "p/a_test.go": src("var V doc.Doc")["p/a.go"]}, nil},
	})
}
