package repocheck_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/repocheck"
)

// treeOf makes a tree of name, content pairs.
func treeOf(t *testing.T, files map[string]string) repocheck.Tree {
	t.Helper()
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := repocheck.TreeOf(m)
	require.NoError(t, err)
	return tree
}

// bad is a tree that a rule must find fault with, or, without want, must not.
type bad struct {
	name  string
	files map[string]string
	want  []string // a part of each problem, in order
}

func run(t *testing.T, rule func(repocheck.Tree) ([]repocheck.Problem, error), cases []bad) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := rule(treeOf(t, c.files))
			require.NoError(t, err)
			require.Len(t, got, len(c.want), "%v", got)
			for i, p := range got {
				require.Contains(t, p.String(), c.want[i])
			}
		})
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	rule := func(t repocheck.Tree) ([]repocheck.Problem, error) {
		return repocheck.Imports(t, "example.org/m", []repocheck.Room{
			{Floor: 0, Path: "core", StdOnly: true},
			{Floor: 1, Path: "internal/schema"},
			{Floor: 1, Path: "strip/..."},
			{Floor: 4, Path: "cmd", Top: true},
		}, []repocheck.Limit{
			{Prefix: "example.com/jsonschema", Only: "internal/schema"},
			{Prefix: "example.com/testify"},
		})
	}
	imports := func(pkg string, paths ...string) string {
		return "package " + pkg + "\n\nimport (\n\t\"" + strings.Join(paths, "\"\n\t\"") + "\"\n)\n"
	}
	run(t, rule, []bad{
		{"up", map[string]string{"strip/a.go": imports("strip", "fmt", "example.org/m/core", "example.org/m/internal/schema", "example.com/other")}, nil},
		{"same room", map[string]string{"strip/a.go": imports("strip", "example.org/m/strip/sub"), "strip/sub/b.go": imports("sub", "example.org/m/core")}, nil},
		{"down", map[string]string{"core/a.go": imports("core", "example.org/m/strip")}, []string{"core/a.go:4: imports strip, which is not above core"}},
		{"same floor, below", map[string]string{"internal/schema/a.go": imports("schema", "example.org/m/strip/sub")}, []string{"not above internal/schema"}},
		{"a test may look down", map[string]string{"core/a_test.go": imports("core_test", "example.org/m/strip", "example.com/testify/require")}, nil},
		{"nobody imports a program", map[string]string{"strip/a_test.go": imports("strip", "example.org/m/cmd")}, []string{"imports cmd, which nothing may import"}},
		{"standard library only", map[string]string{"core/a.go": imports("core", "net/http", "example.com/other")}, []string{"core/a.go:5: imports example.com/other: standard library only"}},
		{"one package owns it", map[string]string{"strip/a.go": imports("strip", "example.com/jsonschema/v5"), "internal/schema/b.go": imports("schema", "example.com/jsonschema/v5")}, []string{"strip/a.go:4: imports example.com/jsonschema/v5, which only internal/schema does"}},
		{"tests only", map[string]string{"strip/a.go": imports("strip", "example.com/testify/assert")}, []string{"for tests only"}},
		{"no room", map[string]string{"util/a.go": "package util\n", "strip/b.go": imports("strip", "example.org/m/util")}, []string{"strip/b.go:4: imports util, which has no room", "util/a.go: package util has no room"}},
	})
}

func TestDocs(t *testing.T) {
	t.Parallel()
	const doc = "// Package p is documented.\npackage p\n\n"
	run(t, repocheck.Docs, []bad{
		{"all documented", map[string]string{"p/a.go": doc + "// F does.\nfunc F() {}\n\n// T: the zero T works.\ntype T struct{}\n\n// M does.\nfunc (t *T) M() {}\n\nfunc f() {}\n", "p/b.go": "package p\n"}, nil},
		{"function", map[string]string{"p/a.go": doc + "func F() {}\n"}, []string{"p/a.go:4: exported F has no doc comment"}},
		{"wrong start", map[string]string{"p/a.go": doc + "// Fine it is.\nfunc F() {}\n"}, []string{"F does not start with its name"}},
		{"method", map[string]string{"p/a.go": doc + "// T is.\ntype T[A any] struct{}\n\nfunc (t *T[A]) M() {}\n"}, []string{"exported M has no doc comment"}},
		{"method of a private type", map[string]string{"p/a.go": doc + "type t struct{}\n\nfunc (t) Error() string { return \"\" }\n"}, nil},
		{"type", map[string]string{"p/a.go": doc + "type T int\n"}, []string{"exported T"}},
		{"group comment", map[string]string{"p/a.go": doc + "// The kinds.\nconst (\n\tA = 1\n\tB = 2\n)\n"}, nil},
		{"group without", map[string]string{"p/a.go": doc + "var (\n\tA = 1\n\t// B is.\n\tB = 2\n\tc = 3\n)\n"}, []string{"exported A"}},
		{"several names", map[string]string{"p/a.go": doc + "// A and B are.\nvar A, B int\n"}, nil},
		{"no package comment", map[string]string{"p/a.go": "package p\n", "p/a_test.go": doc}, []string{"p: no file has a package comment"}},
		{"not for users", map[string]string{"internal/p/a.go": doc + "func F() {}\n", "cmd/x/main.go": "// Command x is.\npackage main\n\nfunc F() {}\n", "p/testdata/x.go": "package x\n"}, nil},
	})
}

