package lens_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

func words(s string) []string { return strings.Fields(s) }

// The history was cut at its front: the equal texts that are left are the last
// ones.
func ExampleAlign() {
	fmt.Println(lens.Align(words("call ok 1 call ok 2 call ok 3"), words("call ok 2 call ok 3 new")))
	// Output: [3 4 5 6 7 8 -1]
}

func TestAlign(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		old, now string
		want     []int
	}{
		{"a b", "a b", []int{0, 1}},
		{"a b", "a b a c", []int{0, 1, -1, -1}},
		{"a b", "b a", []int{1, 0}},
		{"a a a", "a a", []int{1, 2}},
		{"a b a", "b a", []int{1, 2}},
		{"x a y a", "y a", []int{2, 3}},
		{"a a b", "c a b", []int{-1, 1, 2}},
		{"x a b a", "x a", []int{0, 1}},
		{"", "a", []int{-1}},
		{"a", "", []int{}},
	} {
		require.Equal(t, c.want, lens.Align(words(c.old), words(c.now)), "%s -> %s", c.old, c.now)
	}
	require.Equal(t, []int{-1, 1}, lens.Align([]string{"", "a"}, []string{"", "a"}))
}

// Each text finds one of its kind as long as there is one, and none is found
// twice.
func TestAlignLaw(t *testing.T) {
	t.Parallel()
	texts := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c", ""}))
	rapid.Check(t, func(t *rapid.T) {
		old, now := texts.Draw(t, "old"), texts.Draw(t, "now")
		at := lens.Align(old, now)
		count := func(list []string, of string) (n int) {
			for _, s := range list {
				if s == of {
					n++
				}
			}
			return n
		}
		seen, found := map[int]bool{}, map[string]int{}
		for i, place := range at {
			if place < 0 {
				continue
			}
			require.Equal(t, now[i], old[place])
			require.False(t, seen[place])
			seen[place] = true
			found[now[i]]++
		}
		for _, text := range []string{"a", "b", "c"} {
			require.Equal(t, min(count(old, text), count(now, text)), found[text])
		}
		require.Zero(t, found[""])
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	part := func(raw string) middleware.Part { return middleware.Part{Native: plain.Native(raw)} }
	call := func(raw string) middleware.ToolCall { return middleware.ToolCall{Native: plain.Native(raw)} }
	m := middleware.Message{
		Parts:     []middleware.Part{{Text: "new"}, part("2")},
		ToolCalls: []middleware.ToolCall{{Name: "new"}, call("1")},
	}
	order := func(from int) (out []string) {
		for _, it := range plain.Order(m, words("1 2 3"), from) {
			out = append(out, fmt.Sprintf("%t%d", it.Second, it.I))
		}
		return out
	}
	require.Equal(t, words("false0 true0 true1 false1"), order(0))
	require.Equal(t, words("false0 false1 true0 true1"), order(math.MaxInt))
}

func message(role middleware.Role, raw, text string) middleware.Message {
	return middleware.Message{Role: role, Parts: []middleware.Part{{Text: text}}, Native: plain.Native(raw)}
}

func TestHistory(t *testing.T) {
	t.Parallel()
	ask := message(middleware.RoleUser, "u", "Go")
	call := message(middleware.RoleAssistant, "c", "")
	one, two := message(middleware.RoleTool, "r", "ok"), message(middleware.RoleTool, "r", "ok")
	later := message(middleware.RoleTool, "s", "no")
	old, groups := []middleware.Message{ask, call, one, two, call, one, later}, []int{0, 1, 2, 2, 3, 4, 4}
	tools := func(begun []middleware.Message, m middleware.Message) bool {
		return begun[0].Role == middleware.RoleTool && m.Role == middleware.RoleTool
	}
	show := func(runs []lens.Run) (out []string) {
		for _, r := range runs {
			out = append(out, fmt.Sprintf("%d:%d:%t", r.Group, len(r.Messages), r.Same))
		}
		return out
	}
	all := []middleware.Message{ask, call, one, two, call, one, later}
	fresh := middleware.Message{Role: middleware.RoleTool}
	asked := all[4]
	asked.Role = middleware.RoleUser
	three := []middleware.Message{one, later, two}
	changed := one
	changed.Parts = []middleware.Part{{Text: "changed"}}
	for name, c := range map[string]struct {
		now  []middleware.Message
		want string
	}{
		"unchanged":           {all, "0:1:true 1:1:true 2:2:true 3:1:true 4:2:true"},
		"cut at its front":    {all[4:], "3:1:true 4:2:true"},
		"the middle is gone":  {slices.Concat(all[:1], all[4:]), "0:1:true 3:1:true 4:2:true"},
		"a result is changed": {slices.Concat(all[:5], []middleware.Message{changed, later}), "0:1:true 1:1:true 2:2:true 3:1:true 4:2:false"},
		"a result is gone":    {all[:6], "0:1:true 1:1:true 2:2:true 3:1:true 4:1:false"},
		"the first is gone":   {slices.Concat(all[:5], all[6:]), "0:1:true 1:1:true 2:2:true 3:1:true 4:1:false"},
		"another role":        {slices.Concat(all[:4], []middleware.Message{asked}), "0:1:true 1:1:true 2:2:true -1:1:false"},
		"a result joins":      {slices.Concat(all[:4], []middleware.Message{fresh}), "0:1:true 1:1:true 2:3:false"},
		"a turn is appended":  {slices.Concat(all, []middleware.Message{call, fresh, fresh}), "0:1:true 1:1:true 2:2:true 3:1:true 4:2:true -1:1:false -1:2:false"},
		"all is new":          {[]middleware.Message{fresh, fresh}, "-1:2:false"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, words(c.want), show(plain.History(old, groups, c.now, tools)))
		})
	}
	require.Equal(t, words("0:2:false"), show(plain.History(three, []int{0, 0, 0}, []middleware.Message{one, two}, tools)), "the one between them is gone")
	require.Equal(t, words("-1:1:false -1:1:false"), show(plain.History(nil, nil, []middleware.Message{fresh, fresh}, nil)))
}
