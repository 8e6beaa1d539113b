package typeschema_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/typeschema"
)

var allProviders = map[string]typeschema.Provider{"openai strict": typeschema.OpenAIStrict, "anthropic": typeschema.Anthropic,
	"anthropic strict": typeschema.AnthropicStrict, "gemini": typeschema.Gemini}

// refused are the types that a provider's rules have no form for.
var refused = map[typeschema.Provider]mark{typeschema.OpenAIStrict: hasMap | hasAny, typeschema.AnthropicStrict: hasMap | cyclic}

// Every type of the table has a form that the provider takes, or an error that
// says that it has none. What satisfies the full schema satisfies the reduced
// one, with null for what is left out where the provider has no optional
// properties.
func TestReduce(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		for name, p := range allProviders {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				full, err := typeschema.For(s.typ)
				require.NoError(t, err)
				reduced, err := typeschema.Reduce(full, p)
				if s.mark&refused[p] != 0 {
					require.ErrorIs(t, err, typeschema.ErrReduce)
					return
				}
				require.NoError(t, err)
				require.Empty(t, accepts(p, reduced, root(t, reduced)), "%s", reduced)
				again, err := typeschema.Reduce(reduced, p)
				require.NoError(t, err)
				require.Equal(t, string(reduced), string(again))
				sameOrder(t, full, reduced)

				fullRoot, before, after := root(t, full), compile(t, full), compile(t, reduced)
				rapid.Check(t, func(t *rapid.T) {
					text := generator{t: t, root: fullRoot}.value(fullRoot, 4)
					if !validate(t, before, text) {
						return
					}
					if p == typeschema.OpenAIStrict {
						text = fillIn(t, fullRoot, text)
					}
					require.True(t, validate(t, after, text), "%s\n%s", text, reduced)
				})
			})
		}
	}
}

func sameOrder(t *testing.T, full, reduced json.RawMessage) {
	names := func(raw json.RawMessage) (all []string) {
		doc, err := rawjson.Parse(string(raw), rawjson.Limits{})
		require.NoError(t, err)
		for m := range doc.Root().Get("properties").Each() {
			all = append(all, m.Key())
		}
		return all
	}
	require.Equal(t, names(full), names(reduced))
}

// fillIn adds null for every declared property that is absent.
func fillIn(t require.TestingT, fullRoot map[string]any, args string) string {
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	var v any
	require.NoError(t, dec.Decode(&v))
	var fill func(v any, s map[string]any)
	fill = func(v any, s map[string]any) {
		for _, branch := range list(s["anyOf"]) {
			fill(v, branch.(map[string]any)) // null has no properties
		}
		if ref, ok := s["$ref"].(string); ok {
			fill(v, (&checker{root: fullRoot}).target(ref).(map[string]any))
		}
		switch v := v.(type) {
		case []any:
			items, _ := s["items"].(map[string]any)
			for _, e := range v {
				fill(e, items)
			}
		case map[string]any:
			properties, _ := s["properties"].(map[string]any)
			for name, sub := range properties {
				if _, ok := v[name]; !ok {
					v[name] = nil
				}
				fill(v[name], sub.(map[string]any))
			}
		}
	}
	fill(v, fullRoot)
	return text(v)
}

