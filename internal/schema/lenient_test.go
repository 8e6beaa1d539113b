package schema

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What a schema that is not valid is read as: the same as one that is. All
// notes start with the same words; here is the rest.
func TestLenientReading(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, schema, note, good, bad string }{
		{"exclusiveMinimum true", `{"properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`, "/properties/a/exclusiveMinimum: read as in draft 4", `{"a":0.1}`, `{"a":0}`},
		{"exclusiveMaximum false", `{"properties":{"a":{"maximum":5,"exclusiveMaximum":false}}}`, "/properties/a/exclusiveMaximum: read as in draft 4", `{"a":5}`, `{"a":6}`},
		{"required on a property", `{"properties":{"a":{"required":true},"b":{"required":false}}}`, "/properties/a/required: read as the object's; /properties/b/required: read as the object's", `{"a":1}`, `{"b":1}`},
		{"required at the top", `{"required":true,"properties":{"a":{"type":"string"}}}`, "/required: a boolean at the top read as absent", `{}`, `{"a":1}`},
		{"required twice", `{"required":["a","a","b"]}`, "/required: names said twice read once", `{"a":1,"b":1}`, `{"a":1}`},
		{"null keywords", `{"required":null,"properties":null,"enum":null,"description":null,"items":null,"type":"object"}`,
			"/description: null read as absent; /enum: null read as absent; /items: null read as absent; /properties: null read as absent; /required: null read as absent", `{}`, ``},
		{"type any", `{"properties":{"a":{"type":"any"},"b":{"type":"string"}}}`, "/properties/a/type: any type", `{"a":{}}`, `{"b":1}`},
		{"upper case", `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`, "/type: OBJECT read as object; /properties/a/type: STRING read as string", `{"a":""}`, `{"a":1}`},
		{"Python types", `{"type":"dict","properties":{"a":{"type":"float"},"b":{"type":"tuple"},"c":{"type":"int"}}}`,
			"/type: dict read as object; /properties/a/type: float read as number; /properties/b/type: tuple read as array; /properties/c/type: int read as integer", `{"a":1.5,"b":[],"c":2}`, `{"c":1.5}`},
		{"proto numbers", `{"type":6,"properties":{"a":{"type":3}}}`, "/type: 6 read as object; /properties/a/type: 3 read as integer", `{"a":1}`, `{"a":"1"}`},
		{"null in a list of types", `{"properties":{"a":{"type":["string",null]}}}`, "/properties/a/type: [string <nil>] read as [string null]", `{"a":null}`, `{"a":1}`},
		{"no types", `{"properties":{"a":{"type":[]},"b":{"type":"string"}}}`, "/properties/a/type: [] read as any type", `{"a":1}`, `{"b":1}`},
		{"nullable of OpenAPI", `{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true}}}`,
			"/type: OBJECT read as object; /properties/a/type: STRING read as string; /properties/a/nullable: null is allowed too", `{"a":null}`, `{"a":1}`},
		{"tuple", `{"properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, "/properties/a/items: a list read as prefixItems", `{"a":["x"]}`, `{"a":["x",1]}`},
		{"numbers as text", `{"properties":{"a":{"minLength":"2","maximum":"-1.5"}}}`, "/properties/a/maximum: text read as a number; /properties/a/minLength: text read as a number", `{"a":"ab"}`, `{"a":"a"}`},
		{"booleans as text", `{"additionalProperties":"False","properties":{"a":{"uniqueItems":"true"}}}`, "/additionalProperties: text read as a boolean; /properties/a/uniqueItems: text read as a boolean", `{"a":[1,2]}`, `{"b":1}`},
		{"annotations", `{"title":3,"examples":"x","readOnly":"true","properties":{"a":{"description":["x"],"type":"string"}}}`,
			"/examples: annotation of the wrong type ignored; /readOnly: annotation of the wrong type ignored; /title: annotation of the wrong type ignored; /properties/a/description: annotation of the wrong type ignored", `{"a":""}`, `{"a":1}`},
		{"values said twice", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"enum":["x","x",1]}}}`, "/properties/a/enum: values said twice read once", `{"a":"x"}`, `{"a":"y"}`},
		{"no alternatives", `{"oneOf":[],"anyOf":[],"allOf":[],"required":["a"]}`, "/allOf: an empty list read as absent; /anyOf: an empty list read as absent; /oneOf: an empty list read as absent", `{"a":1}`, `{}`},
		{"a short name of a dialect", `{"$schema":"draft-07","properties":{"a":{"items":[{"type":"string"}]}}}`, "/$schema: read as http://json-schema.org/draft-07/schema#", `{"a":["x"]}`, `{"a":[1]}`},
		{"an empty dialect", `{"$schema":"","properties":{"a":{"type":"string"}}}`, "/$schema: read as absent", `{"a":"x"}`, `{"a":1}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := Compile([]byte(c.schema), Options{Strict: true})
			require.Error(t, err, "strictly it is not valid")
			s, err := Compile([]byte(c.schema), Options{})
			require.NoError(t, err)
			require.Equal(t, []string{"schema is not valid JSON Schema and was read leniently: " + c.note}, s.Notes())
			require.Empty(t, first(t, s, c.good))
			if c.bad != "" {
				require.NotEmpty(t, first(t, s, c.bad))
			}
			require.Equal(t, c.schema, s.View().Root().Text())
		})
	}
}

// What no rule covers is not a schema, whatever else is wrong with it.
func TestNotReadLeniently(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"properties":{"a":{"type":"date"}}}`, `{"properties":{"a":{"type":7}}}`, `{"properties":{"a":{"type":["string","?"]}}}`,
		`{"required":"a"}`, `{"required":[1]}`, `{"required":[null]}`, `{"properties":[]}`, `{"properties":{"a":"string"}}`, `{"properties":{"a":null}}`,
		`{"minLength":"many"}`, `{"minLength":-1}`, `{"enum":"a"}`, `{"additionalProperties":"no"}`, `{"anyOf":{}}`, `{"items":"string"}`,
		`{"properties":{"a":{"items":{"required":true}}}}`, `{"$schema":5}`, `{"$ref":5}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","enum":[]}`,
	} {
		_, err := Compile([]byte(text), Options{})
		require.Error(t, err, text)
	}
}

