package schema_test

import (
	_ "embed"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/schema/view"
)

// located is the schema of the tests of package view.
//
//go:embed view/testdata/located.json
var located string

func TestUndeclared(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, schema, args string
		want               []string
	}{
		{"through references and lists", located, `{"plan":2,"list":[{"z":1,"zz":2}],"tree":{"all":1,"xx":1}}`, []string{
			`undeclared /plan: this property is not declared; did you mean "plain"?`,
			`undeclared /list/0/zz: this property is not declared`,
			`undeclared /tree/xx: this property is not declared`,
		}},
		{"a map", located, `{"map":{"free":{"y":1,"n":2}}}`, []string{`undeclared /map/free/n: this property is not declared`}},
		{"free-form", `{"type":"object"}`, `{"a":{"b":1}}`, nil},
		{"the schema says", `{"properties":{"a":{}},"additionalProperties":true}`, `{"b":1}`, nil},
		{"patterns", `{"properties":{"a":{}},"patternProperties":{"^x":{}}}`, `{"b":1}`, nil},
		{"below patterns", `{"patternProperties":{"^x":{"properties":{"a":{}}},"y$":{"properties":{"b":{}}}}}`, `{"x":{"a":1,"b":1},"x2":{"b":1},"y":{"a":1,"b":1},"xy":{"a":1,"b":1,"c":1},"z":{"a":1}}`, []string{
			`undeclared /x/b: this property is not declared`, `undeclared /x2/b: this property is not declared`,
			`undeclared /y/a: this property is not declared`, `undeclared /xy/c: this property is not declared`,
		}},
		{"patterns are for names, not for the elements of a list", `{"patternProperties":{"^[0-9]":{"properties":{"a":{}}}}}`, `[{"b":1}]`, nil},
		{"and not if an object had such a name", `{"additionalProperties":{"patternProperties":{"^[0-9]":{"properties":{"a":{}}}}}}`, `{"x":{"0":{"a":1}},"y":[{"b":1}]}`, nil},
		{"conditions", `{"properties":{"k":{}},"if":{"properties":{"i":{}}},"then":{"properties":{"t":{"properties":{"x":{}}}}},"else":{"allOf":[{"properties":{"e":{}}}]},
			"dependentSchemas":{"k":{"properties":{"d":{}}}},"dependencies":{"k":{"properties":{"o":{}}},"i":["k"]}}`,
			`{"k":1,"i":1,"t":{"x":1,"y":2},"e":1,"d":1,"o":1,"z":1}`, []string{
				`undeclared /t/y: this property is not declared`, `undeclared /z: this property is not declared`,
			}},
		{"conditions of a free-form object", `{"then":{"properties":{"t":{}}}}`, `{"z":1}`, nil},
		{"through doubled references", doubled(200), `{"a":{"b":[{}]}}`, nil},
		{"tuple", `{"properties":{"a":{"prefixItems":[{"properties":{"x":{}}}],"items":{"properties":{"y":{}}}}}}`, `{"a":[{"y":1},{"y":1},{"x":1}]}`, []string{
			`undeclared /a/0/y: this property is not declared`, `undeclared /a/2/x: this property is not declared`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			read, err := view.Read([]byte(c.schema))
			require.NoError(t, err)
			require.Equal(t, c.want, texts(schema.Undeclared(read, parse(t, c.args), "undeclared")))
		})
	}
}

// TestNamesOfOnePatternAreOneSchema measures memory, so it is not parallel: code that looks for the schemas of each name
// anew allocates hundreds of times the length of the arguments.
func TestNamesOfOnePatternAreOneSchema(t *testing.T) {
	branches, members := make([]string, 200), make([]string, 2000)
	for i := range branches {
		branches[i] = fmt.Sprintf(`{"properties":{"p%d":{}},"additionalProperties":{"properties":{"a":{}}}}`, i)
	}
	for i := range members {
		members[i] = fmt.Sprintf(`"k%d":{"a":1}`, i)
	}
	read, err := view.Read([]byte(`{"patternProperties":{"^k":{"properties":{"a":{}}}},"anyOf":[` + strings.Join(branches, ",") + `]}`))
	require.NoError(t, err)
	args := "{" + strings.Join(members, ",") + "}"
	instance := parse(t, args)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.Empty(t, schema.OtherCase([]*view.View{read}, instance, false, "code"))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(100*len(args)))
}

