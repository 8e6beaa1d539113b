package strip_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/strip"
)

func run(t testing.TB, args, schema string, o strip.Options) (string, []strip.Removal) {
	t.Helper()
	s, err := strip.New(json.RawMessage(schema), o)
	require.NoError(t, err)
	out, removed, err := s.JSON(args)
	require.NoError(t, err)
	again, more, err := s.JSON(out)
	require.NoError(t, err)
	require.Equal(t, out, again, "a second pass changes nothing")
	require.Empty(t, more)
	return out, removed
}

// The strip cases of langchain-tool-args-validation-middleware, restated.
func TestPeerCases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"removes_null_and_empty_containers", `{"a":1,"b":null,"c":{},"d":[]}`, `{"a":1}`},
		{"recurses", `{"x":{"y":null,"z":2},"items":[{"k":null,"v":1}]}`, `{"x":{"z":2},"items":[{"v":1}]}`},
		{"keeps_meaningful_strings_by_default", `{"country":"NA","note":"none"}`, `{"country":"NA","note":"none"}`},
		{"does_not_mutate_input", `{"a":1,"b":null}`, `{"a":1}`},
		{"keeps_falsy_scalars", `{"count":0,"flag":false,"name":""}`, `{"count":0,"flag":false,"name":""}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _ := run(t, c.args, "", strip.Options{Mode: strip.All})
			require.Equal(t, c.want, got)
			got, removed := run(t, c.args, "", strip.Options{}) // without a schema nothing is declared
			require.Equal(t, c.args, got)
			require.Empty(t, removed)
		})
	}
	t.Run("placeholder_strip_is_opt_in", func(t *testing.T) {
		t.Parallel()
		o := strip.Options{Mode: strip.All, Placeholders: strip.DefaultPlaceholders()}
		got, _ := run(t, `{"country":"NA","note":"null"}`, "", o)
		require.Equal(t, `{"country":"NA"}`, got)
	})
}

func TestModeString(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for m := strip.Default; m <= strip.Off+1; m++ {
		require.NotEmpty(t, m.String())
		require.False(t, seen[m.String()])
		seen[m.String()] = true
	}
}

// One test for each known fault of the peer.
func TestFaultsOfThePeer(t *testing.T) {
	t.Parallel()
	placeholders := strip.DefaultPlaceholders()
	for _, c := range []struct {
		name, args, schema string
		o                  strip.Options
		want               string
	}{
		{"required empties stay", `{"tags":[],"note":null}`,
			`{"properties":{"tags":{"type":"array"},"note":{"type":["string","null"]}},"required":["tags","note"]}`,
			strip.Options{}, `{"tags":[],"note":null}`},
		{"innermost first", `{"a":1,"x":{"y":null}}`, ``, strip.Options{Mode: strip.All}, `{"a":1}`},
		{"innermost first, by schema", `{"a":1,"x":{"y":null}}`,
			`{"properties":{"a":{},"x":{"properties":{"y":{}}}}}`, strip.Options{}, `{"a":1}`},
		{"elements keep their places", `{"a":[1,null,3]}`,
			`{"properties":{"a":{"items":{"type":["integer","null"]}}}}`, strip.Options{}, `{"a":[1,null,3]}`},
		{"free-form objects stay", `{"patch":{"title":null}}`,
			`{"properties":{"patch":{"type":"object"}}}`, strip.Options{}, `{"patch":{"title":null}}`},
		{"what is accepted may stay", `{"a":null,"b":null}`,
			`{"properties":{"a":{"type":["string","null"]},"b":{"type":"string"}}}`,
			strip.Options{Mode: strip.WhenInvalid}, `{"a":null}`},
		{"both sides are folded", `{"a":" n/a ","b":"x"}`, `{"properties":{"a":{},"b":{}}}`,
			strip.Options{Placeholders: []string{"N/A"}}, `{"b":"x"}`},
		{"legal values stay", `{"a":"none","b":"none","c":["none"]}`,
			`{"properties":{"a":{"enum":["none","all"]},"b":{"const":"none"},"c":{"items":{"type":"string"}}}}`,
			strip.Options{Placeholders: placeholders}, `{"a":"none","b":"none","c":["none"]}`},
		{"rules may see what was sent", `{"a":[]}`, `{"properties":{"a":{}}}`, strip.Options{Mode: strip.Off}, `{"a":[]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _ := run(t, c.args, c.schema, c.o)
			require.Equal(t, c.want, got)
		})
	}
	t.Run("removals are reported", func(t *testing.T) {
		t.Parallel()
		_, removed := run(t, `{"a~/b":null,"l":[0,{"k":[ ],"x":1}],"x":{"y":{ "z":null}}}`, ``, strip.Options{Mode: strip.All})
		require.Equal(t, []strip.Removal{
			{Pointer: "/a~0~1b", Value: "null"}, {Pointer: "/l/1/k", Value: "[ ]"}, {Pointer: "/x", Value: `{"y":{ "z":null}}`},
		}, removed)
	})
	t.Run("depth is limited", func(t *testing.T) {
		t.Parallel()
		args := `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`
		got, removed, err := strip.JSON(args, nil, strip.All)
		require.ErrorIs(t, err, strip.ErrNotObject)
		require.Equal(t, args, got)
		require.Empty(t, removed)
	})
}

