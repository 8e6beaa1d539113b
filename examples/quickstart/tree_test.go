package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// written returns the tree of a report.
func written(t *testing.T, r middleware.Report) string {
	var b strings.Builder
	require.NoError(t, writeTree(&b, &middleware.Response{Report: r}))
	return b.String()
}

func TestTreeOfChanges(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]middleware.Change{
		`null taken out at /a`: {Pointer: "/a", Before: "null"},
		`"5" → 5 at /a`:        {Pointer: "/a", Before: `"5"`, After: "5"},
		`"ls" → "l"`:           {Before: `"ls"`, After: `"l"`},
		`→ {}`:                 {After: "{}"},
	} {
		c.By = "rule"
		r := middleware.Report{Attempts: []middleware.Attempt{{Verdicts: []middleware.Verdict{{Changes: []middleware.Change{c}}}}}}
		require.Contains(t, written(t, r), "~ rule: "+want+"\n")
	}
}

// An answer's text has issues and changes of its own.
func TestTreeOfAText(t *testing.T) {
	t.Parallel()
	r := middleware.Report{Status: middleware.Invalid, Attempts: []middleware.Attempt{{
		Message: middleware.Assistant("one\ntwo"),
		Changes: []middleware.Change{{By: "fence", Before: "a", After: "b"}},
		Issues:  []middleware.Issue{{Code: "syntax", Message: "not JSON"}},
		Replies: []middleware.Message{middleware.User("Send JSON.")},
	}}}
	require.Equal(t, `   ├─ attempt 1
   │    "one\ntwo"
   │    ~ fence: a → b
   │    ✗ the answer: not JSON
   │    → reply:
   │      Send JSON.
           invalid, 1 model call, 0 tokens
`, written(t, r))
}

// Hostile content stays on its line, and does not reach the terminal as it is.
func TestTreeOfHostileContent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 1000)
	hostile := "\x1b[2J\u202e\r\nx" + long
	call := middleware.ToolCall{Name: hostile, Arguments: hostile}
	r := middleware.Response{
		Message: middleware.Message{ToolCalls: []middleware.ToolCall{call, call}},
		Report: middleware.Report{
			Notes: []string{hostile},
			Attempts: []middleware.Attempt{{
				Err:      errors.New(hostile),
				Message:  middleware.Message{ToolCalls: []middleware.ToolCall{call}},
				Verdicts: []middleware.Verdict{{Issues: []middleware.Issue{{Pointer: "/" + hostile, Message: hostile}}}},
				Replies:  []middleware.Message{refused(call, strings.Repeat("word ", 100)+long)},
			}},
		},
	}
	var b strings.Builder
	require.NoError(t, writeTree(&b, &r))
	require.NotContains(t, b.String(), "\x1b")
	require.NotContains(t, b.String(), "\u202e")
	for l := range strings.Lines(b.String()) {
		require.True(t, strings.HasPrefix(l, "   "), "%q", l)
	}
	require.Contains(t, b.String(), "no calls, 1 model call, 0 tokens")

	fails := errors.New("full")
	require.ErrorIs(t, writeTree(writer(func([]byte) (int, error) { return 0, fails }), &r), fails)
}

func refused(c middleware.ToolCall, text string) middleware.Message {
	m := middleware.ToolReply(c, text)
	m.IsError = true
	return m
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
