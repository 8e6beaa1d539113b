package middlewaretest

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// accepts is a validator of its own for what the generator knows, written
// against the specification and not against the generator.
func accepts(schema map[string]any, v any) bool {
	if options, ok := schema["anyOf"].([]any); ok {
		for _, o := range options {
			if accepts(o.(map[string]any), v) {
				return true
			}
		}
		return false
	}
	if enum, ok := schema["enum"].([]any); ok {
		for _, e := range enum {
			a, _ := json.Marshal(e)
			b, _ := json.Marshal(v)
			if bytes.Equal(a, b) {
				return true
			}
		}
		return false
	}
	within := func(n float64, low, high string) bool {
		l, okL := schema[low].(float64)
		h, okH := schema[high].(float64)
		return (!okL || n >= l) && (!okH || n <= h)
	}
	kind, _ := schema["type"].(string)
	switch v := v.(type) {
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, r := range required {
			if _, ok := v[r.(string)]; !ok {
				return false
			}
		}
		properties, _ := schema["properties"].(map[string]any)
		for k, e := range v {
			if sub, ok := properties[k].(map[string]any); ok && !accepts(sub, e) {
				return false
			}
		}
		return kind == "" || kind == "object"
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, e := range v {
			if items != nil && !accepts(items, e) {
				return false
			}
		}
		return (kind == "" || kind == "array") && within(float64(len(v)), "minItems", "maxItems")
	case float64:
		above, okA := schema["exclusiveMinimum"].(float64)
		under, okU := schema["exclusiveMaximum"].(float64)
		return (kind == "" || kind == "number" || kind == "integer" && v == math.Trunc(v)) && within(v, "minimum", "maximum") &&
			(!okA || v > above) && (!okU || v < under)
	case string:
		return (kind == "" || kind == "string") && within(float64(len([]rune(v))), "minLength", "maxLength")
	case bool:
		return kind == "" || kind == "boolean"
	case nil:
		return kind == "" || kind == "null"
	}
	return false
}

func roomySchema() map[string]any {
	var s map[string]any
	_ = json.Unmarshal(roomy.Parameters, &s)
	return s
}