// In a schema that is valid, a word of another dialect means nothing.
func TestValidSchemasAreReadAsTheyAre(t *testing.T) {
	t.Parallel()
	s, err := Compile([]byte(`{"properties":{"a":{"type":"string","nullable":true,"optional":[]}}}`), Options{})
	require.NoError(t, err)
	require.Empty(t, s.Notes())
	require.Equal(t, "type", first(t, s, `{"a":null}`))
	s, err = Compile([]byte(`{"$schema":"https://json-schema.org/draft/2020-12/schema","title":5,"properties":{"a":{"type":"string","nullable":true}}}`), Options{})
	require.NoError(t, err)
	require.Equal(t, "type", first(t, s, `{"a":null}`), "it says that it is JSON Schema")
}

// TestInDialect: what a schema names is kept unless it is to be replaced.
func TestInDialect(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, kept, replaced string }{
		{`{}`, `{"$schema":"u"}`, `{"$schema":"u"}`},
		{` {"a":1}`, `{"$schema":"u","a":1}`, `{"$schema":"u","a":1}`},
		{`{"a":1, "$schema": "x"}`, `{"a":1, "$schema": "x"}`, `{"a":1, "$schema": "u"}`},
		{`{"$schema":null}`, `{"$schema":null}`, `{"$schema":"u"}`},
		{`true`, `true`, `true`},
		{`{`, `{`, `{`},
	} {
		require.Equal(t, c.kept, string(InDialect([]byte(c.raw), "u", false)))
		require.Equal(t, c.replaced, string(InDialect([]byte(c.raw), "u", true)))
	}
}
