package typeschema_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/internal/typeschema"
)

// root returns the schema as encoding/json reads it.
func root(t require.TestingT, raw json.RawMessage) map[string]any {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var m map[string]any
	require.NoError(t, dec.Decode(&m))
	return m
}

func compile(t require.TestingT, raw json.RawMessage) *schema.Schema {
	s, err := schema.Compile(raw, schema.Options{Strict: true})
	require.NoError(t, err)
	require.Empty(t, s.Notes())
	return s
}

func validate(t require.TestingT, s *schema.Schema, text string) bool {
	doc, err := rawjson.Parse(text, rawjson.Limits{})
	require.NoError(t, err, text)
	return len(s.Validate(doc.Root())) == 0
}

// What satisfies the schema of a type decodes into it, and what decodes
// satisfies it.
func TestSatisfiesIsDecodes(t *testing.T) {
	t.Parallel()
	require.GreaterOrEqual(t, len(samples), 60)
	for _, s := range samples {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			raw, err := typeschema.For(s.typ)
			require.NoError(t, err)
			compiled, tree := compile(t, raw), root(t, raw)
			rapid.Check(t, func(t *rapid.T) {
				g := generator{t: t, root: tree, misses: rapid.Bool().Draw(t, "misses")}
				text := g.value(tree, 4)
				into := reflect.New(s.typ)
				err := typeschema.Decode(text, into.Interface())
				decodes := err == nil && (s.ok == nil || s.ok(into.Interface()))
				require.Equal(t, validate(t, compiled, text), decodes, "%s\n%s\n%v", text, raw, err)
				if err != nil {
					require.NotContains(t, err.Error(), "cannot be read", "only by encoding/json: %s", text)
				}
			})
		})
	}
}

// Most of what the generator writes satisfies the schema: the property above
// is not empty.
func TestGeneratorHits(t *testing.T) {
	t.Parallel()
	for _, s := range samples {
		raw, err := typeschema.For(s.typ)
		require.NoError(t, err)
		compiled, tree := compile(t, raw), root(t, raw)
		hits := 0
		for seed := range 20 {
			text := rapid.Custom(func(t *rapid.T) string {
				rapid.Bool().Draw(t, "something") // rapid wants a draw, and {} needs none
				return generator{t: t, root: tree}.value(tree, 4)
			}).Example(seed)
			if validate(t, compiled, text) {
				hits++
			}
		}
		require.GreaterOrEqual(t, hits, 10, s.name)
	}
}