func TestReduceGolden(t *testing.T) {
	t.Parallel()
	type item struct {
		Note string `json:"note,omitempty" jsonschema:"maxLength=10,default=x"`
	}
	type args struct {
		City  string  `json:"city" jsonschema:"enum=a,enum=b"`
		Days  *uint8  `json:"days,omitempty" jsonschema:"minimum=1,description=how many"`
		Item  *item   `json:"item,omitempty"`
		Items [2]item `json:"items" jsonschema_description:"two"`
		Data  []byte  `json:"data"`
	}
	full, err := typeschema.For(reflect.TypeFor[args]())
	require.NoError(t, err)
	noteStrict := `"properties":{"note":{"type":["string","null"],"description":"maxLength: 10, default: \"x\""}},"required":["note"],"additionalProperties":false}`
	note := `"properties":{"note":{"type":"string","description":"maxLength: 10","default":"x"}},"additionalProperties":false}`
	for p, want := range map[typeschema.Provider]string{
		typeschema.OpenAIStrict: `{"type":"object","properties":{"city":{"type":"string","enum":["a","b"]},"days":{"type":["integer","null"],"description":"how many","maximum":255,"minimum":1},` +
			`"item":{"anyOf":[{"$ref":"#/$defs/item"},{"type":"null"}]},"items":{"type":"array","description":"two","items":{"$ref":"#/$defs/item"},"maxItems":2,"minItems":2},` +
			`"data":{"type":"string","description":"base64 with padding"}},"required":["city","days","item","items","data"],"additionalProperties":false,"$defs":{"item":{"type":"object",` + noteStrict + `}}`,
		typeschema.AnthropicStrict: `{"type":"object","properties":{"city":{"type":"string","enum":["a","b"]},"days":{"type":"integer","description":"how many (maximum: 255, minimum: 1)"},` +
			`"item":{"$ref":"#/$defs/item"},"items":{"type":"array","description":"two (maxItems: 2, minItems: 2)","items":{"$ref":"#/$defs/item"}},` +
			`"data":{"type":"string","description":"base64 with padding"}},"required":["city","items","data"],"additionalProperties":false,"$defs":{"item":{"type":"object",` + note + `}}`,
	} {
		got, err := typeschema.Reduce(full, p)
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
}

// Schemas of strangers are reduced by the same rules.
func TestReduceForeign(t *testing.T) {
	t.Parallel()
	const ref = `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://x/y","$ref":"#/definitions/T","definitions":{` +
		`"T":{"type":"object","properties":{"a":{"oneOf":[{"const":1,"type":"integer"},{"type":"null"}]},"b":{"allOf":[{"$ref":"#/definitions/U"}],"description":"of b"}},"required":["a"],"additionalProperties":false},` +
		`"U":{"type":"object","properties":{},"patternProperties":{"^x":{}},"additionalProperties":false},"Unused":{}}}`
	for _, c := range []struct {
		name, schema string
		p            typeschema.Provider
		want         string
	}{
		{"references, openai", ref, typeschema.OpenAIStrict, `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer","const":1},{"type":"null"}]},` +
			`"b":{"description":"of b","anyOf":[{"$ref":"#/$defs/U"},{"type":"null"}]}},"required":["a","b"],"additionalProperties":false,"$defs":{"U":{"type":"object","properties":{},"required":[],"additionalProperties":false}}}`},
		{"references, gemini", ref, typeschema.Gemini, `{"type":"object","properties":{"a":{"anyOf":[{"type":"integer","enum":[1]},{"type":"null"}]},` +
			`"b":{"description":"of b","anyOf":[{"$ref":"#/$defs/U"}]}},"required":["a"],"additionalProperties":false,"$defs":{"U":{"type":"object","properties":{},"additionalProperties":false}}}`},
		{"no type, but properties", `{"properties":{"a":true}}`, typeschema.Anthropic, `{"type":"object","properties":{"a":{}}}`},
		{"open with declared properties", `{"type":"object","properties":{"a":{"type":"string","const":"x"}}}`, typeschema.OpenAIStrict,
			`{"type":"object","properties":{"a":{"type":["string","null"],"enum":["x",null]}},"required":["a"],"additionalProperties":false}`},
		{"references to other places", `{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false},` +
			`"b":{"$ref":"#/properties/a"},"c":{"type":"array","items":{"$ref":"#/properties/a"}},"d":{"$ref":"#/properties/a/properties/x"}},"$defs":{"a":{"type":"null"}}}`, typeschema.Gemini,
			`{"type":"object","properties":{"a":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false},` +
				`"b":{"$ref":"#/$defs/a_2"},"c":{"type":"array","items":{"$ref":"#/$defs/a_2"}},"d":{"$ref":"#/$defs/x"}},` +
				`"$defs":{"a_2":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false},"x":{"type":"string"}}}`},
		{"keywords that a provider does not take", `{"type":"object","properties":{"a":{"type":"string","allOf":[{"minLength":1},{"maxLength":3}],"$comment":"x","x-own":1},` +
			`"b":{"anyOf":[{"type":"string"}],"oneOf":[{"type":"string"}]},"c":{"type":"string","format":"uri"}}}`, typeschema.OpenAIStrict,
			`{"type":"object","properties":{"a":{"type":["string","null"]},"b":{"anyOf":[{"type":"string"},{"type":"null"}]},` +
				`"c":{"type":["string","null"],"description":"format: \"uri\""}},"required":["a","b","c"],"additionalProperties":false}`},
		{"keywords, not strict", `{"type":"object","properties":{"a":{"type":"string","allOf":[{"minLength":1}],"$comment":"x","x-own":1}}}`, typeschema.Anthropic,
			`{"type":"object","properties":{"a":{"type":"string","allOf":[{"minLength":1}],"x-own":1}}}`},
		{"recursive root, gemini", `{"type":"object","properties":{"a":{"$ref":"#"}},"required":["a"]}`, typeschema.Gemini,
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/Root"}},"$defs":{"Root":{"type":"object","properties":{"a":{"$ref":"#/$defs/Root"}}}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := typeschema.Reduce(json.RawMessage(c.schema), c.p)
			require.NoError(t, err)
			require.Equal(t, c.want, string(got))
			require.Empty(t, accepts(c.p, got, root(t, got)))
			_, err = schema.Compile(got, schema.Options{Strict: true})
			require.NoError(t, err)
		})
	}
}

