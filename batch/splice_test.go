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
	custom := func(id, name string) middleware.ToolCall {
		return middleware.ToolCall{ID: id, Name: name, Arguments: "*** patch", Kind: middleware.KindCustom}
	}
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
		"a held one is not a correction": {[]middleware.ToolCall{b, b2}, []middleware.Verdict{valid(b), invalid(b2)}, []middleware.ToolCall{fix("b", "bad")}, []middleware.ToolCall{b, b2}, []int{-1}},
		"none":                           {[]middleware.ToolCall{b}, []middleware.Verdict{invalid(b)}, nil, nil, nil},
		"a held one instead":             {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("a", "A2")}, []middleware.ToolCall{a, b, fix("a", "A2")}, []int{2}},
		"nothing was broken":             {[]middleware.ToolCall{a}, []middleware.Verdict{valid(a)}, []middleware.ToolCall{fix("a", "A")}, nil, nil},
		"the id of another name": {[]middleware.ToolCall{b, call("3", "c", "bad")}, []middleware.Verdict{invalid(b), invalid(call("3", "c", "bad"))}, []middleware.ToolCall{call("2", "c", "C"), call("3", "b", "B")},
			[]middleware.ToolCall{call("2", "b", "B"), call("3", "c", "C")}, []int{1, 0}},
		"ids that begin anew": {[]middleware.ToolCall{call("1", "b", "B1"), b, b2}, []middleware.Verdict{valid(call("1", "b", "B1")), invalid(b), invalid(b2)}, []middleware.ToolCall{call("1", "b", "B2"), call("2", "b", "B3")},
			[]middleware.ToolCall{call("1", "b", "B1"), call("2", "b", "B2"), call("3", "b", "B3")}, []int{1, 2}},
		"ids that stay, with a held one again": {[]middleware.ToolCall{a, b, b2}, []middleware.Verdict{valid(a), invalid(b), invalid(b2)}, []middleware.ToolCall{a, call("3", "b", "B3")},
			[]middleware.ToolCall{a, b, call("3", "b", "B3")}, []int{-1, 2}},
		"ids that were made up": {[]middleware.ToolCall{call("toolmend_1", "b", "bad"), call("toolmend_2", "b", "bad")}, []middleware.Verdict{invalid(b), invalid(b)}, []middleware.ToolCall{call("toolmend_2", "b", "B1"), call("toolmend_3", "b", "B2")},
			[]middleware.ToolCall{call("toolmend_1", "b", "B1"), call("toolmend_2", "b", "B2")}, []int{0, 1}},
		"a held one in another spelling": {[]middleware.ToolCall{call("1", "a", `{"x": 1, "y": 2}`), b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("a", `{"y":2,"x":1}`), fix("b", "B")},
			[]middleware.ToolCall{call("1", "a", `{"x": 1, "y": 2}`), call("2", "b", "B")}, []int{-1, 1}},
		"new ones follow": {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{fix("c", "C"), fix("b", "B"), call("1", "d", "D")},
			[]middleware.ToolCall{a, call("2", "b", "B"), fix("c", "C"), call("", "d", "D")}, []int{2, 1, 3}},
		"free text is not a correction of a function call": {[]middleware.ToolCall{a, b}, []middleware.Verdict{valid(a), invalid(b)}, []middleware.ToolCall{custom("1", "b")},
			[]middleware.ToolCall{a, b, custom("", "b")}, []int{2}},
		"free text instead of an unknown tool": {[]middleware.ToolCall{a, nosuch}, []middleware.Verdict{valid(a), unknown(nosuch)}, []middleware.ToolCall{custom("9", "patch")},
			[]middleware.ToolCall{a, custom("9", "patch")}, []int{1}},
		"an unknown tool prefers its kind": {[]middleware.ToolCall{a, nosuch}, []middleware.Verdict{valid(a), unknown(nosuch)}, []middleware.ToolCall{custom("9", "patch"), fix("b", "B")},
			[]middleware.ToolCall{a, call("4", "b", "B"), custom("9", "patch")}, []int{2, 1}},
		"all of it again, changed":       {[]middleware.ToolCall{a, b, nosuch}, []middleware.Verdict{valid(a), invalid(b), unknown(nosuch)}, []middleware.ToolCall{fix("a", "A2"), fix("b", "B"), fix("c", "C"), fix("d", "D")}, nil, nil},
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
				if len(want.ToolCalls) < len(kept.ToolCalls) && x.Kind == middleware.KindFunction {
					x.Native = kept.Native
				}
				want.ToolCalls = append(want.ToolCalls, x)
			}
			require.Equal(t, want, spliced, "ids, Native and everything else stay")
		})
	}
}
