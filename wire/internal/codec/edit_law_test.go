package codec_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

var (
	texts  = rapid.SampledFrom([]string{"1", "1.0", `"a"`, `"a,b]"`, "[ ]", "{ }", `{"a": [1, {"b":2}] }`, "null", "[\n1]"})
	spaces = rapid.SampledFrom([]string{"", "", " ", "\n\t", " \r\n "})
)

// drawList draws a container of items, with white space anywhere.
func drawList(t *rapid.T, open string, items []string, end string) string {
	var b strings.Builder
	b.WriteString(spaces.Draw(t, "before") + open)
	for i, item := range items {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(spaces.Draw(t, "s") + item + spaces.Draw(t, "s"))
	}
	if len(items) == 0 {
		b.WriteString(spaces.Draw(t, "s"))
	}
	return b.String() + end + spaces.Draw(t, "after")
}

// drawWanted draws a list that shares some items with old, as edits of a
// history do: things go, come, change and move.
func drawWanted(t *rapid.T, old []string) []string {
	want := slices.Clone(old)
	for range rapid.IntRange(0, 4).Draw(t, "edits") {
		at := rapid.IntRange(0, len(want)).Draw(t, "at")
		switch op := rapid.IntRange(0, 2).Draw(t, "op"); {
		case op == 0 || at == len(want):
			want = slices.Insert(want, at, texts.Draw(t, "new"))
		case op == 1:
			want = slices.Delete(want, at, at+1)
		default:
			want[at] = texts.Draw(t, "other")
		}
	}
	return want
}

// An edited list has the wanted elements, in the wanted spelling. The text before the first
// change and after the last one has not moved.
func TestSpliceLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		old := rapid.SliceOfN(texts, 0, 6).Draw(t, "old")
		text := drawList(t, "[", old, "]")
		want := drawWanted(t, old)
		array := parse(t, text)
		edits := codec.Splice(array, want)
		got := apply(t, text, edits...)
		require.Equal(t, append([]string{}, want...), raws(parse(t, got)))
		if slices.Equal(old, want) {
			require.Empty(t, edits, "nothing to do")
		}
		if len(want) > len(old) && slices.Equal(old, want[:len(old)]) {
			require.Len(t, edits, 1, "one insertion")
			require.Equal(t, edits[0].Start, edits[0].End)
		}
		start, end := array.Span()
		require.Equal(t, text[:start+1], got[:start+1])
		require.Equal(t, text[end-1:], got[len(got)-(len(text)-end+1):])
	})
}

// member is a member of an object as it is written.
type member struct{ key, raw string }

func membersOf(v rawjson.Value) []member {
	out := []member{}
	for m := range v.Each() {
		out = append(out, member{m.Key(), m.Raw()})
	}
	return out
}

// A patch does what a list of members would, in whatever order it is told, and
// what was not named keeps its bytes.
func TestPatchLaw(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", `"q"`}), 0, 5, rapid.ID[string]).Draw(t, "keys")
		var items []string
		var want []member
		for _, k := range keys {
			m := member{k, texts.Draw(t, "value")}
			want = append(want, m)
			items = append(items, rawjson.Quote(k)+spaces.Draw(t, "s")+":"+spaces.Draw(t, "s")+m.raw)
		}
		text := drawList(t, "{", items, "}")
		object := parse(t, text)
		named := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d", "e", `"q"`}), 0, 4, rapid.ID[string]).Draw(t, "named")
		var members []codec.Member
		for _, k := range named {
			raw := ""
			if rapid.Bool().Draw(t, "set") {
				raw = texts.Draw(t, "raw")
			}
			members = append(members, codec.Member{Key: k, Raw: raw})
			at := slices.IndexFunc(want, func(m member) bool { return m.key == k })
			switch {
			case at < 0 && raw != "":
				want = append(want, member{k, raw})
			case at >= 0 && raw != "":
				want[at].raw = raw
			case at >= 0:
				want = slices.Delete(want, at, at+1)
			}
		}
		edits, err := put(object, members...)
		require.NoError(t, err)
		got := apply(t, text, edits...)
		require.Equal(t, append([]member{}, want...), membersOf(parse(t, got)), got)
		if len(named) == 0 {
			require.Equal(t, text, got)
		}
	})
}
