package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/schema"
)

// A reference that leads back to its own schema for the same value leaves the
// schema usable where its meaning is certain.
func TestHarmlessLoops(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, valid, invalid string }{
		{"alternative", `{"anyOf":[{"type":"string"},{"$ref":"#"}]}`, `"x"`, `1`},
		{"alternative of a property", `{"properties":{"a":{"$ref":"#/$defs/D"},"b":{"maximum":5}},"$defs":{"D":{"anyOf":[{"$ref":"#/$defs/D"},{"type":"string"}]}}}`,
			`{"a":"x","b":1}`, `{"a":"x","b":9}`},
		{"alternative of an alternative", `{"$ref":"#/$defs/D","$defs":{"D":{"anyOf":[{"type":"string"},{"anyOf":[{"type":"integer"},{"$ref":"#/$defs/D"}]}]}}}`, `1`, `true`},
		{"through a name", `{"$ref":"#/$defs/D","$defs":{"D":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/E"}]},"E":{"title":"E","allOf":[{"$ref":"#/$defs/D"}]}}}`, `"x"`, `1`},
		{"condition", `{"allOf":[{"type":"string"},{"$ref":"#"}]}`, `"x"`, `1`},
		{"only condition", `{"type":"string","allOf":[{"$ref":"#"}]}`, `"x"`, `1`},
		{"reference beside keywords", `{"type":"string","$ref":"#"}`, `"x"`, `1`},
		{"dependent schema", `{"dependentSchemas":{"d":{"$ref":"#"}},"properties":{"a":{"type":"string"}}}`, `{"a":"x","d":1}`, `{"a":1,"d":1}`},
		{"dependent schema that negates", `{"dependentSchemas":{"d":{"not":{"$ref":"#"}}},"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"not defined fails closed", `{"dependentSchemas":{"d":{"not":{"$ref":"#"}}}}`, `{}`, `{"d":1}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"d":{"not":{"$ref":"#"}}},"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":1}`},
		{"other loops stay", `{"properties":{"n":{"$ref":"#"},"v":{"type":"string"}},"anyOf":[{"type":"object"},{"$ref":"#"}]}`, `{"n":{"v":"x"}}`, `{"n":{"v":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Compile([]byte(c.schema), schema.Options{})
			require.NoError(t, err)
			require.Contains(t, s.Notes()[0], "schema refers to itself for the same value")
			require.Empty(t, s.Validate(parse(t, c.valid)))
			issues := s.Validate(parse(t, c.invalid))
			require.NotEmpty(t, issues)
			require.NotEqual(t, "unchecked", issues[0].Code)
			_, err = schema.Compile([]byte(c.schema), schema.Options{Strict: true})
			require.ErrorContains(t, err, "infinite loop")
		})
	}
	for _, text := range []string{
		`{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"}]}`, `{"not":{"$ref":"#"}}`, `{"oneOf":[{"type":"string"},{"$ref":"#"}]}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#","type":"string"}`,
	} {
		_, err := schema.Compile([]byte(text), schema.Options{})
		require.ErrorContains(t, err, "infinite loop", text)
	}
}
