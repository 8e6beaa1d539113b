package agentloop_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/internal/schema"
)

type param = agentloop.Param

func TestParameters(t *testing.T) {
	t.Parallel()
	point := []param{{Name: "x", Type: agentloop.NumberParam, Required: true}, {Name: "label", Type: agentloop.StringParam}}
	const pointSchema = `"properties":{"x":{"type":"number"},"label":{"type":"string"}},"required":["x"],"additionalProperties":false}`
	for _, c := range []struct {
		name   string
		params []param
		want   string
	}{
		{"none", nil, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		{"order of declaration", []param{{Name: "b", Type: agentloop.BooleanParam, Required: true}, {Name: "a", Type: agentloop.IntegerParam, Required: true}, {Name: "c", Type: agentloop.StringParam}},
			`{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"integer"},"c":{"type":"string"}},"required":["b","a"],"additionalProperties":false}`},
		{"enums", []param{{Name: "s", Type: agentloop.StringParam, Enum: []any{"a", "b"}, Description: "one of two"}, {Name: "i", Type: agentloop.IntegerParam, Enum: []any{1, 2.0}}, {Name: "n", Type: agentloop.NumberParam, Enum: []any{1.5}}},
			`{"type":"object","properties":{"s":{"type":"string","description":"one of two","enum":["a","b"]},"i":{"type":"integer","enum":[1,2]},"n":{"type":"number","enum":[1.5]}},"required":[],"additionalProperties":false}`},
		{"text that HTML would escape", []param{{Name: "a<b", Type: agentloop.StringParam, Enum: []any{"<&>"}}},
			`{"type":"object","properties":{"a<b":{"type":"string","enum":["<&>"]}},"required":[],"additionalProperties":false}`},
		{"arrays", []param{{Name: "any", Type: agentloop.ArrayParam}, {Name: "names", Type: agentloop.ArrayParam, Item: agentloop.StringParam, Description: "all"}},
			`{"type":"object","properties":{"any":{"type":"array"},"names":{"type":"array","description":"all","items":{"type":"string"}}},"required":[],"additionalProperties":false}`},
		{"objects at every level", []param{{Name: "at", Type: agentloop.ObjectParam, Properties: point, Description: "where"}, {Name: "all", Type: agentloop.ArrayParam, Item: agentloop.ObjectParam, Properties: point}},
			`{"type":"object","properties":{"at":{"type":"object","description":"where",` + pointSchema + `,"all":{"type":"array","items":{"type":"object",` + pointSchema + `}},"required":[],"additionalProperties":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := agentloop.Parameters(c.params...)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			_, err = schema.Compile(got, schema.Options{Strict: true})
			require.NoError(t, err)
		})
	}
}

func TestParametersErrors(t *testing.T) {
	t.Parallel()
	child := []param{{Name: "x", Type: agentloop.StringParam}}
	for _, c := range []struct {
		name string
		p    param
		want string
	}{
		{"no name", param{Type: agentloop.StringParam}, "a name is required"},
		{"no type", param{Name: "a"}, `parameter "a": unknown type ""`},
		{"unknown type", param{Name: "a", Type: "text"}, `unknown type "text"`},
		{"enum of booleans", param{Name: "a", Type: agentloop.BooleanParam, Enum: []any{true}}, "not boolean"},
		{"enum of an array", param{Name: "a", Type: agentloop.ArrayParam, Enum: []any{1}}, "not array"},
		{"enum of an object", param{Name: "a", Type: agentloop.ObjectParam, Enum: []any{1}, Properties: child}, "not object"},
		{"empty enum", param{Name: "a", Type: agentloop.StringParam, Enum: []any{}}, "allows nothing"},
		{"enum value of another type", param{Name: "a", Type: agentloop.StringParam, Enum: []any{1}}, "enum value 1 is not string"},
		{"fraction in an enum of integers", param{Name: "a", Type: agentloop.IntegerParam, Enum: []any{1.5}}, "enum value 1.5 is not integer"},
		{"null in an enum", param{Name: "a", Type: agentloop.NumberParam, Enum: []any{nil}}, "enum value null is not number"},
		{"value that has no JSON form", param{Name: "a", Type: agentloop.NumberParam, Enum: []any{func() {}}}, "enum value"},
		{"value twice", param{Name: "a", Type: agentloop.StringParam, Enum: []any{"x", "x"}}, `duplicate enum value "x"`},
		{"item type of a string", param{Name: "a", Type: agentloop.StringParam, Item: agentloop.StringParam}, "only an array has an item type"},
		{"unknown item type", param{Name: "a", Type: agentloop.ArrayParam, Item: "text"}, `unknown item type "text"`},
		{"object without properties", param{Name: "a", Type: agentloop.ObjectParam}, "an object needs properties"},
		{"array of objects without properties", param{Name: "a", Type: agentloop.ArrayParam, Item: agentloop.ObjectParam}, "an object needs properties"},
		{"properties of a string", param{Name: "a", Type: agentloop.StringParam, Properties: child}, "have properties"},
		{"properties of an array of strings", param{Name: "a", Type: agentloop.ArrayParam, Item: agentloop.StringParam, Properties: child}, "have properties"},
		{"name twice", param{Name: "a", Type: agentloop.ObjectParam, Properties: append(child, child...)}, `parameter "a.x": duplicate name`},
		{"below", param{Name: "a", Type: agentloop.ObjectParam, Properties: []param{{Name: "b"}}}, `parameter "a.b": unknown type`},
		{"below an array", param{Name: "a", Type: agentloop.ArrayParam, Item: agentloop.ObjectParam, Properties: []param{{Name: "b"}}}, `parameter "a.b": unknown type`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := agentloop.Parameters(c.p)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, got)
		})
	}
}

// Properties say that the elements of an array are objects.
func TestArrayWithProperties(t *testing.T) {
	t.Parallel()
	child := []agentloop.Param{{Name: "x", Type: agentloop.NumberParam}}
	want, err := agentloop.Parameters(agentloop.Param{Name: "a", Type: agentloop.ArrayParam, Item: agentloop.ObjectParam, Properties: child})
	require.NoError(t, err)
	got, err := agentloop.Parameters(agentloop.Param{Name: "a", Type: agentloop.ArrayParam, Properties: child})
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

func TestDestructiveTool(t *testing.T) {
	t.Parallel()
	tool := agentloop.RawTool("drop", "", nil, nil)
	require.True(t, tool.Destructive().Def.Destructive)
	require.False(t, tool.Def.Destructive)
}
