package rawjson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWholeMembers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, want string }{
		"whole":                 {`{"a": 1, "b": [2]}`, `{"a": 1, "b": [2]}`},
		"bytes are kept":        {" \n{ \"a\":1.0 ,\t\"\\u0062\" : {\"x\" : 1e1}  , \"c", "{ \"a\":1.0 ,\t\"\\u0062\" : {\"x\" : 1e1}}"},
		"a number may go on":    {`{"a": 1, "b": 3`, `{"a": 1}`},
		"so may a literal":      {`{"a": 1, "b": true`, `{"a": 1}`},
		"a comma behind it":     {`{"a": 1, "b": 3,`, `{"a": 1, "b": 3}`},
		"white space behind it": {`{"a": 1, "b": 3  `, `{"a": 1}`},
		"inside a string":       {`{"a": 1, "b": "Os`, `{"a": 1}`},
		"a closed string":       {`{"a": 1, "b": "Os"`, `{"a": 1}`},
		"inside an object":      {`{"a": 1, "b": {"c": 2, "d": 3}, "e": {"f": 1, `, `{"a": 1, "b": {"c": 2, "d": 3}}`},
		"nothing whole":         {`{"a": [1, 2`, `{}`},
		"only a brace":          {`{`, `{}`},
		"nothing":               {``, `{}`},
		"an array":              {`[{"a": 1}, `, `{}`},
		"text":                  {`"a"`, `{}`},
		"words":                 {`Sure: {"a": 1}`, `{}`},
		"two objects":           {`{"a": 1} {"b": 2}`, `{"a": 1}`},
		"a missing comma":       {`{"a": 1, "b": 2 "c": 3}`, `{"a": 1}`},
		"a broken value":        {`{"a": 1, "b": nope, "c": 3}`, `{"a": 1}`},
		"a bare key":            {`{"a": 1, b: 2}`, `{"a": 1}`},
		"a surplus brace":       {`{"a": {"b": 1}}}`, `{"a": {"b": 1}}`},
		"a repeated key":        {`{"a": 1, "b": 2, "\u0061": 3, "c": 4, `, `{"a": 1, "b": 2}`},
		"not UTF-8":             {"{\"a\": 1, \"b\": \"\xff\"}", `{"a": 1}`},
		"too deep":              {`{"a": 1, "b": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, `{"a": 1}`},
		"past the limit":        {`{"a": 1, "b": "` + strings.Repeat("x", 100) + `", "c": 1, `, `{"a": 1}`},
		"at the limit":          {`{"a": "` + strings.Repeat("x", 54) + `"}`, `{"a": "` + strings.Repeat("x", 54) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := WholeMembers(c.sent, 0, 64)
			require.Equal(t, c.want, got)
			require.LessOrEqual(t, len(got), 64)
		})
	}
}

// An object that is short enough comes back as it is; a broken one does not, and
// is cut where it would be cut otherwise.
func TestWholeObject(t *testing.T) {
	t.Parallel()
	long := ` {"a": "` + strings.Repeat("x", 100) + `", "a": 1} `
	require.Equal(t, long, WholeMembers(long, 200, 64))
	require.Equal(t, "{}", WholeMembers(long, 100, 64))
	require.Equal(t, `{"a": 1}`, WholeMembers(`{"a": 1, "b": "`+strings.Repeat("x", 100)+`", "c": }`, 200, 64))
	require.Equal(t, `{"a": 1}`, WholeMembers(`{"a": 1, "b": "`+strings.Repeat("x", 44)+`"    , "c": }`, 200, 64), "a comma past the limit")
	require.Equal(t, `{}`, WholeMembers(`[1]`, 200, 64))
}

// Of every prefix of an object there is a valid object, made of members of the
// whole, that grows with the prefix.
func TestWholeMembersOfEveryPrefix(t *testing.T) {
	t.Parallel()
	const whole = `{"n": -30.5e2, "s": "a\"},é\ud83d\ude00", "l": [1, {"x": [true, null]}], "o": {"a": {}, "b": "}"}, "z": false}`
	var all map[string]any
	require.NoError(t, json.Unmarshal([]byte(whole), &all))
	last := 0
	for n := range len(whole) + 1 {
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(WholeMembers(whole[:n], 0, 1000)), &got), whole[:n])
		for key, v := range got {
			require.Equal(t, all[key], v, whole[:n])
		}
		require.GreaterOrEqual(t, len(got), last)
		last = len(got)
	}
	require.Equal(t, len(all), last)
}

func FuzzWholeMembers(f *testing.F) {
	for _, s := range []string{`{"a": 1, "b`, `{"a": {"b": 1}, "a": 2}`, `[`, `{"a":1}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := WholeMembers(s, 0, 200)
		doc, err := Parse(got, Limits{})
		require.NoError(t, err)
		require.Equal(t, Object, doc.Root().Kind())
		require.LessOrEqual(t, len(got), 200)
		if got != "{}" {
			require.Contains(t, s, got[:len(got)-1])
		}
	})
}