func TestArgumentsAreValid(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{
		"roomy":      string(roomy.Parameters),
		"no keys":    `{"type":"object","properties":{}}`,
		"empty":      `{}`,
		"bounds":     `{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":5},"b":{"type":"number","minimum":-3,"maximum":-2.5},"c":{"type":"integer","maximum":-7}},"required":["a","b","c"]}`,
		"exclusive":  `{"type":"object","properties":{"a":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},"b":{"type":"integer","exclusiveMinimum":1,"exclusiveMaximum":3}},"required":["a","b"]}`,
		"lengths":    `{"type":"object","properties":{"a":{"type":"string","minLength":30},"b":{"type":"string","maxLength":2},"c":{"type":"array","minItems":3,"maxItems":4,"items":{"type":"boolean"}},"d":{"type":"array","maxItems":0}},"required":["a","b","c","d"]}`,
		"any of":     `{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"},{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}]}},"required":["a"]}`,
		"enums":      `{"type":"object","properties":{"a":{"enum":["x",1,true,null,{"k":[1]}]}},"required":["a"]}`,
		"deep":       `{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{"b":{"type":"array","items":{"type":"string"}}},"required":["b"]}}},"required":["a"]}`,
		"undeclared": `{"type":"object","required":["free"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var schema map[string]any
			require.NoError(t, json.Unmarshal([]byte(parameters), &schema))
			rng := rand.New(rand.NewPCG(1, 2))
			for range 300 {
				text := arguments(rng, json.RawMessage(parameters)).String()
				var v map[string]any
				require.NoError(t, json.Unmarshal([]byte(text), &v), text)
				require.True(t, accepts(schema, v), text)
			}
		})
	}
}

// Schemas come from strangers: whatever stands there, an object comes out, soon.
func TestArgumentsOfOddSchemas(t *testing.T) {
	t.Parallel()
	for name, parameters := range map[string]string{
		"nil":                    "",
		"not JSON":               "{",
		"null":                   "null",
		"true":                   "true",
		"an array":               `{"type":"array"}`,
		"a string":               `{"type":"string"}`,
		"numbers for types":      `{"type":6,"properties":{"a":{"type":1}},"required":["a"]}`,
		"required is a boolean":  `{"type":"object","properties":{"a":{"required":true}},"required":true}`,
		"boolean bound":          `{"type":"object","properties":{"a":{"type":"integer","exclusiveMinimum":true,"minimum":1}},"required":["a"]}`,
		"impossible bounds":      `{"type":"object","properties":{"a":{"type":"integer","minimum":5,"maximum":1},"b":{"type":"number","minimum":5,"maximum":1}},"required":["a","b"]}`,
		"huge bounds":            `{"type":"object","properties":{"a":{"type":"integer","minimum":-1e300,"maximum":1e300},"b":{"type":"number","minimum":1e400}},"required":["a","b"]}`,
		"huge lengths":           `{"type":"object","properties":{"a":{"type":"string","minLength":1e18},"b":{"type":"array","minItems":1e18}},"required":["a","b"]}`,
		"negative lengths":       `{"type":"object","properties":{"a":{"type":"string","maxLength":-1},"b":{"type":"array","maxItems":-1}},"required":["a","b"]}`,
		"boolean schema":         `{"type":"object","properties":{"a":true},"required":["a"]}`,
		"reference":              `{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a~/":{"type":"integer"}},"required":["a~/"]}}}`,
		"reference to itself":    `{"$ref":"#"}`,
		"reference elsewhere":    `{"$ref":"https://example.org/x"}`,
		"grows without end":      `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"$ref":"#"}},"required":["a","b","c"]}`,
		"any of nothing":         `{"anyOf":[],"oneOf":[1]}`,
		"type list":              `{"type":["object","null"],"properties":{"a":{"type":["string","null"]},"b":{"type":[]}},"required":["a","b"]}`,
		"const":                  `{"type":"object","properties":{"a":{"const":[1,"<x>"]}},"required":["a"]}`,
		"long chain of anyOf":    strings.Repeat(`{"anyOf":[`, 200) + `{"type":"object"}` + strings.Repeat(`]}`, 200),
		"properties are a list":  `{"type":"object","properties":[1]}`,
		"items are a list":       `{"type":"object","properties":{"a":{"items":[{"type":"integer"}]}},"required":["a"]}`,
		"type in capital letter": `{"type":"OBJECT","properties":{"a":{"type":"INTEGER"}},"required":["a"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(1, 2))
			for range 50 {
				text := arguments(rng, json.RawMessage(parameters)).String()
				require.True(t, isObject(text), text)
				require.Less(t, len(text), 100_000)
			}
		})
	}
}

func FuzzArguments(f *testing.F) {
	f.Add([]byte(roomy.Parameters), uint64(1))
	f.Add([]byte(`{"anyOf":[{"$ref":"#"}]}`), uint64(2))
	f.Fuzz(func(t *testing.T, parameters []byte, seed uint64) {
		text := arguments(rand.New(rand.NewPCG(seed, 0)), parameters).String()
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(text), &v), "%q", text)
	})
}

// TestReferenceElsewhere: a schema that refers to another document accepts
// anything, so its value is a string and not an object of the root schema.
func TestReferenceElsewhere(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"https://example.org/x"}},"required":["a"]}`)
	for seed := range uint64(10) {
		require.Equal(t, byte('"'), arguments(rand.New(rand.NewPCG(seed, 0)), schema).kids[0].kind)
	}
}

func TestRenderPython(t *testing.T) {
	t.Parallel()
	n := &node{kind: '{', kids: []*node{
		{key: "it's", kind: '"', text: "a\\'b\n"}, {key: "on", kind: 't', text: "true"}, {key: "no", kind: 'n'},
		{key: "list", kind: '[', kids: []*node{{kind: '0', text: "1.5"}}},
	}}
	var b strings.Builder
	n.render(&b, true)
	require.Equal(t, `{'it\'s': 'a\\\'b\n', 'on': True, 'no': None, 'list': [1.5]}`, b.String())
	require.Equal(t, `{"it's": "a\\'b\u000a", "on": true, "no": null, "list": [1.5]}`, n.String())
}