// What a schema declares and requires, beyond the plain case.
func TestSchemas(t *testing.T) {
	t.Parallel()
	const a = `{"a":null}`
	inA := func(s string) string { return `{"properties":{"a":{}},` + s + `}` }
	for _, c := range []struct{ name, args, schema, want string }{
		{"declared", a, `{"properties":{"a":{}}}`, `{}`},
		{"undeclared", a, `{"properties":{"b":{}}}`, a},
		{"boolean", a, `true`, a},
		{"additional", a, `{"additionalProperties":{"type":"string"}}`, a},
		{"pattern", a, `{"patternProperties":{"a":{"type":"string"}}}`, a},
		{"behind a $ref", a, `{"$ref":"#/$defs/x","$defs":{"x":{"properties":{"a":{}}}}}`, `{}`},
		{"behind a $ref with escapes", a, `{"$ref":"#/$defs/x%20~1y","$defs":{"x /y":{"properties":{"a":{}}}}}`, `{}`},
		{"in allOf", a, `{"allOf":[{"properties":{"b":{}}},{"properties":{"a":{}}}]}`, `{}`},
		{"required in allOf", a, inA(`"allOf":[{"required":["a"]}]`), a},
		{"required in anyOf", a, inA(`"anyOf":[{"required":["b"]},{"required":["a"]}]`), a},
		{"required in oneOf", a, inA(`"oneOf":[{"required":["b"]},{"required":["a"]}]`), a},
		{"required in then", a, inA(`"if":{},"then":{"required":["a"]}`), a},
		{"required by another", a, inA(`"dependentRequired":{"b":["a"]}`), a},
		{"required by another, draft 7", a, inA(`"dependencies":{"b":["a"]}`), a},
		{"requires another", a, inA(`"dependentRequired":{"a":["b"]}`), `{}`},
		{"counted", a, inA(`"minProperties":1`), a},
		{"not counted", a, inA(`"minProperties":0`), `{}`},
		{"behind a cyclic $ref", a, `{"$ref":"#/$defs/x","$defs":{"x":{"$ref":"#/$defs/y"},"y":{"$ref":"#/$defs/x"}}}`, a},
		{"recursive", `{"v":1,"next":{"v":null,"next":{"v":1,"next":null}}}`,
			`{"properties":{"v":{},"next":{"$ref":"#"}}}`, `{"v":1,"next":{"next":{"v":1}}}`},
		{"nullable object", `{"o":{"k":null,"v":1}}`,
			`{"properties":{"o":{"anyOf":[{"type":"object","properties":{"k":{},"v":{}}},{"type":"null"}]}}}`, `{"o":{"v":1}}`},
		{"several objects", `{"o":{"k":null}}`,
			`{"properties":{"o":{"anyOf":[{"properties":{"k":{}}},{"properties":{"k":{},"l":{}}}]}}}`, `{"o":{"k":null}}`},
		{"the property of several objects", `{"o":{}}`,
			`{"properties":{"o":{"anyOf":[{"properties":{"k":{}}},{"properties":{"k":{},"l":{}}}]}}}`, `{}`},
		{"objects in arrays", `{"l":[{"k":null},{"k":1}]}`,
			`{"properties":{"l":{"items":{"properties":{"k":{}}}}}}`, `{"l":[{},{"k":1}]}`},
		{"tuples", `{"l":[{"k":null},{"k":null},{"k":null}]}`,
			`{"properties":{"l":{"prefixItems":[{},{"properties":{"k":{}}}],"items":false}}}`, `{"l":[{"k":null},{},{"k":null}]}`},
		{"tuples, draft 7", `{"l":[{"k":null},{"k":null}]}`,
			`{"properties":{"l":{"items":[{"properties":{"k":{}}}]}}}`, `{"l":[{},{"k":null}]}`},
		{"required stays, its insides do not", `{"o":{"k":null}}`,
			`{"properties":{"o":{"properties":{"k":{}}}},"required":["o"]}`, `{"o":{}}`},
		{"duplicate keys", `{"a":null,"a":1,"b":null}`, `{"properties":{"a":{},"b":{}}}`, `{"a":null,"a":1,"b":null}`},
		{"spelling and order", `{ "z":9007199254740993 , "a" : null, "m":1.0,"k":1e2 }`, `{"properties":{"a":{}}}`,
			`{ "z":9007199254740993, "m":1.0,"k":1e2 }`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, _ := run(t, c.args, c.schema, strip.Options{})
			require.Equal(t, c.want, got)
		})
	}
}

