package typeschema_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
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

// wideNumbers are past the range of 64 bits, or of float32, which no schema
// says.
var wideNumbers = slices.Concat(hugeNumbers, []string{"9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "1e30"})

// untagged returns a struct type with the same fields, without the keywords in
// their tags.
func untagged(t reflect.Type) reflect.Type {
	fields := reflect.VisibleFields(t)
	for i, f := range fields {
		fields[i].Tag = reflect.StructTag(`json:` + strconv.Quote(f.Tag.Get("json")))
	}
	return reflect.StructOf(fields)
}

// holds reports whether a text satisfies the keywords of s, in Go.
func (s sample) holds(text string) bool {
	from, to := reflect.New(untagged(s.typ)), reflect.New(s.typ)
	if typeschema.Decode(text, from.Interface()) != nil {
		return false
	}
	to.Elem().Set(from.Elem().Convert(s.typ))
	return s.ok(to.Interface())
}

// What satisfies the schema of a type decodes into it, and what decodes
// satisfies it, but for numbers that are wider than the Go type.
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
				err := typeschema.Decode(text, reflect.New(s.typ).Interface())
				satisfies := validate(t, compiled, text)
				if s.ok != nil {
					require.Equal(t, s.holds(text), satisfies, "%s\n%s", text, raw)
				}
				if err != nil {
					require.NotContains(t, err.Error(), "cannot be read", "only by encoding/json: %s", text)
				}
				if satisfies && err != nil {
					require.Regexp(t, `: wanted (an integer from|a number of at most)`, err.Error())
					require.True(t, slices.ContainsFunc(wideNumbers, func(n string) bool { return strings.Contains(text, n) }), text)
					return
				}
				require.Equal(t, satisfies, err == nil, "%s\n%s\n%v", text, raw, err)
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
