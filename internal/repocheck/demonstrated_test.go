package repocheck

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// demonstrated finds public packages without a file example_test.go that has a
// whole example: one with an Output comment that go/doc can show as a program of
// its own.
func demonstrated(t testing.TB, all tree) []string {
	whole := map[string]bool{} // by the directory of a public package
	for _, file := range all.having(".go") {
		dir := path.Dir(file)
		if !public(dir) {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, all.read(t, file), parser.ParseComments)
		require.NoError(t, err)
		switch {
		case isTest(file):
			if path.Base(file) == "example_test.go" && slices.ContainsFunc(doc.Examples(f), isWhole) {
				whole[dir] = true
			}
		case f.Name.Name != "main" && !whole[dir]:
			whole[dir] = false
		}
	}
	var problems []string
	for _, dir := range slices.Sorted(maps.Keys(whole)) {
		if !whole[dir] {
			problems = append(problems, problem(dir, 0, "example_test.go has no whole example with an Output comment"))
		}
	}
	return problems
}

// isWhole reports whether an example prints something that go test compares,
// and needs no declaration of another file.
func isWhole(e *doc.Example) bool {
	_, file := e.Code.(*ast.File)
	return e.Output != "" && (file || e.Play != nil)
}

func TestDemonstrated(t *testing.T) {
	t.Parallel()
	with := func(file, decl string) files {
		return files{"p/a.go": "package p\n", file: "package p_test\n\nimport \"fmt\"\n\n" + decl}
	}
	const prints = "func Example() {\n\tfmt.Println(1)\n\t// Output: 1\n}\n"
	const lacks = "p: example_test.go has no whole example"
	check(t, demonstrated, []bad{
		{"whole", with("p/example_test.go", prints), nil},
		{"no file", files{"p/a.go": "package p\n"}, []string{lacks}},
		{"another file", with("p/a_test.go", prints), []string{lacks}},
		{"compiled only", with("p/example_test.go", "func Example() { fmt.Println(1) }\n"), []string{lacks}},
		{"needs another file", with("p/example_test.go", "func Example() {\n\tfmt.Println(helper())\n\t// Output: 1\n}\n"), []string{lacks}},
		{"not for users", files{"internal/p/a.go": "package p\n", "x/main.go": "package main\n"}, nil},
	})
}
