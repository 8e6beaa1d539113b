package typeschema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/typeschema"
)

type param = typeschema.Param

func TestObject(t *testing.T) {
	t.Parallel()
	point := []param{{Name: "x", Type: typeschema.Number, Required: true}, {Name: "label", Type: typeschema.String}}
	const pointSchema = `"properties":{"x":{"type":"number"},"label":{"type":"string"}},"required":["x"],"additionalProperties":false}`
	for _, c := range []struct {
		name   string
		params []param
		want   string
	}{
		{"none", nil, `{"type":"object","properties":{},"required":[],"additionalProperties":false}`},
		{"order of declaration", []param{{Name: "b", Type: typeschema.Boolean, Required: true}, {Name: "a", Type: typeschema.Integer, Required: true}, {Name: "c", Type: typeschema.String}},
			`{"type":"object","properties":{"b":{"type":"boolean"},"a":{"type":"integer"},"c":{"type":"string"}},"required":["b","a"],"additionalProperties":false}`},
		{"enums", []param{{Name: "s", Type: typeschema.String, Enum: []any{"a", "b"}, Description: "one of two"}, {Name: "i", Type: typeschema.Integer, Enum: []any{1, 2.0}}, {Name: "n", Type: typeschema.Number, Enum: []any{1.5}}},
			`{"type":"object","properties":{"s":{"type":"string","description":"one of two","enum":["a","b"]},"i":{"type":"integer","enum":[1,2]},"n":{"type":"number","enum":[1.5]}},"required":[],"additionalProperties":false}`},
		{"arrays", []param{{Name: "any", Type: typeschema.Array}, {Name: "names", Type: typeschema.Array, Item: typeschema.String, Description: "all"}},
			`{"type":"object","properties":{"any":{"type":"array"},"names":{"type":"array","description":"all","items":{"type":"string"}}},"required":[],"additionalProperties":false}`},
		{"objects at every level", []param{{Name: "at", Type: typeschema.ObjectOf, Properties: point, Description: "where"}, {Name: "all", Type: typeschema.Array, Item: typeschema.ObjectOf, Properties: point}},
			`{"type":"object","properties":{"at":{"type":"object","description":"where",` + pointSchema + `,"all":{"type":"array","items":{"type":"object",` + pointSchema + `}},"required":[],"additionalProperties":false}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := typeschema.Object(c.params...)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			compile(t, got)
		})
	}
}

func TestObjectErrors(t *testing.T) {
	t.Parallel()
	child := []param{{Name: "x", Type: typeschema.String}}
	for _, c := range []struct {
		name string
		p    param
		want string
	}{
		{"no name", param{Type: typeschema.String}, "a name is required"},
		{"no type", param{Name: "a"}, `parameter "a": unknown type ""`},
		{"unknown type", param{Name: "a", Type: "text"}, `unknown type "text"`},
		{"enum of booleans", param{Name: "a", Type: typeschema.Boolean, Enum: []any{true}}, "not boolean"},
		{"enum of an array", param{Name: "a", Type: typeschema.Array, Enum: []any{1}}, "not array"},
		{"enum of an object", param{Name: "a", Type: typeschema.ObjectOf, Enum: []any{1}, Properties: child}, "not object"},
		{"empty enum", param{Name: "a", Type: typeschema.String, Enum: []any{}}, "allows nothing"},
		{"enum value of another type", param{Name: "a", Type: typeschema.String, Enum: []any{1}}, "enum value 1 is not string"},
		{"fraction in an enum of integers", param{Name: "a", Type: typeschema.Integer, Enum: []any{1.5}}, "enum value 1.5 is not integer"},
		{"null in an enum", param{Name: "a", Type: typeschema.Number, Enum: []any{nil}}, "enum value null is not number"},
		{"value that has no JSON form", param{Name: "a", Type: typeschema.Number, Enum: []any{func() {}}}, "enum value"},
		{"value twice", param{Name: "a", Type: typeschema.String, Enum: []any{"x", "x"}}, "stands twice"},
		{"item type of a string", param{Name: "a", Type: typeschema.String, Item: typeschema.String}, "only an array has an item type"},
		{"unknown item type", param{Name: "a", Type: typeschema.Array, Item: "text"}, `unknown item type "text"`},
		{"object without properties", param{Name: "a", Type: typeschema.ObjectOf}, "an object needs properties"},
		{"array of objects without properties", param{Name: "a", Type: typeschema.Array, Item: typeschema.ObjectOf}, "an object needs properties"},
		{"properties of a string", param{Name: "a", Type: typeschema.String, Properties: child}, "have properties"},
		{"properties of an array of strings", param{Name: "a", Type: typeschema.Array, Item: typeschema.String, Properties: child}, "have properties"},
		{"name twice", param{Name: "a", Type: typeschema.ObjectOf, Properties: append(child, child...)}, `parameter "a.x": the name stands twice`},
		{"below", param{Name: "a", Type: typeschema.ObjectOf, Properties: []param{{Name: "b"}}}, `parameter "a.b": unknown type`},
		{"below an array", param{Name: "a", Type: typeschema.Array, Item: typeschema.ObjectOf, Properties: []param{{Name: "b"}}}, `parameter "a.b": unknown type`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := typeschema.Object(c.p)
			require.ErrorContains(t, err, c.want)
			require.Nil(t, got)
		})
	}
}