func TestSizes(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("\n", repocheck.MaxGoLines)
	run(t, repocheck.Sizes, []bad{
		{"short", map[string]string{"a.go": "package p" + long, "a.md": long + long}, nil},
		{"long", map[string]string{"a.go": "package p\n" + long}, []string{"401 lines and no"}},
		{"long with a reason", map[string]string{"a.go": "// Long because it is a table.\npackage p\n" + long}, nil},
		{"the reason comes too late", map[string]string{"a.go": "package p\n" + long + "// Long because so.\n"}, []string{"a.go: 402 lines"}},
		{"no reason given", map[string]string{"a.go": "// Long because \npackage p\n" + long}, []string{"402 lines"}},
		{"too big", map[string]string{"data.gz": strings.Repeat("x", repocheck.MaxFileBytes+1)}, []string{"data.gz: 500001 bytes"}},
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	run(t, repocheck.Words, []bad{
		{"clean", map[string]string{"a.md": "see https://example.org/home/page and docs/work/x.md, ./tmp/x, XXXX\n"}, nil},
		{"unfinished", map[string]string{"a.go": "package p\n\n// TO" + "DO: more\n", "b.md": "FIX" + "ME", "c.txt": "XX" + "X here"}, []string{"a.go:3", "b.md:1", "c.txt:1"}},
		{"paths", map[string]string{"a.txt": "in /ho" + "me/me/x\nor \"/wo" + "rk/x\"\nor /tm" + "p/x\nor C:\\Us" + "ers\\me\n"}, []string{"a.txt:1", "a.txt:2", "a.txt:3", "a.txt:4"}},
		{"not text", map[string]string{"a.bin": "\x00 /ho" + "me/me/x"}, nil},
	})
}

func TestExamples(t *testing.T) {
	t.Parallel()
	block := func(mark, code string) map[string]string {
		return map[string]string{"README.md": "# x\n\n<!-- example: " + mark + " -->\n\n```go\n" + code + "\n```\n", "x/a.go": exampleCode}
	}
	run(t, repocheck.Examples, []bad{
		{"body", block("x/a.go#ExampleF", "if true {\n\tprintln(1)\n}"), nil},
		{"declaration", block("x/a.go#f", "func f() {\n\t// region: part\n\tprintln(2)\n\t// endregion\n}"), nil},
		{"region", block("x/a.go#part", "println(2)"), nil},
		{"whole file", block("x/a.go", exampleCode), nil},
		{"differs", block("x/a.go#part", "println(3)"), []string{"README.md:3: the block differs from x/a.go#part"}},
		{"indentation inside counts", block("x/a.go#ExampleF", "if true {\nprintln(1)\n}"), []string{"differs"}},
		{"no such function", block("x/a.go#g", "g()"), []string{"has no function or region g"}},
		{"no such file", block("y/a.go#g", "g()"), []string{"cannot read the example"}},
		{"no block", map[string]string{"docs/a.md": "<!-- example: x/a.go -->\ntext\n"}, []string{"docs/a.md:1: no Go code block"}},
		{"unmarked", map[string]string{"README.md": "```go\nanything()\n```\n"}, nil},
	})
}

const exampleCode = `package p

func ExampleF() {
	if true {
		println(1)
	}
	// Output: 1
}

func f() {
	// region: part
	println(2)
	// endregion
}
`

func TestChangelog(t *testing.T) {
	t.Parallel()
	run(t, repocheck.Changelog, []bad{
		{"good", map[string]string{"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n## [1.0.0]\n"}, nil},
		{"missing", map[string]string{"README.md": ""}, []string{"CHANGELOG.md: is missing"}},
		{"released on top", map[string]string{"CHANGELOG.md": "# Changelog\n\n## [1.0.0]\n\n## [Unreleased]\n"}, []string{"CHANGELOG.md:3"}},
		{"no section", map[string]string{"CHANGELOG.md": "# Changelog\n"}, []string{"has no [Unreleased] section"}},
	})
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	const dir = "docs/decisions/"
	run(t, repocheck.Decisions, []bad{
		{"good", map[string]string{dir + "0001-a.md": "", dir + "0002-b-c.md": "", "docs/design.md": ""}, nil},
		{"gap", map[string]string{dir + "0001-a.md": "", dir + "0003-b.md": ""}, []string{"0003-b.md: has number 0003 where 0002 is next"}},
		{"double", map[string]string{dir + "0001-a.md": "", dir + "0001-b.md": ""}, []string{"has number 0001 where 0002"}},
		{"name", map[string]string{dir + "0001-a.md": "", dir + "notes.md": "", dir + "2-b.md": ""}, []string{"2-b.md: is not named", "notes.md: is not named"}},
	})
}

func TestTreeOf(t *testing.T) {
	t.Parallel()
	tree := treeOf(t, map[string]string{"b": "", "a/c": "", ".git/config": "", "a/.git": ""})
	require.Equal(t, []string{"a/c", "b"}, tree.Files)
}