func TestOtherCase(t *testing.T) {
	t.Parallel()
	const issue = "code %s: this key differs in letter case only from the declared property %q; send %q instead, once"
	for name, c := range map[string]struct {
		schema, args string
		at, declared string
	}{
		"as declared":                     {`{"properties":{"a":{}}}`, `{"a":1,"b":2}`, "", ""},
		"another case":                    {`{"properties":{"a":{}}}`, `{"a":1,"A":2}`, "/A", "a"},
		"with a rule for others":          {`{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, `{"A":2}`, "/A", "a"},
		"in a map":                        {`{"additionalProperties":{"properties":{"a":{}}}}`, `{"x":{"A":2}}`, "/x/A", "a"},
		"keys of a map":                   {`{"additionalProperties":{"properties":{"a":{}}}}`, `{"x":{"a":2},"X":{"a":1}}`, "", ""},
		"both are declared":               {`{"properties":{"a":{},"A":{}}}`, `{"A":2}`, "", ""},
		"the other by a branch":           {`{"properties":{"a":{}},"if":{},"then":{"properties":{"A":{}}}}`, `{"A":2}`, "", ""},
		"the other is required":           {`{"properties":{"a":{}},"required":["A"]}`, `{"A":2}`, "", ""},
		"by a branch":                     {`{"anyOf":[{"properties":{"b":{}}},{"properties":{"a":{}}}]}`, `{"A":2}`, "/A", "a"},
		"by a pattern":                    {`{"properties":{"a":{}},"patternProperties":{"^\\cA|^[A-Z]$":{}}}`, `{"A":2}`, "", ""},
		"by no pattern":                   {`{"properties":{"a":{}},"patternProperties":{"^[a-z]":{}}}`, `{"A":2}`, "/A", "a"},
		"by a pattern below":              {`{"properties":{"a":{"properties":{"id":{}}}},"patternProperties":{"^a":{"properties":{"ID":{}}}}}`, `{"a":{"ID":5}}`, "", ""},
		"by no pattern below":             {`{"properties":{"a":{"properties":{"id":{}}}},"patternProperties":{"^b":{"properties":{"ID":{}}}}}`, `{"a":{"ID":5}}`, "/a/ID", "id"},
		"unlike a pattern's":              {`{"properties":{"a":{"properties":{"id":{}}}},"patternProperties":{"^a":{"properties":{"No":{}}}}}`, `{"a":{"no":5}}`, "/a/no", "No"},
		"by an unknown pattern below":     {`{"properties":{"a":{"properties":{"id":{}}}},"patternProperties":{"^(?!x)":{"properties":{"ID":{},"No":{}}}}}`, `{"a":{"no":5}}`, "", ""},
		"unlike a pattern's alone":        {`{"patternProperties":{"^a":{"properties":{"No":{}}},"^b":{"properties":{"no":{}}}}}`, `{"b":{"no":1},"a":{"no":5}}`, "/a/no", "No"},
		"an unknown pattern":              {`{"properties":{"a":{}},"patternProperties":{"^(?!x)":{}}}`, `{"A":2}`, "", ""},
		"by the second schema of a value": {`{"allOf":[{"properties":{"a":{"properties":{"id":{}}}}},{"properties":{"a":{"properties":{"ID":{}}}}}]}`, `{"a":{"ID":5}}`, "", ""},
		"by a branch below": {`{"properties":{"v":{"properties":{"id":{}}}},"oneOf":[{"properties":{"k":{"const":1}}},{"properties":{"k":{"const":2},"v":{"properties":{"ID":{}}}}}]}`,
			`{"k":2,"v":{"ID":1}}`, "", ""},
		"by a rule for others below": {`{"anyOf":[{"properties":{"v":{"properties":{"id":{}}}}},{"additionalProperties":{"properties":{"ID":{}}}}]}`, `{"v":{"ID":1}}`, "", ""},
		"by no schema of a value":    {`{"allOf":[{"properties":{"a":{"type":"object"}}},{"properties":{"a":{"properties":{"id":{}}}}}]}`, `{"a":{"ID":5}}`, "/a/ID", "id"},
		"in a recursive schema": {`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"t":{"$ref":"#/$defs/t"}},"allOf":[{"properties":{"t":{"properties":{"id":{}}}}}]}}}`,
			`{"t":{"t":{"t":{"ID":1}}}}`, "/t/t/t/ID", "id"},
		"by the names":                    {`{"properties":{"a":{}},"propertyNames":{"enum":["a","A"]}}`, `{"A":2}`, "", ""},
		"by a branch that does not apply": {`{"anyOf":[{"additionalProperties":{"type":"number"}},{"properties":{"id":{}}}]}`, `{"ID":5}`, "/ID", "id"},
		"below one":                       {`{"anyOf":[{"properties":{"v":{}}},{"properties":{"v":{"properties":{"id":{}}}}}]}`, `{"v":{"ID":5}}`, "/v/ID", "id"},
		"twins":                           {`{"properties":{"a":{}}}`, `{"b":2,"B":1}`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read, err := view.Read([]byte(c.schema))
			require.NoError(t, err)
			var want []string
			if c.at != "" {
				want = []string{fmt.Sprintf(issue, c.at, c.declared, c.declared)}
			}
			require.Equal(t, want, texts(schema.OtherCase([]*view.View{read}, parse(t, c.args), false, "code")))
			compiled, err := schema.Compile([]byte(c.schema), schema.Options{})
			require.NoError(t, err)
			require.False(t, want != nil && compiled.SurelyValid(c.args, rawjson.Limits{}, schema.AllowEmpty, true))
		})
	}
}

// What many schemas say about elements is looked for once, not for each of many
// elements.
func TestUndeclaredInLongLists(t *testing.T) {
	args := parse(t, list(`{"x":1}`, 500_000))
	took := func(branches int) time.Duration {
		read, err := view.Read([]byte(`{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"minItems":1},`, branches) + `{"items":{"properties":{"x":{}}}}]}}}`))
		require.NoError(t, err)
		least := time.Hour
		for range 3 {
			start := time.Now()
			require.Empty(t, schema.Undeclared(read, args, "undeclared"))
			least = min(least, time.Since(start))
		}
		return least
	}
	require.Less(t, took(900), 20*took(1))
}
