package repocheck

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// files are the contents of a tree by their names.
type files map[string]string

// bad is a tree that a rule must find fault with, or, without want, must not.
type bad struct {
	name  string
	files files
	want  []string // a part of each problem, in order
}

func check(t *testing.T, r rule, cases []bad) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for name, text := range c.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got := r(t, treeOf(t, fsys))
			require.Len(t, got, len(c.want), "%v", got)
			for i, p := range got {
				require.Contains(t, p, c.want[i])
			}
		})
	}
}

const testMap = "| ring | package | content |\n|---|---|---|\n| core | `core` | |\n| core | `strip`, `mend` (a module) | |\n| core | `strip/deep` | `core` |\n| policy | `internal/schema`, `retry` | |\n| test | `tools` | |\n"

func TestImports(t *testing.T) {
	t.Parallel()
	with := func(all files) files {
		all[design] = testMap
		return all
	}
	in := func(pkg string, paths ...string) string {
		return "package " + pkg + "\n\nimport (\n\t\"" + strings.Join(paths, "\"\n\t\"") + "\"\n)\n"
	}
	const strip, core = module + "/strip", module + "/core"
	check(t, imports, []bad{
		{"above", with(files{"strip/a.go": in("strip", "fmt", core, core+"/sub")}), nil},
		{"same entry", with(files{"strip/a.go": in("strip", strip+"/sub"), "strip/sub/b.go": in("sub", strip)}), nil},
		{"below", with(files{"core/a.go": in("core", "fmt", strip)}), []string{"core/a.go:5: imports " + strip + ", which is not above core in the map"}},
		{"same line", with(files{"strip/a.go": in("strip", module+"/mend")}), []string{"not above strip"}},
		{"a longer path is an entry of its own", with(files{"strip/a.go": in("strip", strip+"/deep"), "strip/deep/a.go": in("deep", strip)}), []string{"strip/a.go:4: imports " + strip + "/deep, which is not above strip"}},
		{"a test may look down", with(files{"core/a_test.go": in("core_test", strip, "example.com/testify/require")}), nil},
		{"test support", with(files{"strip/a.go": in("strip", module+"/tools/x")}), []string{"not above strip"}},
		{"not in the map", with(files{"corex/a.go": "package corex\n", "strip/b.go": in("strip", module+"/corex")}), []string{"corex/a.go: corex is not in the map", "imports " + module + "/corex"}},
		{"a dependency of its own", with(files{"retry/a.go": in("retry", "github.com/cenkalti/backoff/v4"), "internal/schema/b.go": in("schema", "github.com/santhosh-tekuri/jsonschema/v5")}), nil},
		{"the dependency of another", with(files{"strip/a.go": in("strip", "github.com/cenkalti/backoff/v4")}), []string{"strip/a.go:4: imports github.com/cenkalti/backoff/v4, a dependency that strip is not to have"}},
		{"a new dependency", with(files{"core/a.go": in("core", "net/http", "example.com/other")}), []string{"core/a.go:5: imports example.com/other"}},
		{"of another module", with(files{"mend/go.mod": "", "mend/sub/a.go": in("sub", "example.com/other")}), nil},
		{"no Go", with(files{"core/a.go": "package"}), []string{"core/a.go:1"}},
	})
}

