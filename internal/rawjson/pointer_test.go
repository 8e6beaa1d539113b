package rawjson_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/rawjson"
)

func TestCutPointer(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("k", 5000) + "/last"
	for name, c := range map[string]struct{ pointer, starts, ends string }{
		"whole":           {"/a/b", "/a/b", "/a/b"},
		"just short":      {"/" + strings.Repeat("k", rawjson.MaxPointer-1), "/kkk", "kkk"},
		"start and end":   {long, "/kkk", "kkk/last"},
		"character":       {"/" + strings.Repeat("é", 5000), "/é", "é"},
		"character, odd":  {"//" + strings.Repeat("é", 5000) + "x", "//é", "éx"},
		"escape":          {"/" + strings.Repeat("~0", 5000), "/~0", "~0"},
		"escape, shifted": {"/a" + strings.Repeat("~0", 5000), "/a~0", "~0"},
	} {
		t.Run(name, func(t *testing.T) {
			got := rawjson.CutPointer(c.pointer)
			require.LessOrEqual(t, len(got), rawjson.MaxPointer)
			require.True(t, utf8.ValidString(got))
			require.True(t, strings.HasPrefix(got, c.starts), got)
			require.True(t, strings.HasSuffix(got, c.ends), got)
			require.Equal(t, len(c.pointer) > rawjson.MaxPointer, strings.Contains(got, "…"), "a cut pointer is marked")
			require.NotContains(t, got, "~…")
			require.Equal(t, got, rawjson.CutPointer(got))
		})
	}
}

func TestJoinPointer(t *testing.T) {
	require.Equal(t, "/a/b~1c", rawjson.JoinPointer("/a", "b/c"))
	long := strings.Repeat("k", 1<<20)
	for _, c := range []struct{ parent, key string }{{"/" + long, "x"}, {"", long}, {"/" + long, long}, {"/a", strings.Repeat("~", 5000)}} {
		require.Equal(t, rawjson.CutPointer(c.parent+"/"+rawjson.Escape(c.key)), rawjson.JoinPointer(c.parent, c.key))
	}
	require.LessOrEqual(t, testing.AllocsPerRun(10, func() { rawjson.JoinPointer("/a", long) }), 8.0)
}

// Pointers returns what Value.Pointer returns, in any order.
func TestPointersOfManyValues(t *testing.T) {
	t.Parallel()
	doc, err := rawjson.Parse(`{"a":[1,[2,{"b/c":[3,4]}],5],"d":{"":6}}`, rawjson.Limits{})
	require.NoError(t, err)
	var all []rawjson.Value
	var walk func(v rawjson.Value)
	walk = func(v rawjson.Value) {
		all = append(all, v)
		for c := range v.Each() {
			walk(c)
		}
	}
	walk(doc.Root())
	var forward, backward rawjson.Pointers
	for i, v := range all {
		require.Equal(t, v.Pointer(), forward.Of(v))
		back := all[len(all)-1-i]
		require.Equal(t, back.Pointer(), backward.Of(back))
	}
}

// Many elements of one array take a walk through it, not one each.
func BenchmarkPointers(b *testing.B) {
	for _, n := range []int{10_000, 80_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			doc, err := rawjson.Parse("["+strings.Repeat("1,", n-1)+"1]", rawjson.Limits{})
			require.NoError(b, err)
			for b.Loop() {
				var p rawjson.Pointers
				for v := range doc.Root().Each() {
					p.Of(v)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/value")
		})
	}
}

// Not parallel: AllocsPerRun counts what other tests allocate as well.
func TestAtAllocatesNothing(t *testing.T) {
	doc, err := rawjson.Parse(`{"a":[{"b":1}]}`, rawjson.Limits{})
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(10, func() { doc.Root().At("/a/0/b") }))
}
