package rawjson_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestApply(t *testing.T) {
	t.Parallel()
	const text = "0123456789"
	for _, c := range []struct {
		name  string
		edits []rawjson.Edit
		want  string // "" for ErrEdits
	}{
		{"none", nil, text},
		{"one", []rawjson.Edit{{2, 4, "x"}}, "01x456789"},
		{"any order", []rawjson.Edit{{8, 10, ""}, {0, 1, "ab"}, {4, 4, "-"}}, "ab123-4567"},
		{"touching", []rawjson.Edit{{2, 4, "x"}, {4, 6, "y"}}, "01xy6789"},
		{"insertions at the ends", []rawjson.Edit{{10, 10, ">"}, {0, 0, "<"}}, "<0123456789>"},
		{"insertions at one place keep their order", []rawjson.Edit{{5, 5, "a"}, {5, 5, "b"}}, "01234ab56789"},
		{"insertion, then replacement", []rawjson.Edit{{5, 5, "a"}, {5, 6, "b"}}, "01234ab6789"},
		// Regression: this order was refused.
		{"replacement, then insertion", []rawjson.Edit{{5, 6, "b"}, {5, 5, "a"}}, "01234ab6789"},
		{"overlap", []rawjson.Edit{{2, 5, "x"}, {4, 6, "y"}}, ""},
		{"the same span twice", []rawjson.Edit{{2, 5, "x"}, {2, 5, "x"}}, ""},
		{"inside another", []rawjson.Edit{{2, 8, "x"}, {4, 4, "y"}}, ""},
		{"past the end", []rawjson.Edit{{9, 11, "x"}}, ""},
		{"before the start", []rawjson.Edit{{-1, 1, "x"}}, ""},
		{"backwards", []rawjson.Edit{{4, 2, "x"}}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.edits)
			got, err := rawjson.Apply(text, c.edits)
			require.Equal(t, c.want, got)
			if c.want == "" {
				require.ErrorIs(t, err, rawjson.ErrEdits)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, before, c.edits, "the caller's edits stay as they are")
		})
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, cut, want string }{
		{"none", `{ "a":1 , "b":2 }`, "", `{ "a":1 , "b":2 }`},
		{"first", `{ "a":1 , "b":2 }`, "a", `{ "b":2 }`},
		{"last", `{ "a":1 , "b":2 }`, "b", `{ "a":1 }`},
		{"only", `{ "a" : 1 }`, "a", `{  }`},
		{"all", `{ "a":1 , "b":2 , "c":3 }`, "abc", `{  }`},
		{"middle", `{"a":1, "b":2, "c":3}`, "b", `{"a":1, "c":3}`},
		{"ends", `{ "a":1, "b":2, "c":3 }`, "ac", `{ "b":2 }`},
		{"front run", `{"a":1, "b":2, "c":3, "d":4}`, "ab", `{"c":3, "d":4}`},
		{"middle run", `{"a":1, "b":2, "c":3, "d":4}`, "bc", `{"a":1, "d":4}`},
		{"back run", `{"a":1, "b":2, "c":3, "d":4}`, "cd", `{"a":1, "b":2}`},
		{"alternating", `{"a":1,"b":2,"c":3,"d":4,"e":5}`, "bd", `{"a":1,"c":3,"e":5}`},
		{"alternating from the front", `{"a":1,"b":2,"c":3,"d":4,"e":5}`, "ace", `{"b":2,"d":4}`},
		{"duplicates", `{"a":1,"b":2,"a":3}`, "a", `{"b":2}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			edits := parse(t, c.text).Cut(func(m rawjson.Value) bool { return slices.Contains([]byte(c.cut), m.Key()[0]) })
			got, err := rawjson.Apply(c.text, edits)
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

func TestCutElements(t *testing.T) {
	t.Parallel()
	const text = "[ null,\n\t1.0 , [ ], \"x\" ]"
	var asked []string
	edits := parse(t, text).Cut(func(e rawjson.Value) bool {
		asked = append(asked, e.Raw())
		return e.Empty()
	})
	got, err := rawjson.Apply(text, edits)
	require.NoError(t, err)
	require.Equal(t, `[ 1.0, "x" ]`, got)
	require.Equal(t, []string{"null", "1.0", "[ ]", `"x"`}, asked)
}