func TestDocs(t *testing.T) {
	t.Parallel()
	const doc = "// Package p is documented.\npackage p\n\n"
	check(t, undocumented, []bad{
		{"all documented", files{"p/a.go": doc + "// F does.\nfunc F() {}\n\n// T: the zero T works.\ntype T struct{}\n\n// M does.\nfunc (t *T) M() {}\n\nfunc f() {}\n", "p/b.go": "package p\n"}, nil},
		{"function", files{"p/a.go": doc + "func F() {}\n"}, []string{"p/a.go:4: exported without a doc comment"}},
		{"method", files{"p/a.go": doc + "// T is.\ntype T[A any] struct{}\n\nfunc (t *T[A]) M() {}\n"}, []string{"p/a.go:7"}},
		{"function that makes a type", files{"p/a.go": doc + "// T is.\ntype T struct{}\n\nfunc New() *T { return nil }\n"}, []string{"p/a.go:7"}},
		{"method of a private type", files{"p/a.go": doc + "type t struct{}\n\nfunc (t) Error() string { return \"\" }\n"}, nil},
		{"type", files{"p/a.go": doc + "type T int\n"}, []string{"p/a.go:4"}},
		{"group comment", files{"p/a.go": doc + "// The kinds.\nconst (\n\tA = 1\n\tB = 2\n)\n"}, nil},
		{"group without", files{"p/a.go": doc + "var (\n\tA = 1\n\t// B is.\n\tB = 2\n\tc = 3\n)\n"}, []string{"p/a.go:5"}},
		{"constant of a type", files{"p/a.go": doc + "// T is.\ntype T int\n\nconst A T = 1\n"}, []string{"p/a.go:7"}},
		{"several names", files{"p/a.go": doc + "// A and B are.\nvar A, B int\n"}, nil},
		{"no package comment", files{"p/a.go": "package p\n", "p/a_test.go": doc}, []string{"p: no file has a package comment"}},
		{"not for users", files{"internal/p/a.go": doc + "func F() {}\n", "x/main.go": "// Command x is.\npackage main\n\nfunc F() {}\n", "p/testdata/x.go": "package x\n"}, nil},
	})
}

func TestSizes(t *testing.T) {
	t.Parallel()
	check(t, sizes, []bad{
		{"small", files{"a.go": "package p" + strings.Repeat("\n", 1_000)}, nil},
		{"too big", files{"data.gz": strings.Repeat("x", maxFileBytes+1)}, []string{"data.gz: 500001 bytes"}},
	})
}

func TestWords(t *testing.T) {
	t.Parallel()
	check(t, words, []bad{
		{"clean", files{"a.md": "see https://example.org/home/page and docs/work/x.md, ./tmp/x, XXXX\n"}, nil},
		{"unfinished", files{"a.go": "package p\n\n// TO" + "DO: more\n", "b.md": "FIX" + "ME", "c.txt": "XX" + "X here"}, []string{"a.go:3", "b.md:1", "c.txt:1"}},
		{"paths", files{"a.txt": "in /ho" + "me/me/x\nor \"/wo" + "rk/x\"\nor /tm" + "p/x\nor C:\\Us" + "ers\\me\n/ro" + "ot/x\n"}, []string{"a.txt:1", "a.txt:2", "a.txt:3", "a.txt:4", "a.txt:5"}},
		{"not text", files{"a.bin": "\x00 /ho" + "me/me/x"}, nil},
	})
}

func TestNames(t *testing.T) {
	t.Parallel()
	check(t, names, []bad{
		{"plain", files{"a.go": "package p\n\ntype retryStep struct{ begin, essays int }\n\nfunc HasLackey() {}\n"}, nil},
		{"riddles", files{"a.go": "package p\n\ntype step struct {\n\tgivenItem int\n}\n\nfunc (s *step) Says() {}\n\nvar behind, x int\n\ntype i interface{ Fate() int }\n"},
			[]string{"a.go:3", "a.go:4", "a.go:7", "a.go:11", "a.go:9"}},
		{"tests", files{"a_test.go": "package p\n\nfunc says() {}\n"}, nil},
	})
}

func TestCaseFiles(t *testing.T) {
	t.Parallel()
	const test = "package p\n\nfunc TestEdit(t *testing.T) {}\n"
	check(t, caseFiles, []bad{
		{"of a test and of a case", files{"p/a_test.go": test, "p/testdata/TestEdit.txtar": "", "p/testdata/TestEdit/a-b.txtar": "", "p/testdata/x.golden": ""}, nil},
		{"renamed", files{"p/a_test.go": test, "p/testdata/TestEdits/a.txtar": ""}, []string{"p/testdata/TestEdits/a.txtar: is of TestEdits, which is not a test of p"}},
		{"of another package", files{"q/a_test.go": test, "p/testdata/TestEdit.txtar": ""}, []string{"not a test of p"}},
	})
}

