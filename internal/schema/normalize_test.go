package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Dropping a pattern never makes a schema stricter. Patterns that Go knows
// stand in for those that it does not: what the whole schema accepts must be
// accepted without them.
func TestDroppedPatternsOnlyLoosen(t *testing.T) {
	t.Parallel()
	pretend := func(p string) (pattern, bool) {
		if strings.HasPrefix(p, "^b") {
			return pattern{}, false
		}
		return readPattern(p)
	}
	r := rand.New(rand.NewPCG(1, 2))
	accepted, dropped := 0, 0
	for range 800 {
		text, err := json.Marshal(patternSchema(r, 3))
		require.NoError(t, err)
		whole, err := Compile(text, Options{})
		if err != nil { // a reference to itself
			continue
		}
		loose, err := compileWith(text, Options{}, extras{read: pretend})
		require.NoError(t, err, string(text))
		if len(loose.notes) > 0 {
			dropped++
		}
		for range 12 {
			value := patternValue(r, 3)
			doc, err := rawjson.Parse(value, rawjson.Limits{})
			require.NoError(t, err)
			if len(whole.Validate(doc.Root())) == 0 {
				accepted++
				require.Empty(t, loose.Validate(doc.Root()), "%s\n%s", text, value)
			}
		}
	}
	require.Greater(t, accepted, 600)
	require.Greater(t, dropped, 200)
}

func patternSchema(r *rand.Rand, depth int) any {
	s := map[string]any{}
	sub := func() any {
		switch {
		case r.IntN(8) == 0:
			return map[string]any{"$ref": []string{"#/$defs/x", "#/$defs/y", "#/properties/a", "#a"}[r.IntN(4)]}
		case depth == 0:
			return map[string]any{"pattern": []string{"^a", "^b", "^bb", "b$"}[r.IntN(4)]}
		}
		return patternSchema(r, depth-1)
	}
	for range 1 + r.IntN(3) {
		switch r.IntN(14) {
		case 0:
			s["pattern"] = []string{"^a", "^b", "^bb", "b$"}[r.IntN(4)]
		case 1:
			s["not"] = sub()
		case 2:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 3:
			s["oneOf"] = []any{sub(), sub()}
		case 4:
			s["anyOf"] = []any{sub(), sub()}
		case 5:
			s["allOf"] = []any{sub(), sub()}
		case 6:
			s["contains"], s["maxContains"], s["minContains"] = sub(), 1, r.IntN(2)
		case 7:
			s["patternProperties"] = map[string]any{"^b": sub(), "^a": sub()}
		case 8:
			s["additionalProperties"] = r.IntN(2) == 0
		case 9:
			s["properties"] = map[string]any{"a": sub(), "b": sub()}
		case 10:
			s["unevaluatedProperties"] = false
		case 11:
			s["unevaluatedItems"] = false
		case 12:
			s["dependentSchemas"] = map[string]any{"a": sub()}
		case 13:
			s["propertyNames"] = sub()
		}
	}
	if depth == 3 {
		s["$defs"] = map[string]any{"x": patternSchema(r, 1), "y": patternSchema(r, 0), "z": map[string]any{"$anchor": "a", "pattern": "^b"}}
		if _, ok := s["properties"]; !ok {
			s["properties"] = map[string]any{"a": patternSchema(r, 1)}
		}
	}
	return s
}

func patternValue(r *rand.Rand, depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		return []string{`"a"`, `"ab"`, `"b"`, `"bb"`, `""`, "1"}[r.IntN(6)]
	}
	if r.IntN(3) == 0 {
		return fmt.Sprintf("[%s,%s]", patternValue(r, depth-1), patternValue(r, depth-1))
	}
	keys := []string{"a", "b", "bb", "ab", "c"}
	r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	var members []string
	for _, k := range keys[:r.IntN(3)] {
		members = append(members, fmt.Sprintf("%q:%s", k, patternValue(r, depth-1)))
	}
	return "{" + strings.Join(members, ",") + "}"
}

// What a reference leads to outside of the known keywords is read too.
func TestPatternsBehindReferences(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"$ref":"#/components/x","components":{"x":{"properties":{"a":{"pattern":"(?=a)"}}}}}`,
		`{"$ref":"#/components/0","components":[{"properties":{"a":{"pattern":"(?=a)"}}}]}`,
		`{"$ref":"#/components/a%20b","components":{"a b":{"properties":{"a":{"pattern":"(?=a)"}}}}}`,
	} {
		s, err := Compile([]byte(text), Options{})
		require.NoError(t, err, text)
		require.Len(t, s.Notes(), 1)
		require.Empty(t, first(t, s, `{"a":"b"}`))
	}
	s, err := Compile([]byte(`{"properties":{"format":{"type":"string"},"pattern":{"type":"integer"}},"$defs":{"x":{"$ref":"#/properties"}}}`), Options{})
	require.NoError(t, err)
	require.Equal(t, "type", first(t, s, `{"format":1}`), "a map of schemas is none")
}
