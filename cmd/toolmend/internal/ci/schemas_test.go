package ci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/ci"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

// The schemas come from packages that have them for their own tests: the schema of
// OASIS, and the one of Jenkins' xunit plugin.
const (
	sarifModule  = "github.com/owenrumney/go-sarif/v3@v3.3.1"
	sarifFile    = "pkg/report/v210/sarif/schema.go"
	junitPackage = "pytest"
	junitFile    = "*/testing/example_scripts/junit-10.xsd"
)

// TestReportSchemas validates reports against the schemas of their formats. It fetches
// the schemas, and is run by `make reports`.
func TestReportSchemas(t *testing.T) {
	if os.Getenv("REPORTS") == "" {
		t.Skip("it fetches schemas: run make reports")
	}
	schema := sarifSchema(t)
	require.Error(t, schema.Validate(map[string]any{"version": "2.1.0", "runs": []any{map[string]any{}}}), "a run without a tool")
	require.Error(t, validateXML(t, []byte(`<testsuites><testsuite/></testsuites>`)), "a suite without a name")
	s := reportedCalls(t)
	for _, l := range []report.Layout{{}, {Values: true, Final: true, Title: "calls"}} {
		for name, sum := range map[string]report.Summary{"calls": s, "nothing": report.NewFigures(report.Options{}).Summary()} {
			t.Run(fmt.Sprintf("%s, values %v", name, l.Values), func(t *testing.T) {
				var sarif, junit bytes.Buffer
				require.NoError(t, ci.WriteSARIF(&sarif, sum, l))
				require.NoError(t, ci.WriteJUnit(&junit, sum, l))
				var v any
				require.NoError(t, json.Unmarshal(sarif.Bytes(), &v))
				require.NoError(t, schema.Validate(v))
				require.NoError(t, validateXML(t, junit.Bytes()))
			})
		}
	}
}

// TestLintSchema validates the log that toolmend lint is expected to write.
func TestLintSchema(t *testing.T) {
	if os.Getenv("REPORTS") == "" {
		t.Skip("it fetches a schema: run make reports")
	}
	text, err := os.ReadFile(filepath.Join("..", "lint", "testdata", "sarif.json"))
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(text, &v))
	require.NoError(t, sarifSchema(t).Validate(v))
}

// reportedCalls returns the figures of calls with every verdict and with names that are
// hard to write, more of them than SARIF may hold.
func reportedCalls(t *testing.T) report.Summary {
	t.Helper()
	tools := []middleware.Tool{
		{Name: "add", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"],"additionalProperties":false}`)},
		{Name: "free"}, {Name: "odd", Parameters: []byte(`{"type":"nonsense"}`)},
	}
	checker, figures := report.NewChecker(argsvalidate.Options{}), report.NewFigures(report.Options{Content: true, Findings: 7_000})
	for i := range 6_000 {
		call := middleware.ToolCall{Name: []string{"add", "odd", "free", "<&\x00]]>\u202e", "[l](x)"}[i%5], Arguments: []string{`{}`, `{"x":"1"}`, `[1]`, `{"x`, "\x00\xff", `{"x":1,"<y>":2}`}[i%6]}
		calls, err := checker.Check(t.Context(), tools, middleware.FinishToolCalls, call)
		require.NoError(t, err)
		figures.Add(&report.Step{ID: "r", File: []string{"logs/a b%.jsonl", "/abs/c:d.jsonl", ""}[i%3], Line: i % 100, Model: []string{"m", "", "\ufffe"}[i%3], Tools: tools, Attempts: []report.Attempt{{Calls: calls}}})
	}
	return figures.Summary()
}

// sarifSchema returns the compiled schema of SARIF 2.1.0, which the module holds as a
// constant.
func sarifSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", sarifModule).Output()
	var module struct{ Dir, Error string }
	if json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Skipf("cannot fetch %s: %v %s", sarifModule, err, module.Error)
	}
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(module.Dir, filepath.FromSlash(sarifFile)), nil, 0)
	require.NoError(t, err)
	text := ""
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && len(lit.Value) > len(text) {
			text = lit.Value
		}
		return true
	})
	text, err = strconv.Unquote(text)
	require.NoError(t, err)
	schema, err := jsonschema.CompileString("sarif.json", text)
	require.NoError(t, err)
	return schema
}

// validateXML validates text, with a Python package, against the schema that the source
// of another one holds.
func validateXML(t *testing.T, text []byte) error {
	t.Helper()
	dir := t.TempDir()
	file, schema := filepath.Join(dir, "junit.xml"), junitSchema(t)
	require.NoError(t, os.WriteFile(file, text, 0o600))
	python := filepath.Join(fetched(t), "venv", "bin", "python")
	if _, err := os.Stat(python); err != nil {
		for _, args := range [][]string{{"python3", "-m", "venv", filepath.Join(fetched(t), "venv")}, {python, "-m", "pip", "install", "--quiet", "xmlschema"}} {
			if out, err := runOut(t.Context(), args...); err != nil {
				t.Skipf("cannot install xmlschema: %v: %s", err, out)
			}
		}
	}
	out, err := runOut(t.Context(), python, "-c", "import sys, xmlschema; xmlschema.XMLSchema(sys.argv[1]).validate(sys.argv[2])", schema, file)
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// junitSchema returns the path of the schema.
func junitSchema(t *testing.T) string {
	t.Helper()
	find := func() string {
		got, _ := filepath.Glob(filepath.Join(fetched(t), filepath.FromSlash(junitFile)))
		return strings.Join(got, "")
	}
	if path := find(); path != "" {
		return path
	}
	out, err := runOut(t.Context(), "python3", "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", fetched(t), junitPackage)
	if err != nil {
		t.Skipf("cannot fetch the source of %s: %v: %s", junitPackage, err, out)
	}
	archives, _ := filepath.Glob(filepath.Join(fetched(t), junitPackage+"-*.tar.gz"))
	require.Len(t, archives, 1)
	out, err = runOut(t.Context(), "tar", "-xzf", archives[0], "-C", fetched(t))
	require.NoError(t, err, string(out))
	require.NotEmpty(t, find(), "the package does not hold the schema any more")
	return find()
}

// fetched is the folder that the parts of one run share.
func fetched(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(os.Getenv("REPORTS"), "schemas")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	return dir
}

func runOut(ctx context.Context, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
}