func TestDecisions(t *testing.T) {
	t.Parallel()
	const dir = "docs/decisions/"
	check(t, decisions, []bad{
		{"good", files{dir + "0001-a.md": "", dir + "0002-b-c.md": "", "docs/design.md": ""}, nil},
		{"gap", files{dir + "0001-a.md": "", dir + "0003-b.md": ""}, nil},
		{"double", files{dir + "0001-a.md": "", dir + "0001-b.md": ""}, []string{"0001-b.md: has number 0001, as another note"}},
		{"name", files{dir + "0001-a.md": "", dir + "notes.md": "", dir + "2-b.md": ""}, []string{"2-b.md: is not named", "notes.md: is not named"}},
	})
}

func TestLinks(t *testing.T) {
	t.Parallel()
	target := "# One `two`: three?\n\n## More\n"
	check(t, links, []bad{
		{"good", files{"a.md": "# Top\n[x](docs/b.md#one-two-three) [y](docs) [z](#top) [u](https://example.org/none.md)\n", "docs/b.md": target + "[a](../a.md)"}, nil},
		{"no file", files{"a.md": "x\n[b](b.md)\n"}, []string{"a.md:2: links to b.md, which does not exist"}},
		{"relative to the page", files{"docs/b.md": "[a](a.md)", "a.md": ""}, []string{"docs/b.md:1"}},
		{"no heading", files{"a.md": "[x](b.md#less) [y](#none)\n", "b.md": target}, []string{"a.md:1: links to b.md#less, a heading that b.md does not have", "links to #none"}},
		{"code", files{"a.md": "```go\nf[T](x)\n```\n`g[T](y)`\n  ```\nh[T](z)\n  ```\n[b](b.md)"}, []string{"a.md:8"}},
	})
}

func TestUnlisted(t *testing.T) {
	t.Parallel()
	index := "[a](../examples/a/main.go)"
	check(t, unlisted, []bad{
		{"good", files{"docs/examples.md": index, "examples/a/main.go": "", "examples/a/other.go": "", "examples/x/internal/y/y.go": ""}, nil},
		{"a program", files{"docs/examples.md": index, "examples/a/main.go": "", "examples/b/c/main.go": ""}, []string{"examples/b/c: has no link in docs/examples.md"}},
		{"data", files{"docs/examples.md": index, "examples/d/x.jsonl": "", "examples/d/y.jsonl": "", "examples/e/testdata/z.json": ""}, []string{"examples/d: has no link"}},
		{"no index", files{"examples/a/main.go": ""}, []string{"examples/a: has no link"}},
	})
}

func TestExamples(t *testing.T) {
	t.Parallel()
	block := func(mark, code string) files {
		return files{"README.md": "# x\n\n<!-- example: " + mark + " -->\n\n```go\n" + code + "\n```\n", "x/a.go": exampleCode}
	}
	check(t, examples, []bad{
		{"body", block("x/a.go#ExampleF", "if true {\n\tprintln(1)\n}"), nil},
		{"declaration", block("x/a.go#f", "func f() {\n\t// region: part\n\tprintln(2)\n\t// endregion\n}"), nil},
		{"region", block("x/a.go#part", "println(2)"), nil},
		{"whole file", block("x/a.go", exampleCode), nil},
		{"differs", block("x/a.go#part", "println(3)"), []string{"README.md:3: the block differs from x/a.go#part"}},
		{"indentation inside counts", block("x/a.go#ExampleF", "if true {\nprintln(1)\n}"), []string{"differs"}},
		{"no such function", block("x/a.go#g", "g()"), []string{"has no function or region g"}},
		{"no such file", block("y/a.go#g", "g()"), []string{"cannot read the example"}},
		{"no block", files{"docs/a.md": "<!-- example: x/a.go -->\ntext\n"}, []string{"docs/a.md:1: no Go code block"}},
		{"unmarked", files{"README.md": "```go\nanything()\n```\n"}, nil},
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

func TestTreeOf(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"b": {}, "a/c": {}, ".git/config": {}, "a/testdata/rapid/x": {}}
	require.Equal(t, []string{"a/c", "b"}, treeOf(t, fsys).files)
}
