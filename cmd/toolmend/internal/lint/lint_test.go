package lint_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/lint"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

const plain = `{"type":"object","properties":{"x":{"type":"integer","description":"how many"}},"required":["x"]}`

// shapes are one tool in the forms in which tools are written, with the pointer of its
// schema.
var shapes = map[string]struct{ text, pointer string }{
	"chat":      {`{"model":"m","tools":[{"type":"function","function":{"name":"add","parameters":%s}}]}`, "/tools/0/function/parameters"},
	"responses": {`{"tools":[{"type":"function","name":"add","parameters":%s,"strict":false}]}`, "/tools/0/parameters"},
	"anthropic": {`{"tools":[{"name":"add","input_schema":%s}]}`, "/tools/0/input_schema"},
	"custom":    {`[{"type":"custom","name":"add","input_schema":%s}]`, "/0/input_schema"},
	"gemini":    {`{"tools":[{"functionDeclarations":[{"name":"add","parametersJsonSchema":%s}]}]}`, "/tools/0/functionDeclarations/0/parametersJsonSchema"},
	"snake":     {`{"tools":[{"function_declarations":[{"name":"add","parameters":%s}]}]}`, "/tools/0/function_declarations/0/parameters"},
	"ollama":    {`{"model":"m","messages":[],"tools":[{"type":"function","function":{"name":"add","description":"","parameters":%s}}]}`, "/tools/0/function/parameters"},
	"mcp":       {`{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"add","inputSchema":%s}]}}`, "/result/tools/0/inputSchema"},
	"toolset":   {`{"ref":"a","source":"s","tools":[{"name":"add","parameters":%s}]}`, "/tools/0/parameters"},
	"exchange":  {`{"request":{"functions":[{"name":"add","parameters":%s}]},"response":"x"}`, "/request/functions/0/parameters"},
	"alone":     {`{"name":"add","parameters":%s}`, "/parameters"},
}

// check returns the findings as lines of rule, pointer and tool.
func check(t *testing.T, text string, only ...lint.Provider) []string {
	t.Helper()
	tools, err := lint.Read("f", []byte(text))
	require.NoError(t, err, text)
	var out []string
	for _, f := range tools.Check(only) {
		out = append(out, fmt.Sprintf("%s %s:%d %s", f.Level, f.Rule, f.Line, f.Pointer))
	}
	return out
}

// TestShapes holds that a tool is found in every form, and that a good one has no
// finding: a missing default is none.
func TestShapes(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		require.Empty(t, check(t, fmt.Sprintf(shape.text, plain)), name)
		got := check(t, "\n"+fmt.Sprintf(shape.text, `{"type":"string","enum":["a b"]}`))
		require.Contains(t, got, "error root-type:2 "+shape.pointer, name)
	}
}

