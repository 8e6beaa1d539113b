package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

func TestSplice(t *testing.T) {
	t.Parallel()
	a, b, b2, nosuch := call("1", "a", "A"), call("2", "b", "bad"), call("3", "b", "bad"), call("4", "nosuch", "bad")
	fix := func(name, args string) middleware.ToolCall { return call("new", name, args) }
	for name, c := range map[string]struct {
		kept  []middleware.ToolCall
		v     []middleware.Verdict
		fixed []middleware.ToolCall
		want  []middleware.ToolCall // nil: it does not fit
		at    []int
	}{
		"one":      {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("b", "B")}, []middleware.ToolCall{a, call("2", "b", "B")}, []int{1}},
		"in order": {[]middleware.ToolCall{b, a, b2}, []middleware.Verdict{invalid(b), valid(a), invalid(b2)}, []middleware.ToolCall{fix("b", "B"), fix("b", "B2")}, []middleware.ToolCall{call("2", "b", "B"), a, call("3", "b", "B2")}, []int{0, 2}},
		"by name":  {[]middleware.ToolCall{a, b}, []middleware.Verdict{invalid(a), invalid(b)}, []middleware.ToolCall{fix("b", "B"), fix("a", "A2")}, []middleware.ToolCall{call("1", "a", "A2"), call("2", "b", "B")}, []int{1, 0}},
		"an unknown tool gets another name": {[]middleware.ToolCall{nosuch, b}, []middleware.Verdict{unknown(nosuch), invalid(b)}, []middleware.ToolCall{fix("a", "A"), fix("b", "B")},
			[]middleware.ToolCall{call("4", "a", "A"), call("2", "b", "B")}, []int{0, 1}},
		"a known one does not":           {[]middleware.ToolCall{b}, []middleware.Verdict{invalid(b)}, []middleware.ToolCall{fix("a", "A")}, nil, nil},
		"too many":                       {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("a", "A2"), fix("b", "B")}, nil, nil},
		"some of them":                   {[]middleware.ToolCall{b, b2}, []middleware.Verdict{invalid(b), invalid(b2)}, []middleware.ToolCall{fix("b", "B")}, []middleware.ToolCall{call("2", "b", "B"), b2}, []int{0}},
		"by id first":                    {[]middleware.ToolCall{b, b2}, []middleware.Verdict{invalid(b), invalid(b2)}, []middleware.ToolCall{call("3", "b", "B3"), call("2", "b", "B2")}, []middleware.ToolCall{call("2", "b", "B2"), call("3", "b", "B3")}, []int{1, 0}},
		"a held one again":               {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("a", "A"), fix("b", "B")}, []middleware.ToolCall{a, call("2", "b", "B")}, []int{-1, 1}},
		"a held one is no correction":    {[]middleware.ToolCall{b, b2}, []middleware.Verdict{valid(b), invalid(b2)}, []middleware.ToolCall{fix("b", "bad")}, []middleware.ToolCall{b, b2}, []int{-1}},
		"none":                           {[]middleware.ToolCall{b}, []middleware.Verdict{invalid(b)}, nil, nil, nil},
		"a held one instead":             {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("a", "A2")}, nil, nil},
		"nothing was broken":             {[]middleware.ToolCall{a}, []middleware.Verdict{valid(a)}, []middleware.ToolCall{fix("a", "A")}, nil, nil},
		"verdicts of some other message": {[]middleware.ToolCall{a, b}, []middleware.Verdict{invalid(b)}, []middleware.ToolCall{fix("b", "B")}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, fixed := middleware.Assistant("text", c.kept...), middleware.Assistant("other", c.fixed...)
			kept.Native = &middleware.Native{Dialect: "d", Raw: "r"}
			for i := range kept.ToolCalls {
				kept.ToolCalls[i].Native = kept.Native
			}
			before, fixedBefore := kept.Clone(), fixed.Clone()
			spliced, at, ok := batch.Splice(kept, fixed, c.v)
			require.Equal(t, before, kept)
			require.Equal(t, fixedBefore, fixed)
			require.Equal(t, c.want != nil, ok)
			require.Equal(t, c.at, at)
			if !ok {
				require.Equal(t, kept, spliced)
				return
			}
			want := kept.Clone()
			want.ToolCalls = nil
			for _, x := range c.want {
				x.Native = kept.Native
				want.ToolCalls = append(want.ToolCalls, x)
			}
			require.Equal(t, want, spliced, "ids, Native and everything else stay")
		})
	}
}
