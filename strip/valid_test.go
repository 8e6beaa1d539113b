package strip_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/strip"
)

// generated returns a schema of type, properties, required and items only, and
// a value that it accepts.
func generated(r *rand.Rand, depth int) (schema map[string]any, value any) {
	switch k := r.IntN(6); {
	case depth > 0 && k == 0:
		element, _ := generated(r, depth-1)
		return map[string]any{"type": "array", "items": element}, []any{}
	case depth > 0 && k <= 2:
		props, object, required := map[string]any{}, map[string]any{}, []any{}
		for i := range r.IntN(4) {
			name := fmt.Sprintf("p%d", i)
			s, v := generated(r, depth-1)
			props[name] = s
			if r.IntN(3) == 0 {
				required = append(required, name)
				object[name] = v
			} else if r.IntN(3) > 0 {
				object[name] = v
			}
		}
		if r.IntN(3) == 0 {
			object["undeclared"] = nil
		}
		return map[string]any{"type": "object", "properties": props, "required": required}, object
	case k == 3:
		return map[string]any{"type": []any{"string", "null"}}, nil
	case k == 4:
		return map[string]any{}, map[string]any{}
	}
	return map[string]any{"type": "integer"}, 1
}

// With Optional, what a schema accepts it still accepts afterwards.
func TestValidStaysValid(t *testing.T) {
	t.Parallel()
	changed := 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, v := generated(r, 4)
		if s["type"] != "object" {
			continue
		}
		text, err := json.Marshal(s)
		require.NoError(t, err)
		args, err := json.Marshal(v)
		require.NoError(t, err)
		compiled, err := jsonschema.CompileString("s.json", string(text))
		require.NoError(t, err)
		accepts := func(args string) error {
			var v any
			require.NoError(t, json.Unmarshal([]byte(args), &v))
			return compiled.Validate(v)
		}
		require.NoError(t, accepts(string(args)))
		out, removed := run(t, string(args), string(text), strip.Options{Mode: strip.Optional})
		require.NoError(t, accepts(out), "%s\n%s\n%s", text, args, out)
		if len(removed) > 0 {
			changed++
		}
		_, removed = run(t, string(args), string(text), strip.Options{Mode: strip.WhenInvalid})
		require.Empty(t, removed, "WhenInvalid leaves valid arguments alone: %s %s", text, args)
	}
	require.Greater(t, changed, 100)
}