// TestRules holds each rule: what has the finding, and with which providers.
func TestRules(t *testing.T) {
	t.Parallel()
	object := func(members string) string {
		return `[{"name":"add","parameters":{"type":"object","properties":{` + members + `}}}]`
	}
	long := strings.Repeat("a", 65)
	for _, c := range []struct {
		name, text string
		only       []lint.Provider
		want       []string
	}{
		{"no name", `[{"type":"function","function":{"parameters":` + plain + `}}]`, nil, []string{"error name-missing:1 /0/function"}},
		{"dotted name", `[{"name":"a.b","parameters":` + plain + `}]`, nil, []string{"error name:1 /0/name"}},
		{"dotted name for Gemini", `[{"name":"a.b","parameters":` + plain + `}]`, []lint.Provider{lint.Gemini}, nil},
		{"name with 65", `[{"name":"` + long + `","input_schema":` + plain + `}]`, nil, nil},
		{"name with 129", `[{"name":"` + long + long + `","input_schema":` + plain + `}]`, nil, []string{"error name:1 /0/name"}},
		{"name with a digit first", `[{"functionDeclarations":[{"name":"7up","parametersJsonSchema":` + plain + `}]}]`, nil, []string{"error name:1 /0/functionDeclarations/0/name"}},
		{"same name", `[{"name":"add","parameters":` + plain + "},\n" + `{"name":"add","parameters":` + plain + `}]`, nil, []string{"error name-duplicate:2 /1"}},
		{"no schema", `[{"name":"add","parameters":null}]`, nil, []string{"note no-schema:1 /0"}},
		{"long description", `[{"name":"add","description":"` + strings.Repeat("é", 1025) + `","parameters":` + plain + `}]`, nil, []string{"note description-length:1 /0/description"}},
		{"unusable", `[{"name":"add","parameters":{"type":"nonsense"}}]`, nil, []string{"error schema-unusable:1 /0/parameters"}},
		{"schema is a list", `[{"name":"add","parameters":[]}]`, nil, []string{"error schema-unusable:1 /0/parameters"}},
		{"lenient", `[{"name":"add","input_schema":{"type":"object","properties":{"x":{"type":"float"}}}}]`, nil,
			[]string{"note schema-note:1 /0/input_schema", "error schema-draft:1 /0/input_schema"}},
		{"draft 7, not 2020-12", `[{"name":"add","input_schema":{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"x":{"type":"array","items":[{"type":"integer"}]}}}}]`, nil,
			[]string{"error schema-draft:1 /0/input_schema", "warning optional-array:1 /0/input_schema/properties/x"}},
		{"root union", `[{"name":"add","parameters":{"type":"object","anyOf":[{"required":["a"]}],"not":{}}}]`, nil,
			[]string{"error root-union:1 /0/parameters/anyOf", "error root-union:1 /0/parameters/not"}},
		{"root union for Anthropic", `[{"name":"add","parameters":{"type":"object","anyOf":[{"required":["a"]}],"not":{}}}]`, []lint.Provider{lint.Anthropic},
			[]string{"error root-union:1 /0/parameters/anyOf"}},
		{"array without items", object(`"x":{"type":"array"},"y":{"type":"array","items":{"type":["array","null"]}}`), []lint.Provider{lint.OpenAI},
			[]string{"error array-items:1 /0/parameters/properties/x", "error array-items:1 /0/parameters/properties/y/items", "warning optional-array:1 /0/parameters/properties/x", "warning optional-array:1 /0/parameters/properties/y", "warning nested-array:1 /0/parameters/properties/y"}},
		{"array without items for Anthropic", `[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"array"}},"required":["x"]}}]`, []lint.Provider{lint.Anthropic}, nil},
		{"tuple", `[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"array","prefixItems":[{"type":"number"}]}},"required":["x"]}}]`, []lint.Provider{lint.OpenAI}, []string{"error array-items:1 /0/parameters/properties/x"}},
		{"tuple for Gemini", `[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"array","prefixItems":[{"type":"number"}]}},"required":["x"]}}]`, []lint.Provider{lint.Gemini}, nil},
		{"property name", object(`"filter[id]":{"type":"string"}`), nil, []string{"error property-name:1 /0/parameters/properties/filter[id]"}},
		{"property name for OpenAI", object(`"filter[id]":{"type":"string"}`), []lint.Provider{lint.OpenAI}, nil},
		{"strict", `[{"type":"function","name":"add","strict":true,"parameters":{"type":"object","properties":{"x":{"oneOf":[{"type":"string"}]}}}}]`, nil,
			[]string{"error strict-closed:1 /0/parameters", "error strict-required:1 /0/parameters/properties/x", "error strict-keyword:1 /0/parameters/properties/x/oneOf"}},
		{"Gemini's parameters", `[{"functionDeclarations":[{"name":"add","parameters":{"type":"OBJECT","additionalProperties":false,"properties":{"x":{"type":["STRING","NULL"]},"y":{"type":"INTEGER","enum":[1]}}}}]}]`, nil,
			[]string{"note schema-note:1 /0/functionDeclarations/0/parameters", "error gemini-keyword:1 /0/functionDeclarations/0/parameters/additionalProperties",
				"error gemini-type:1 /0/functionDeclarations/0/parameters/properties/x/type", "error gemini-enum:1 /0/functionDeclarations/0/parameters/properties/y/enum/0"}},
		{"required and forbidden", `[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"string"}},"required":["y"],"additionalProperties":false}}]`, nil,
			[]string{"error required-forbidden:1 /0/parameters/required/0"}},
		{"required and undeclared", `[{"name":"add","parameters":{"type":"object","properties":{"x":{"type":"string"}},"required":["y"]}}]`, nil,
			[]string{"note required-undeclared:1 /0/parameters/required/0"}},
		{"free object", object(`"x":{"type":"object"}`), nil, []string{"warning free-object:1 /0/parameters/properties/x"}},
		{"optional array", object(`"x":{"type":"array","items":{"type":"string"}}`), nil, []string{"warning optional-array:1 /0/parameters/properties/x"}},
		{"enum with spaces", object(`"x":{"enum":["a","b c"]}`), nil, []string{"warning enum-spaces:1 /0/parameters/properties/x"}},
		{"eight properties", object(`"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{}`), nil, []string{"warning many-properties:1 /0/parameters"}},
		{"an enum of another type", object(`"x":{"type":"array","enum":["a","b"]},"y":{"type":["integer","null"],"enum":["1",null]},"z":{"enum":[1]}`), []lint.Provider{lint.Anthropic},
			[]string{"error enum-type:1 /0/parameters/properties/x", "warning optional-array:1 /0/parameters/properties/x"}},
		{"an enum of whole numbers", object(`"x":{"type":"integer","enum":[1.0,2]},"y":{"type":"STRING","enum":["a"]}`), []lint.Provider{lint.OpenAI},
			[]string{"note schema-note:1 /0/parameters"}},
		{"a default outside of its enum", object(`"x":{"type":"string","enum":["a"],"default":"b"},"y":{"enum":["a"],"default":null},"z":{"enum":["a"],"default":"a"}`), nil,
			[]string{"warning default-enum:1 /0/parameters/properties/x/default"}},
		{"nested", object(`"x":{"type":"string"},"deep":{"type":"object","properties":{"y":{"type":"object"}}}`), nil,
			[]string{"warning free-object:1 /0/parameters/properties/deep/properties/y"}},
		{"hosted and custom tools", `[{"type":"web_search"},{"type":"custom","custom":{"name":"x"}},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"edit","description":"edits"},{"name":"add","parameters":` + plain + `}]`, nil, nil},
		{"129 tools", "[" + strings.Repeat(`{"type":"web_search"},`, 3) + manyTools(129) + "]", nil, []string{"error too-many-tools:1 /131"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, check(t, c.text, c.only...))
		})
	}
}

