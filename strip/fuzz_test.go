package strip_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/strip"
)

// fuzzSchema has what FuzzJSON's reference knows: properties, required, items,
// and a reference to itself.
const fuzzSchema = `{
	"type": "object",
	"properties": {
		"a": {"type": "string"}, "r": {"type": "array"},
		"o": {"type": "object", "properties": {"k": {}, "v": {}}, "required": ["v"]},
		"l": {"type": "array", "items": {"$ref": "#"}},
		"n": {"$ref": "#"}, "free": {"type": "object"}
	},
	"required": ["r"]
}`

// reference strips decoded values, by maps: another way to the same end.
func reference(v, schema any, all bool) (out any, empty bool) {
	s, _ := schema.(map[string]any)
	if s["$ref"] != nil {
		s = fuzzRoot
	}
	switch v := v.(type) {
	case nil:
		return nil, true
	case []any:
		kept := []any{}
		for _, e := range v {
			if stripped, gone := reference(e, s["items"], all); !gone || !all {
				kept = append(kept, stripped)
			}
		}
		return kept, len(kept) == 0
	case map[string]any:
		kept := map[string]any{}
		props, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for key, value := range v {
			sub, declared := props[key]
			stripped, gone := reference(value, sub, all)
			stays := !all && !declared
			for _, r := range required {
				stays = stays || !all && r == key
			}
			if !gone || stays {
				kept[key] = stripped
			}
		}
		return kept, len(kept) == 0
	}
	return v, false
}

var fuzzRoot = func() (m map[string]any) {
	if err := json.Unmarshal([]byte(fuzzSchema), &m); err != nil {
		panic(err)
	}
	return m
}()

// FuzzJSON holds JSON to the reference, and checks what maps do not show:
// order, spelling, and that every removal was where it says.
func FuzzJSON(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"a":null,"r":[],"x":null}`, ` { "o":{"k":null,"v":null} , "n":{"n":{"a":{}}}}`, `{"l":[null,{"a":null},[]]}`,
		`{"free":{"a":null},"a":1e2}`, `{"a":null,"a":1}`, `{"n":{"a":null,"a":1},"a":[]}`, `[]`, `{"a":`, `{"\u0061":null,"r":1.0}`,
	} {
		for mode := range byte(5) {
			f.Add(s, mode)
		}
	}
	f.Fuzz(func(t *testing.T, args string, m byte) {
		mode := strip.Mode(m % 5)
		out, removed, err := strip.JSON(args, json.RawMessage(fuzzSchema), mode)
		if err != nil {
			require.Equal(t, args, out)
			require.Empty(t, removed)
			return
		}
		if len(removed) == 0 {
			require.Equal(t, args, out)
		}
		if mode == strip.Off {
			require.Empty(t, removed)
			return
		}
		again, more, err := strip.JSON(out, json.RawMessage(fuzzSchema), mode)
		require.NoError(t, err)
		require.Equal(t, out, again)
		require.Empty(t, more)

		before, err := rawjson.Parse(args, rawjson.Limits{})
		require.NoError(t, err)
		after, err := rawjson.Parse(out, rawjson.Limits{})
		require.NoError(t, err)
		require.True(t, isSubsequence(scalars(after.Root(), nil), scalars(before.Root(), nil)), "order or spelling changed")
		if len(before.Duplicates()) > 0 {
			return
		}
		for _, r := range removed {
			require.Equal(t, r.Value, before.Root().At(r.Pointer).Raw())
		}
		if mode == strip.WhenInvalid {
			return
		}
		var v any
		d := json.NewDecoder(bytes.NewReader([]byte(args)))
		d.UseNumber()
		require.NoError(t, d.Decode(&v))
		want, _ := reference(v, fuzzRoot, mode == strip.All)
		require.Equal(t, want, after.Root().Any())
	})
}

// scalars lists every key and scalar of v as it is written, in text order.
func scalars(v rawjson.Value, into []string) []string {
	if v.IsMember() {
		into = append(into, v.Key()+":")
	}
	if k := v.Kind(); k != rawjson.Object && k != rawjson.Array {
		into = append(into, v.Raw())
	}
	for child := range v.Each() {
		into = scalars(child, into)
	}
	return into
}

func isSubsequence(short, long []string) bool {
	for _, s := range long {
		if len(short) > 0 && short[0] == s {
			short = short[1:]
		}
	}
	return len(short) == 0
}
