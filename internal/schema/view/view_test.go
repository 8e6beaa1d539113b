package view_test

import (
	_ "embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema/view"
)

func read(t *testing.T, text string) *view.View {
	t.Helper()
	v, err := view.Read([]byte(text))
	require.NoError(t, err)
	return v
}

//go:embed testdata/located.json
var located string

func TestAt(t *testing.T) {
	t.Parallel()
	v := read(t, located)
	for pointer, want := range map[string]string{
		"/plain": `{"type": "string"}`, "/all": `{"const": "in allOf"}`, "/ref": `{"properties": {"z": {"const": "in a definition"}}, "required": ["z"]}`,
		"/ref/z": `{"const": "in a definition"}`, "/list/7/z": `{"const": "in a definition"}`,
		"/tuple/0": `{"const": 0}`, "/tuple/1": `{"const": 1}`, "/tuple/2": `{"const": "rest"}`, "/old/0": `{"const": 0}`, "/old/1": `{"const": "rest"}`,
		"/any/x": `{"const": "in anyOf"}`, "/one/z": `{"const": "in a definition"}`, "/map/whatever/y": `{"const": "in a map"}`,
		"/tree/tree/ref/z": `{"const": "in a definition"}`, "/a~1b~0c": `{"const": "escaped"}`, "/none": "", "/plain/x": "", "/list/x": "",
	} {
		require.Equal(t, want, v.At(pointer).Text(), pointer)
	}
	require.Same(t, v.Root(), v.At(""))
	var none *view.View
	require.Nil(t, none.At("/a"))
	require.Empty(t, none.Declared(nil).Names)
	require.Equal(t, view.Any, none.At("/a").Wants())
}

func TestDeclared(t *testing.T) {
	t.Parallel()
	v := read(t, located)
	d := v.Declared(v.Root())
	require.Equal(t, []string{"plain", "ref", "list", "tuple", "old", "any", "one", "map", "tree", "a/b~c", "all"}, d.Names)
	require.Equal(t, []string{"plain", "all"}, d.Required)
	require.Same(t, d, v.Declared(v.Root()), "remembered")
	d = v.Declared(v.At("/one"))
	require.Equal(t, []string{"z"}, d.Names)
	require.Equal(t, []string{"z"}, d.Required)
}

// The types of all branches and references count, in any spelling.
func TestWants(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]view.Kinds{
		`{}`:                         view.Any,
		`{"type":"integer"}`:         view.Integer,
		`{"type":"NUMBER"}`:          view.Number | view.Integer,
		`{"type":["string","null"]}`: view.String | view.Null,
		`{"type":["string","date"]}`: view.Any,
		`{"anyOf":[{"type":"array"},true,{"oneOf":[{"type":"object"}]}]}`: view.Array | view.Object,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"boolean"}}}`:           view.Bool,
	} {
		require.Equal(t, want, read(t, schema).Root().Wants(), schema)
	}
}

// A reference is followed where its meaning is certain.
func TestReferences(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema string
		lost   bool
		names  []string
	}{
		"local":                    {`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{}}}}}`, false, []string{"x"}},
		"beside other keywords":    {`{"$ref":"#/$defs/a","properties":{"y":{}},"$defs":{"a":{"properties":{"x":{}}}}}`, false, []string{"y", "x"}},
		"that hides them, draft 7": {`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/$defs/a","properties":{"y":{}},"$defs":{"a":{"properties":{"x":{}}}}}`, false, []string{"x"}},
		"to nothing":               {`{"$ref":"#/$defs/b","properties":{"y":{}}}`, true, []string{"y"}},
		"to an anchor":             {`{"$ref":"#a","properties":{"y":{}}}`, true, []string{"y"}},
		"out of the document":      {`{"$ref":"http://x/y","properties":{"y":{}}}`, true, []string{"y"}},
		"dynamic":                  {`{"$dynamicRef":"#a","properties":{"y":{}}}`, true, []string{"y"}},
		"below an $id":             {`{"properties":{"o":{"$id":"http://x/o","properties":{"i":{"$ref":"#/$defs/a"}},"$defs":{"a":{"properties":{"z":{}}}}}}}`, false, []string{"o"}},
	} {
		v := read(t, c.schema)
		require.Equal(t, c.lost, v.Root().Lost, name)
		require.Equal(t, c.names, v.Declared(v.Root()).Names, name)
		if o := v.At("/o/i"); name == "below an $id" {
			require.Equal(t, []string{"z"}, v.Declared(o).Names)
		}
	}
}

// A schema that is not a schema is an error; null and booleans declare nothing.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `{`, `5`, `"x"`, `[]`} {
		_, err := view.Read([]byte(text))
		require.Error(t, err, text)
	}
	for _, text := range []string{`null`, `true`, `false`} {
		v := read(t, text)
		require.Nil(t, v.At("/a"))
		require.Empty(t, v.Declared(v.Root()).Names)
	}
	v := read(t, `{"maximum":1e999999}`)
	require.Equal(t, "1e999999", v.Root().Get("maximum").Raw(), "nothing computes with numbers")
}

// References that lead back, or double, end.
func TestLookUpsEnd(t *testing.T) {
	t.Parallel()
	for _, text := range []string{doubled(200), `{"$ref":"#"}`, `{"allOf":[{"$ref":"#"},{"anyOf":[{"$ref":"#/allOf/1"}]}]}`} {
		v := read(t, text)
		v.At("/a/b/c")
		v.Declared(v.Root())
		v.Declares("/a/*/c")
		require.LessOrEqual(t, len(v.Root().Speaking()), 1024)
	}
}

// doubled is a chain of definitions, each of which applies the next one twice.
func doubled(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	return b.String() + fmt.Sprintf(`"d%d":{"required":["x"]}}}`, n)
}
