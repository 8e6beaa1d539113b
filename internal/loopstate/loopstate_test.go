package loopstate_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/middleware"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures    string
		stale, same []int
	}{
		"the same for ever": {"aaaa", []int{1, 2, 3, 4}, []int{1, 2, 3, 4}},
		"progress":          {"abcd", []int{1, 1, 1, 1}, []int{1, 1, 1, 1}},
		"two in turn":       {"ababa", []int{1, 1, 2, 3, 4}, []int{1, 1, 1, 1, 1}},
		"progress between":  {"aabaab", []int{1, 2, 1, 2, 3, 4}, []int{1, 2, 1, 1, 2, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var w loopstate.Watch
			require.Zero(t, w.Stale())
			for i, f := range c.failures {
				require.Equal(t, c.stale[i], w.Failed(string(f)))
				require.Equal(t, c.stale[i], w.Stale())
				require.Equal(t, c.same[i], w.Same())
			}
			later, _ := loopstate.With(context.Background(), w.Failures())
			next := loopstate.From(later)
			require.Equal(t, w, next, "a later step goes on from there")
		})
	}
	fresh := loopstate.From(context.Background())
	require.Zero(t, fresh.Stale())
}

func TestWatchKeepsALimitedNumber(t *testing.T) {
	t.Parallel()
	var w loopstate.Watch
	for i := range 1000 {
		w.Failed(strconv.Itoa(i))
	}
	require.Len(t, w.Failures(), 64)
}

func TestCalls(t *testing.T) {
	t.Parallel()
	verdict := func(name, args string, issues ...middleware.Issue) middleware.Verdict {
		return middleware.Verdict{Call: middleware.ToolCall{ID: args, Name: name, Arguments: args}, Issues: issues}
	}
	issue := middleware.Issue{Code: "type", Pointer: "/a", Message: "wanted integer"}
	base := loopstate.Calls([]middleware.Verdict{verdict("t", `{"a": "1", "b": 2}`, issue)})
	for name, c := range map[string]struct {
		verdicts []middleware.Verdict
		same     bool
	}{
		"white space and keys": {[]middleware.Verdict{verdict("t", `{ "b":2,"a":"1" }`, issue)}, true},
		"another wording":      {[]middleware.Verdict{verdict("t", `{"a": "1", "b": 2}`, middleware.Issue{Code: "type", Pointer: "/a"})}, true},
		"valid calls beside":   {[]middleware.Verdict{verdict("t", `{}`), verdict("t", `{"a": "1", "b": 2}`, issue)}, true},
		"another value":        {[]middleware.Verdict{verdict("t", `{"a": "2", "b": 2}`, issue)}, false},
		"another name":         {[]middleware.Verdict{verdict("u", `{"a": "1", "b": 2}`, issue)}, false},
		"another place":        {[]middleware.Verdict{verdict("t", `{"a": "1", "b": 2}`, middleware.Issue{Code: "type", Pointer: "/b"})}, false},
		"twice":                {[]middleware.Verdict{verdict("t", `{"a": "1", "b": 2}`, issue), verdict("t", `{"a": "1", "b": 2}`, issue)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.same, base == loopstate.Calls(c.verdicts))
		})
	}
}

func TestRefusalAndText(t *testing.T) {
	t.Parallel()
	refused := func(output string) error { return &middleware.ModelError{Output: output} }
	require.Equal(t, loopstate.Refusal(refused("<call> a")), loopstate.Refusal(refused("<call>  a\n")))
	require.NotEqual(t, loopstate.Refusal(refused("<call> a")), loopstate.Refusal(refused("<call> b")))
	require.Equal(t, loopstate.Refusal(middleware.ErrInvalidToolCall), loopstate.Refusal(middleware.ErrInvalidToolCall))
	require.NotEqual(t, loopstate.Text("a"), loopstate.Text("b"))
}