func TestWhenInvalid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, value, schema string
		goes                bool
	}{
		{"type", "null", `{"type":"string"}`, true},
		{"types", "null", `{"type":["string","null"]}`, false},
		{"nullable", "null", `{"type":"string","nullable":true}`, false},
		{"enum", "null", `{"enum":["a"]}`, true},
		{"enum with null", "null", `{"enum":["a",null]}`, false},
		{"const", "[]", `{"const":1}`, true},
		{"const, spelled apart", "{ }", `{"const":{}}`, false},
		{"minItems", "[]", `{"type":"array","minItems":1}`, true},
		{"minItems 0.0", "[]", `{"type":"array","minItems":0.0}`, false},
		{"minProperties", "{}", `{"minProperties":1}`, true},
		{"every branch", "null", `{"anyOf":[{"type":"string"},{"type":"integer"}]}`, true},
		{"one branch", "null", `{"oneOf":[{"type":"string"},{"type":"null"}]}`, false},
		{"allOf", "null", `{"allOf":[{},{"type":"string"}]}`, true},
		{"$ref", "[]", `{"$ref":"#/$defs/s"}`, true},
		{"emptied, then refused", `{"x":null}`, `{"type":"object","minProperties":1,"properties":{"x":{"type":"string"}}}`, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			args := `{"a":` + c.value + `}`
			got, _ := run(t, args, `{"properties":{"a":`+c.schema+`},"$defs":{"s":{"type":"string"}}}`,
				strip.Options{Mode: strip.WhenInvalid})
			require.Equal(t, c.goes, got == `{}`, got)
		})
	}
}

func TestArgumentsThatAreNoObject(t *testing.T) {
	t.Parallel()
	for _, args := range []string{``, `null`, `[1]`, `"x"`, `{"a":`, `{} {}`, "{\"a\":\"\xff\"}"} {
		got, removed, err := strip.JSON(args, nil, strip.All)
		require.ErrorIs(t, err, strip.ErrNotObject, args)
		require.Equal(t, args, got)
		require.Empty(t, removed)
	}
	_, err := strip.New(json.RawMessage(`{"a":`), strip.Options{})
	require.Error(t, err)
}

// Schemas come from strangers: each of these is quick.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	double := func(word string, n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"d%d":{"%s":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, word, i+1, i+1)
		}
		return fmt.Sprintf(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{%s"d%d":{"properties":{"a":{"type":"string"}}}}}`, b.String(), n)
	}
	for _, word := range []string{"allOf", "anyOf", "oneOf"} {
		for _, mode := range []strip.Mode{strip.Optional, strip.WhenInvalid} {
			t.Run(word+" "+mode.String(), func(t *testing.T) {
				t.Parallel()
				_, _, err := strip.JSON(`{"a":{"a":{"a":null}}}`, json.RawMessage(double(word, 30)), mode)
				require.NoError(t, err)
			})
		}
	}
	_, err := strip.New(json.RawMessage(strings.Repeat(`{"not":`, 129)+"{}"+strings.Repeat("}", 129)), strip.Options{})
	require.Error(t, err)
	_, err = strip.New(json.RawMessage(`{"title":"`+strings.Repeat("x", 1<<20)+`"}`), strip.Options{})
	require.Error(t, err)
}

func TestNothingToStripSharesTheText(t *testing.T) {
	t.Parallel()
	args := `{"a": 1, "b": {"c": "x"}}`
	got, removed := run(t, args, `{"properties":{"a":{},"b":{"properties":{"c":{}}}}}`, strip.Options{})
	require.Same(t, unsafe.StringData(args), unsafe.StringData(got))
	require.Nil(t, removed)
}

// A value that any branch lists is legal, whatever is around the list.
func TestPlaceholdersInUnions(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"anyOf":[{"enum":["none","low"],"type":"string"},{"type":"null"}]}`,
		`{"anyOf":[{"$ref":"#/$defs/e"},{"type":"null"}]}`,
		`{"oneOf":[{"const":"none"},{"const":"low"}]}`,
		`{"allOf":[{"oneOf":[{"const":"none"},{"type":"null"}]}]}`,
	} {
		for _, mode := range []strip.Mode{strip.Optional, strip.WhenInvalid} {
			got, _ := run(t, `{"level":"none"}`, `{"properties":{"level":`+schema+`},"$defs":{"e":{"enum":["none","low"]}}}`,
				strip.Options{Mode: mode, Placeholders: strip.DefaultPlaceholders()})
			require.Equal(t, `{"level":"none"}`, got, "%s %v", schema, mode)
			if mode == strip.Optional {
				got, _ = run(t, `{"level":"null"}`, `{"properties":{"level":`+schema+`},"$defs":{"e":{"enum":["none","low"]}}}`,
					strip.Options{Mode: mode, Placeholders: strip.DefaultPlaceholders()})
				require.Equal(t, `{}`, got, "%s: not listed", schema)
			}
		}
	}
}
