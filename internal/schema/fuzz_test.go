package schema

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Whatever a schema is: a value or an error, never a panic, never for long; and
// the verdicts are v5's.
func FuzzCompile(f *testing.F) {
	f.Add(`{"type":"OBJECT","properties":{"a":{"minimum":0,"exclusiveMinimum":true}}}`, `{"a":1}`)
	f.Add(`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/a/not"}],"not":{"pattern":"(?=a)"}}}}`, `{"a":"b"}`)
	f.Add(`{"$dynamicAnchor":"a","properties":{"x":{"$dynamicRef":"#a"}},"unevaluatedProperties":false}`, `{"x":{"y":1}}`)
	n := 0
	for _, s := range suites {
		eachLine(f, s.file, func(line []byte) {
			var g suiteGroup
			if n++; n%4 == 0 && json.Unmarshal(line, &g) == nil {
				f.Add(string(withDialect(g.Schema, s.dialect)), string(g.Tests[0].Data))
			}
		})
	}
	eachLine(f, "recorded/mcp_schemas.jsonl.gz", func(line []byte) {
		var tool struct{ InputSchema json.RawMessage }
		if n++; n%10 == 0 && json.Unmarshal(line, &tool) == nil {
			f.Add(string(tool.InputSchema), `{}`)
		}
	})
	f.Fuzz(func(t *testing.T, text, args string) {
		const slow = 5 * time.Second // fuzzing shares the machine with itself
		start := time.Now()
		for _, o := range []Options{{}, {Strict: true}, {Formats: true}} {
			s, err := compileChecked([]byte(text), o, extras{})
			require.Equal(t, err == nil, s.Schema != nil)
			if err != nil {
				continue
			}
			agree(t, s, args)
			if doc, err := rawjson.Parse(args, rawjson.Limits{}); err == nil {
				require.Equal(t, s.Validate(doc.Root()), s.Validate(doc.Root()))
				Undeclared(s.View(), doc.Root(), "undeclared")
			}
		}
		require.Less(t, time.Since(start), slow)
	})
}

// Random schemas and values: the verdicts are v5's.
func FuzzEval(f *testing.F) {
	f.Add(uint64(1), `{"a":{"b":[1,"x",null]},"c":1.5}`)
	f.Add(uint64(2), `{"a":["x","x"],"b":{},"c":"a\u0062"}`)
	f.Add(uint64(3), `{"a":1e5,"a":-0.0,"b":[[],[[]]]}`)
	f.Fuzz(func(t *testing.T, seed uint64, text string) {
		checkEval(t, seed, text)
	})
}

func checkEval(t *testing.T, seed uint64, text string) {
	r := rand.New(rand.NewPCG(seed, 0))
	raw, err := json.Marshal(randomSchema(r, 3))
	require.NoError(t, err)
	s, err := compileChecked(raw, Options{Formats: seed%2 == 0}, extras{})
	if err != nil {
		return
	}
	agree(t, s, text)
	for range 8 {
		value := randomValue(r, 3)
		agree(t, s, value)
		agree(t, s, mutate(r, value))
	}
}

// The same, over many seeds, in each run of the tests.
func TestAgreesOnRandomSchemas(t *testing.T) {
	t.Parallel()
	for seed := range uint64(600) {
		checkEval(t, seed, `{"a":1,"b":"x"}`)
	}
}

func randomSchema(r *rand.Rand, depth int) any {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	sub := func() any {
		if depth == 0 {
			return pick(true, map[string]any{"type": "string"}, map[string]any{"type": "integer"}, false)
		}
		return randomSchema(r, depth-1)
	}
	types := []any{"null", "boolean", "integer", "number", "string", "array", "object"}
	s := map[string]any{}
	if depth == 3 {
		s["$defs"] = map[string]any{"x": randomSchema(r, 1)}
	}
	for range 1 + r.IntN(4) {
		switch r.IntN(25) {
		case 0, 1:
			s["type"] = pick(types...)
		case 2:
			s["type"] = []any{"object", pick("null", "string", "array")}
		case 3:
			s["enum"] = []any{pick("a", 1, 1.5, nil, true), pick("b", "ä", 2, []any{}), "x"}
		case 4:
			s["const"] = pick("a", "x", 1, nil, map[string]any{})
		case 5:
			s["minLength"], s["maxLength"] = r.IntN(3), 1+r.IntN(3)
		case 6:
			s["pattern"] = pick("^a", "b$", "^.$")
		case 7:
			s[pick("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum").(string)] = pick(0, 1, 1.5, 0.1, -1, json.Number("9007199254740993"))
		case 8:
			s["multipleOf"] = pick(1, 2, 0.5)
		case 9, 10, 11:
			s["properties"] = map[string]any{"a": sub(), "b": sub(), pick("c", "ä").(string): sub()}
		case 12:
			s["required"] = []any{pick("a", "b", "d")}
		case 13:
			s["additionalProperties"] = pick(false, sub())
		case 14:
			s["items"], s["minItems"] = sub(), r.IntN(2)
		case 15:
			s["prefixItems"], s["maxItems"] = []any{sub(), sub()}, r.IntN(4)
		case 16:
			s["uniqueItems"] = true
		case 17:
			s[pick("anyOf", "oneOf", "allOf").(string)] = []any{sub(), sub()}
		case 18:
			s["$ref"] = pick("#/$defs/x", "#/$defs/x", "#/properties/a")
		case 19:
			s[pick("minProperties", "maxProperties").(string)] = r.IntN(3)
		case 20:
			s[pick("not", "propertyNames").(string)] = sub()
		case 21:
			s["if"], s[pick("then", "else").(string)] = sub(), sub()
		case 22:
			s["contains"], s[pick("minContains", "maxContains").(string)] = sub(), r.IntN(3)
		case 23:
			s[pick("unevaluatedProperties", "unevaluatedItems").(string)] = pick(false, sub())
		case 24:
			s[pick("dependentSchemas", "patternProperties").(string)] = map[string]any{pick("a", "b").(string): sub()}
			s["dependentRequired"] = map[string]any{"a": []any{pick("b", "d")}}
		}
	}
	if r.IntN(12) == 0 {
		s["format"] = pick("date", "email", "uuid", "none")
	}
	return s
}

func randomValue(r *rand.Rand, depth int) string {
	if depth < 3 && (depth == 0 || r.IntN(2) == 0) {
		return []string{`"a"`, `"b"`, `"x"`, `"ä"`, `""`, `"\u0061"`, "0", "1", "2", "1.0", "1.5", "-1", "0.1", "1e0", "9007199254740993", "null", "true", "[]", "{}"}[r.IntN(19)]
	}
	text := ""
	if depth < 3 && r.IntN(2) == 0 {
		for range r.IntN(4) {
			text += "," + randomValue(r, depth-1)
		}
		return "[" + text[min(1, len(text)):] + "]"
	}
	for _, k := range []string{`"a"`, `"b"`, `"c"`, `"\u00e4"`, `"d"`} {
		if r.IntN(2) == 0 {
			text += ", " + k + ": " + randomValue(r, depth-1)
		}
	}
	return "{" + text[min(1, len(text)):] + "}"
}