func manyTools(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"type":"function","name":"t%d","parameters":%s}`, i, plain))
	}
	return strings.Join(all, ",")
}

// TestRulesAreDocumented holds that docs/reports/lint.md has every rule that the code has.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reports", "lint.md"))
	require.NoError(t, err)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	rule := regexp.MustCompile(`l\.at\([^"]*"([a-z-]+)"|^\t\{"([a-z-]+)", [a-z]`)
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n") {
			if m := rule.FindStringSubmatch(line); m != nil && !strings.HasSuffix(file, "_test.go") {
				found[m[1]+m[2]] = true
			}
		}
	}
	require.GreaterOrEqual(t, len(found), 24)
	for id := range found {
		require.Contains(t, string(docs), "`"+id+"`")
	}
}

// TestUnreadable holds the error for what holds no tools, with its line.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	good := `{"name":"add","parameters":` + plain + `}`
	for _, c := range []struct {
		name, text, want string
		tools            int
	}{
		{"empty", "", "f:1: cannot be read", 0},
		{"no JSON", "{\n\"tools\": [}\n", "f:2: cannot be read", 0},
		{"no tools", `{"a":1}`, "f: no tools", 0},
		{"only hosted tools", `[{"type":"web_search"}]`, "f: no tools", 0},
		{"a number", `3`, "f: no tools", 0},
		{"not UTF-8", "[{\"name\":\"\xff\"}]", "f:1: cannot be read", 0},
		{"too deep", strings.Repeat("[", 600) + strings.Repeat("]", 600), "f:1: cannot be read", 0},
		{"lines without tools", "{}\n{}\n", "f: no line has tools", 0},
		{"a broken line", good + "\n" + good + "\n{\n", "f:3: cannot be read", 2},
	} {
		tools, err := lint.Read("f", []byte(c.text))
		require.ErrorContains(t, err, c.want, c.name)
		if c.tools == 0 {
			require.Nil(t, tools, c.name)
		} else {
			require.Equal(t, c.tools, tools.Len(), c.name)
		}
	}
	tools, err := lint.Read("f", []byte("\xef\xbb\xbf"+good))
	require.NoError(t, err)
	require.Equal(t, 1, tools.Len())
}

