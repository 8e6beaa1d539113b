package calltext_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/calltext"
)

// TestJSON: a value ends where it ends, whatever follows, and however long it is.
func TestJSON(t *testing.T) {
	t.Parallel()
	long := `{"a": "` + strings.Repeat("x", 5000) + `"}`
	for text, c := range map[string]struct {
		state calltext.State
		raw   string
	}{
		`{"a": 1} and {"b": 2}`: {calltext.Complete, `{"a": 1}`},
		long + "</x>":           {calltext.Complete, long},
		long[:2000]:             {calltext.Partial, ""},
		`{"a`:                   {calltext.Partial, ""},
		`{'a': 1}`:              {calltext.Malformed, ""},
	} {
		v, end, state := calltext.JSON("  "+text, 2)
		require.Equal(t, c.state, state, text)
		if state == calltext.Complete {
			require.Equal(t, c.raw, v.Raw())
			require.Equal(t, 2+len(c.raw), end)
		}
	}
}

// TestSpelled: a value ends in front of a mark that is in no string. Brackets are not
// added.
func TestSpelled(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		state calltext.State
		raw   string
		final bool
	}{
		"{'a': True,}</x> b":        {calltext.Complete, `{"a": true}`, false},
		"{'a': '</x>'}</x>":         {calltext.Complete, `{"a": "</x>"}`, false},
		`{"a": 1}}} </x>`:           {calltext.Complete, `{"a": 1}`, false},
		"{'a': 1":                   {calltext.Partial, "", false},
		"{'a': 1}":                  {calltext.Complete, `{"a": 1}`, true},
		"{'a': {'b': 'c'}</x>":      {calltext.Malformed, "", true},
		"{'a': {'b': 'c'}":          {calltext.Malformed, "", true},
		"{'a': b}</x>":              {calltext.Malformed, "", true},
		"{'a': '</x></x></x></x>'}": {calltext.Malformed, "", true}, // more marks than are tried
	} {
		v, end, state := calltext.Spelled(text, 0, c.final, "</x>")
		require.Equal(t, c.state, state, text)
		if state == calltext.Complete {
			require.Equal(t, c.raw, v.Raw())
			require.True(t, end == len(text) || strings.HasPrefix(text[end:], "</x>"), text)
		}
	}
}

// TestCode: a block ends at a fence that is not shorter, and other code at its line.
func TestCode(t *testing.T) {
	t.Parallel()
	var c calltext.Code
	for _, step := range []struct {
		run    int // 0: the end of a line
		begins bool
		in     bool
	}{{1, false, true}, {2, false, true}, {1, false, false}, {2, true, true}, {0, false, false}, {4, true, true}, {3, true, true}, {4, false, true}, {0, false, true}, {5, true, false}} {
		if step.run == 0 {
			c.Break()
		} else {
			c.Run(step.run, step.begins)
		}
		require.Equal(t, step.in, c.In(), step)
	}
	require.Equal(t, 3, calltext.Backticks("```go"))
}
