package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

const located = `{
	"properties": {
		"plain": {"type": "string"},
		"ref": {"$ref": "#/$defs/a%20b"},
		"list": {"type": "array", "items": {"$ref": "#/$defs/a%20b"}},
		"tuple": {"prefixItems": [{"const": 0}, {"const": 1}], "items": {"const": "rest"}},
		"old": {"items": [{"const": 0}], "additionalItems": {"const": "rest"}},
		"any": {"anyOf": [{"type": "null"}, {"properties": {"x": {"const": "in anyOf"}}}]},
		"one": {"oneOf": [{"$ref": "#/$defs/a%20b"}]},
		"map": {"additionalProperties": {"properties": {"y": {"const": "in a map"}}}},
		"tree": {"$ref": "#"},
		"a/b~c": {"const": "escaped"}
	},
	"allOf": [{"properties": {"all": {"const": "in allOf"}, "plain": {"const": "later"}}, "required": ["plain", "all"]}],
	"required": ["plain"],
	"$defs": {"a b": {"properties": {"z": {"const": "in a definition"}}, "required": ["z"]}}
}`

func TestLocate(t *testing.T) {
	t.Parallel()
	root := parse(t, located)
	for pointer, want := range map[string]string{
		"/plain": `{"type": "string"}`, "/all": `{"const": "in allOf"}`, "/ref": `{"properties": {"z": {"const": "in a definition"}}, "required": ["z"]}`,
		"/ref/z": `{"const": "in a definition"}`, "/list/7/z": `{"const": "in a definition"}`,
		"/tuple/0": `{"const": 0}`, "/tuple/1": `{"const": 1}`, "/tuple/2": `{"const": "rest"}`, "/old/0": `{"const": 0}`, "/old/1": `{"const": "rest"}`,
		"/any/x": `{"const": "in anyOf"}`, "/one/z": `{"const": "in a definition"}`, "/map/whatever/y": `{"const": "in a map"}`,
		"/tree/tree/ref/z": `{"const": "in a definition"}`, "/a~1b~0c": `{"const": "escaped"}`, "/none": "", "/plain/x": "", "/list/x": "",
	} {
		require.Equal(t, want, schema.Locate(root, pointer).Raw(), pointer)
	}
	require.Equal(t, root, schema.Locate(root, ""))
}

func TestNames(t *testing.T) {
	t.Parallel()
	root := parse(t, located)
	declared, required := schema.Names(root, root)
	require.Equal(t, []string{"plain", "ref", "list", "tuple", "old", "any", "one", "map", "tree", "a/b~c", "all"}, declared)
	require.Equal(t, []string{"plain", "all"}, required)
	declared, required = schema.Names(root, schema.Locate(root, "/one"))
	require.Equal(t, []string{"z"}, declared)
	require.Equal(t, []string{"z"}, required)
}

// References that lead back, or double, end.
func TestLookUpsEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{doubled(200), `{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"anyOf":[{"$ref":"#/allOf/1"}]}]}`} {
		root := parse(t, text)
		schema.Locate(root, "/a/b/c")
		schema.Names(root, root)
		schema.Undeclared(root, parse(t, `{"a":{"b":[{}]}}`), "undeclared")
	}
}

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
		{"conditions", `{"properties":{"k":{}},"if":{"properties":{"i":{}}},"then":{"properties":{"t":{"properties":{"x":{}}}}},"else":{"allOf":[{"properties":{"e":{}}}]},
			"dependentSchemas":{"k":{"properties":{"d":{}}}},"dependencies":{"k":{"properties":{"o":{}}},"i":["k"]}}`,
			`{"k":1,"i":1,"t":{"x":1,"y":2},"e":1,"d":1,"o":1,"z":1}`, []string{
				`undeclared /t/y: this property is not declared`, `undeclared /z: this property is not declared`,
			}},
		{"conditions of a free-form object", `{"then":{"properties":{"t":{}}}}`, `{"z":1}`, nil},
		{"tuple", `{"properties":{"a":{"prefixItems":[{"properties":{"x":{}}}],"items":{"properties":{"y":{}}}}}}`, `{"a":[{"y":1},{"y":1},{"x":1}]}`, []string{
			`undeclared /a/0/y: this property is not declared`, `undeclared /a/2/x: this property is not declared`,
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, texts(schema.Undeclared(parse(t, c.schema), parse(t, c.args), "undeclared")))
		})
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		want string
	}{
		{"file_path", "path"}, {"patern", "pattern"}, {"lim", "limit"}, {"PATH", "path"}, {"query", ""}, {"", ""}, {"x", ""},
	} {
		require.Equal(t, c.want, schema.Suggest(c.name, []string{"path", "pattern", "limit"}), c.name)
	}
	require.Empty(t, schema.Suggest("query", []string{"path"}))
	require.Empty(t, schema.Suggest("name", nil))
	require.Equal(t, "ab", schema.Suggest("ab", []string{"AB", "ab"}[1:]), "the first of equals")
}