// TestHostile holds that work and findings are bounded.
func TestHostile(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"array","items":`, 400) + `{"type":"array"}` + strings.Repeat("}", 400)
	for name, text := range map[string]string{
		"deep":            `[{"name":"a","parameters":` + deep + `}]`,
		"same names":      "[" + strings.Repeat(`{"name":"a","parameters":{}},`, 20_000) + `{"name":"a"}]`,
		"many properties": `[{"name":"a","parameters":{"type":"object","properties":{` + strings.Repeat(`"x y":{"type":"array"},`, 50_000) + `"z":{}}}}]`,
		"required":        `[{"name":"a","parameters":{"type":"object","properties":{},"required":[` + strings.Repeat(`"q",`, 50_000) + `"q"]}}]`,
		"escapes":         `[{"name":"\u001b[2J\n::error::x","parameters":` + plain + `}]`,
		"lone surrogate":  `[{"name":"\ud800","parameters":` + plain + `}]`,
		"long name":       `[{"name":"` + strings.Repeat("x", 1<<20) + `","parameters":` + plain + `}]`,
	} {
		tools, err := lint.Read("f", []byte(text))
		require.NoError(t, err, name)
		found := tools.Check(nil)
		require.NotEmpty(t, found, name)
		require.LessOrEqual(t, len(found), 10_000, name)
		for _, write := range []func(*bytes.Buffer) error{
			func(b *bytes.Buffer) error { return lint.WriteText(b, found[:1]) },
			func(b *bytes.Buffer) error { return lint.WriteGitHub(b, found[:1]) },
		} {
			var out bytes.Buffer
			require.NoError(t, write(&out))
			require.Equal(t, 1, strings.Count(out.String(), "\n"), name)
			require.NotContains(t, out.String(), "\x1b", name)
			require.Less(t, out.Len(), 5000, name)
		}
	}
}

// TestOwnCalls holds that a user's own calls count instead of the recorded ones.
func TestOwnCalls(t *testing.T) {
	t.Parallel()
	text := `[{"name":"add","parameters":{"type":"object","properties":{"list":{"type":"array","items":{"type":"string"}},"n":{"type":"integer"}},"required":["n"]}}]`
	tools, err := lint.Read("f", []byte(text))
	require.NoError(t, err)
	require.False(t, tools.Count("sub", `{}`))
	require.False(t, tools.Count("add", `{`))
	require.False(t, tools.Count("add", `[]`))
	for i := range 40 {
		args := `{"n":1,"list":["a"]}`
		if i < 3 {
			args = `{"n":"1","list":["a"]}`
		} else if i < 5 {
			args = `{"list":["a"]}`
		}
		require.True(t, tools.Count("add", args))
	}
	var got []string
	for _, f := range tools.Check(nil) {
		got = append(got, f.Rule+" "+f.Pointer+" "+f.Message)
	}
	require.Equal(t, []string{
		"calls-refused /0 the schema refuses 5 of 40 recorded calls (12.5%)",
		`values-refused /0/parameters/properties/n integer: 5 of 40 recorded calls (12.5%) left "n" out or sent what the schema refuses`,
	}, got)
}

// With enough calls of one's own, the recorded ones do not count. A value counts once
// for each call, and is refused if any of its copies in an array is.
func TestOwnCallsOfManyProperties(t *testing.T) {
	t.Parallel()
	text := `[{"name":"add","parameters":{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},
		"list":{"type":"array","items":{"type":"object","properties":{"n":{"type":"integer"}}}}}}}]`
	tools, err := lint.Read("f", []byte(text))
	require.NoError(t, err)
	for range 19 {
		require.True(t, tools.Count("add", `{"list":[]}`))
	}
	require.Equal(t, "many-properties", tools.Check(nil)[0].Rule)
	require.True(t, tools.Count("add", `{"list":[]}`))
	require.Empty(t, tools.Check(nil))
	for range 2 {
		tools.Count("add", `{"list":[{"n":"1"},{"n":2}]}`)
	}
	var rules []string
	for _, f := range tools.Check(nil) {
		rules = append(rules, f.Rule+" "+f.Pointer)
	}
	require.Equal(t, []string{"calls-refused /0", "values-refused /0/parameters/properties/list", "values-refused /0/parameters/properties/list/items/properties/n"}, rules)
}

// TestWriters holds each form of the output.
func TestWriters(t *testing.T) {
	t.Parallel()
	text := "{\"tools\": [\n  {\"name\": \"a.b\", \"parameters\": {\"type\": \"object\",\n    \"properties\": {\"50%\": {\"type\": \"array\"}}}},\n  {\"name\": \"free\"}\n]}\n"
	tools, err := lint.Read("dir/my tools.json", []byte(text))
	require.NoError(t, err)
	found := tools.Check(nil)
	for name, write := range map[string]func(*bytes.Buffer) error{
		"text.txt":    func(b *bytes.Buffer) error { return lint.WriteText(b, found) },
		"lines.jsonl": func(b *bytes.Buffer) error { return lint.WriteJSON(b, found) },
		"github.txt":  func(b *bytes.Buffer) error { return lint.WriteGitHub(b, found) },
		"sarif.json":  func(b *bytes.Buffer) error { return lint.WriteSARIF(b, found) },
	} {
		var out bytes.Buffer
		require.NoError(t, write(&out))
		path := filepath.Join("testdata", name)
		if *clitest.Update {
			require.NoError(t, os.MkdirAll("testdata", 0o755))
			require.NoError(t, os.WriteFile(path, out.Bytes(), 0o600))
		}
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, string(want), out.String(), name)
		if strings.HasSuffix(name, "n") {
			require.True(t, json.Valid(out.Bytes()))
		}
	}
	var many bytes.Buffer
	require.NoError(t, lint.WriteGitHub(&many, slices.Repeat(found, 12)))
	require.Equal(t, 10, strings.Count(many.String(), "::error "))
	require.Equal(t, 12*len(found), strings.Count(many.String(), "\n"))
	var none bytes.Buffer
	require.NoError(t, lint.WriteSARIF(&none, nil))
	require.Contains(t, none.String(), `"results": []`)
}

// TestManyTools holds that time grows with the size of the input.
func TestManyTools(t *testing.T) {
	t.Parallel()
	one := "\n" + `{"name":"a b%d","parameters":{"type":"object","properties":{"x y":{"type":"array"}},"required":["x y","z"]}},`
	var text strings.Builder
	text.WriteString("[")
	for i := range 20_000 {
		fmt.Fprintf(&text, one, i)
	}
	text.WriteString("\n" + `{"name":"last","parameters":{"type":"object"}}]`)
	tools, err := lint.Read("f", []byte(text.String()))
	require.NoError(t, err)
	found := tools.Check(nil)
	require.Len(t, found, 10_000)
	last := found[len(found)-1]
	require.Regexp(t, fmt.Sprintf(`^/%d/`, last.Line-2), last.Pointer)
	for range 20_000 {
		tools.Count("last", `{}`)
	}
}
