package middleware_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

// An adapter adds each piece of a stream as it comes.
func ExampleFragments() {
	type delta struct {
		Index               int
		ID, Name, Arguments string
	}
	stream := []delta{
		{Index: 0, ID: "call_1", Name: "weather"}, {Index: 0, Arguments: `{"city":`},
		{Index: 1, ID: "call_2", Name: "clock", Arguments: "{}"}, {Index: 0, Arguments: `"Oslo"}`},
	}
	var calls middleware.Fragments
	for _, d := range stream {
		calls.AddAt(d.Index, middleware.ToolCall{ID: d.ID, Name: d.Name, Arguments: d.Arguments})
	}
	for _, c := range calls.Calls() {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	// Output:
	// call_1 weather {"city":"Oslo"}
	// call_2 clock {}
}

func TestFragments(t *testing.T) {
	t.Parallel()
	type piece struct {
		at   int // -1: Add
		call middleware.ToolCall
	}
	p := func(at int, id, name, arguments string) piece {
		return piece{at, middleware.ToolCall{ID: id, Name: name, Arguments: arguments}}
	}
	for name, c := range map[string]struct {
		pieces []piece
		want   []string
	}{
		"nothing":                        {nil, nil},
		"by index, interleaved":          {[]piece{p(1, "b", "g", "{"), p(0, "a", "f", "["), p(1, "", "", "}"), p(0, "", "", "]")}, []string{"a f []", "b g {}"}},
		"arguments before the id":        {[]piece{p(0, "", "", "{"), p(0, "a", "f", ""), p(0, "", "", "}")}, []string{"a f {}"}},
		"by id, interleaved":             {[]piece{p(-1, "a", "f", "["), p(-1, "b", "g", "{"), p(-1, "a", "", "]"), p(-1, "b", "", "}")}, []string{"a f []", "b g {}"}},
		"by id, arguments first":         {[]piece{p(-1, "a", "", "["), p(-1, "a", "f", "]")}, []string{"a f []"}},
		"neither: the last call":         {[]piece{p(-1, "a", "f", "["), p(-1, "", "", "]"), p(-1, "", "g", "{"), p(-1, "", "", "}")}, []string{"a f []", " g {}"}},
		"every call is number 0":         {[]piece{p(0, "a", "f", "["), p(0, "", "", "]"), p(0, "b", "g", "{"), p(0, "", "", "}")}, []string{"a f []", "b g {}"}},
		"name and id in each piece":      {[]piece{p(0, "a", "f", "["), p(0, "a", "f", "]")}, []string{"a f []"}},
		"a name in pieces":               {[]piece{p(0, "a", "get_", ""), p(0, "", "weather", "{}")}, []string{"a get_weather {}"}},
		"an id that changes on its way":  {[]piece{p(0, "a", "f", "["), p(0, "x", "", "]")}, []string{"a f []"}},
		"numbers with gaps":              {[]piece{p(7, "b", "g", ""), p(math.MaxInt, "c", "h", ""), p(2, "a", "f", "")}, []string{"a f ", "b g ", "c h "}},
		"begun by number, gone on by id": {[]piece{p(3, "a", "f", "["), p(-1, "a", "", "]"), p(-1, "b", "g", "")}, []string{"a f []", "b g "}},
		"a number past the last":         {[]piece{p(math.MaxInt, "a", "f", ""), p(-1, "b", "g", "{}")}, []string{"a f ", "b g {}"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var f middleware.Fragments
			for _, p := range c.pieces {
				f.AddAt(p.at, p.call)
			}
			var got []string
			for _, c := range f.Calls() {
				got = append(got, c.ID+" "+c.Name+" "+c.Arguments)
			}
			require.Equal(t, c.want, got)
		})
	}
}

// TestFragmentsInAnyOrder: calls that are cut into pieces and interleaved come
// back, whether they are numbered or named by id.
func TestFragmentsInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var want []middleware.ToolCall
		for i := range rapid.IntRange(1, 5).Draw(t, "calls") {
			want = append(want, middleware.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: rapid.StringMatching(`[a-z]{1,4}`).Draw(t, "name"),
				Arguments: rapid.String().Draw(t, "arguments"), Kind: rapid.SampledFrom([]middleware.Kind{middleware.KindFunction, middleware.KindCustom}).Draw(t, "kind")})
		}
		numbered := rapid.Bool().Draw(t, "numbered")
		var f middleware.Fragments
		left := make([]string, len(want))
		for i, c := range want {
			left[i] = c.Arguments
			piece := middleware.ToolCall{ID: c.ID, Name: c.Name, Kind: c.Kind}
			if numbered {
				f.AddAt(i, piece)
			} else {
				f.Add(piece)
			}
		}
		for n := 0; n < 40; n++ {
			i := rapid.IntRange(0, len(want)-1).Draw(t, "next")
			size := rapid.IntRange(0, len(left[i])).Draw(t, "size")
			if n >= 40-len(want) { // the rest
				i = n - (40 - len(want))
				size = len(left[i])
			}
			piece := middleware.ToolCall{Arguments: left[i][:size]}
			left[i] = left[i][size:]
			if numbered {
				f.AddAt(i, piece)
			} else {
				piece.ID = want[i].ID
				f.Add(piece)
			}
		}
		require.Equal(t, want, f.Calls())
	})
}