func TestReduceErrors(t *testing.T) {
	t.Parallel()
	object := func(properties string) string { return `{"type":"object","properties":{` + properties + `}}` }
	var many, values []string
	for i := range 5_001 {
		many = append(many, fmt.Sprintf(`"p%d":{"type":"null"}`, i))
		values = append(values, fmt.Sprint(i))
	}
	deep := `{"type":"string"}`
	for range 11 {
		deep = object(`"a":` + deep)
	}
	long := strings.Repeat("x", 120_001)
	for _, c := range []struct{ name, schema, want string }{
		{"not JSON", `{`, "ends"},
		{"not an object", `true`, "not an object"},
		{"root of another type", `{"type":"string"}`, "root"},
		{"anyOf at the root", `{"type":"object","anyOf":[]}`, "anyOf at the root"},
		{"dangling", object(`"a":{"$ref":"#/$defs/x"}`), "#/$defs/x"},
		{"to all definitions", `{"type":"object","properties":{"a":{"$ref":"#/$defs"}},"$defs":{"b":{}}}`, "#/$defs: a reference that leads nowhere"},
		{"outside", object(`"a":{"$ref":"https://x/y"}`), "https://x/y"},
		{"false", object(`"a":false`), "#/properties: false"},
		{"map", object(`"a":{"type":"object","additionalProperties":{"type":"string"}}`), "any name"},
		{"any", object(`"a":{"description":"x"}`), "any type"},
		{"array of anything", object(`"a":{"type":"array"}`), "array of anything"},
		{"too many properties", object(strings.Join(many, ",")), "5001 properties"},
		{"too many values", object(`"a":{"type":"integer","enum":[` + strings.Join(values, ",") + `]}`), "enum values are more"},
		{"names too long", object(`"` + long + `":{"type":"string"}`), "120001 characters"},
		{"too deep", deep, "10 levels"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := typeschema.Reduce(json.RawMessage(c.schema), typeschema.OpenAIStrict)
			require.ErrorIs(t, err, typeschema.ErrReduce)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := typeschema.Reduce(json.RawMessage(`{"type":"object"}`), typeschema.Gemini+1)
	require.ErrorIs(t, err, typeschema.ErrReduce)
}

// No schema makes Reduce panic or not end.
func FuzzReduce(f *testing.F) {
	for _, seed := range []string{`{"type":"object","properties":{"a":{"$ref":"#/properties/b"},"b":{"$ref":"#"}},"required":["a"]}`,
		`{"$ref":"#/definitions/T","definitions":{"T":{"type":"object","properties":{"a":{"oneOf":[{"const":1},true]}}}}}`,
		`{"properties":{"a":{"allOf":[{"type":["string"],"format":"uri","minItems":2}]}},"$defs":{"a":{"$ref":"#/$defs"}}}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range allProviders {
			reduced, err := typeschema.Reduce(json.RawMessage(text), p)
			if err != nil {
				require.ErrorIs(t, err, typeschema.ErrReduce)
				continue
			}
			require.True(t, json.Valid(reduced))
		}
	})
}
