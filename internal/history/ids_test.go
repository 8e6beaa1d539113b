package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

func TestFixIDsNumbersByPlace(t *testing.T) {
	t.Parallel()
	earlier := []middleware.Message{
		middleware.User("hi"), middleware.Assistant("", call("a", "t", ""), call("b", "t", "")),
		middleware.Assistant("", call("c", "t", "")),
	}
	m := middleware.Assistant("", call("", "t", ""), call("x", "t", ""), call("x", "t", ""), call("a", "t", ""))
	fixed := history.FixIDs(earlier, m)
	var ids []string
	for _, c := range fixed.ToolCalls {
		ids = append(ids, c.ID)
	}
	require.Equal(t, []string{"toolmend_4", "x", "toolmend_6", "toolmend_7"}, ids)
	require.Empty(t, m.ToolCalls[0].ID, "the message itself is not changed")

	fixed = history.FixIDs(nil, middleware.Assistant("", call("", "t", ""), call("toolmend_1", "t", "")))
	require.Equal(t, "toolmend_1_2", fixed.ToolCalls[0].ID, "an id that a later call has is not taken from it")
	require.Equal(t, "toolmend_1", fixed.ToolCalls[1].ID)
}

func TestFixIDsLeavesGoodMessagesAlone(t *testing.T) { // not parallel: it counts allocations
	m := middleware.Assistant("", call("a", "t", ""), call("b", "t", ""))
	require.Zero(t, testing.AllocsPerRun(10, func() { m = history.FixIDs(nil, m) }))
}

// The laws of FixIDs, over ids that are often blank, doubled, reused, or look
// like ours.
func TestFixIDsLaws(t *testing.T) {
	t.Parallel()
	id := rapid.OneOf(
		rapid.SampledFrom([]string{"", " ", "\t", "a", "b", "c", "toolmend_1_2"}),
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("toolmend_%d", rapid.IntRange(1, 8).Draw(t, "n")) }),
		rapid.StringMatching(`call_[0-9]`),
	)
	message := rapid.Custom(func(t *rapid.T) middleware.Message {
		var calls []middleware.ToolCall
		for _, id := range rapid.SliceOfN(id, 0, 5).Draw(t, "ids") {
			calls = append(calls, call(id, "t", "{}"))
		}
		return middleware.Assistant("", calls...)
	})
	rapid.Check(t, func(t *rapid.T) {
		earlier := rapid.SliceOfN(message, 0, 3).Draw(t, "history")
		m := message.Draw(t, "message")
		before := m.Clone()
		fixed := history.FixIDs(earlier, m)

		require.Equal(t, before, m)
		require.Equal(t, fixed, history.FixIDs(earlier, m), "the same way every time")
		require.Equal(t, fixed, history.FixIDs(earlier, fixed), "idempotent")

		used, seen := map[string]bool{}, map[string]bool{}
		for _, h := range earlier {
			for _, c := range h.ToolCalls {
				used[c.ID] = true
			}
		}
		said := map[string]bool{}
		for i, c := range fixed.ToolCalls {
			require.NotEmpty(t, strings.TrimSpace(c.ID))
			require.False(t, seen[c.ID], "unique in the message")
			require.False(t, used[c.ID], "and in the conversation")
			seen[c.ID] = true
			sent := m.ToolCalls[i].ID
			if strings.TrimSpace(sent) != "" && !used[sent] && !said[sent] {
				require.Equal(t, sent, c.ID, "a good id is never touched")
			}
			said[sent] = true
		}
	})
}

// FixAnswer is FixIDs, and reads deferred messages only if one of them may have an id of the answer.
func TestFixAnswer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw   string // of the request
		ids   []string
		reads bool
	}{
		"no call":                       {`[{"id":"a"}]`, nil, false},
		"another id":                    {`[{"id":"a"}]`, []string{"call_1"}, false},
		"the id":                        {`[{"id":"call_1"}]`, []string{"call_1"}, true},
		"the id in a text":              {`[{"text":"see call_1"}]`, []string{"call_1"}, true},
		"a letter as an escape":         {`[{"id":"\u0063all_1"}]`, []string{"call_1"}, true},
		"a digit as an escape":          {`[{"id":"call_\u0031"}]`, []string{"call_1"}, true},
		"an underline as an escape":     {`[{"id":"call\u005F1"}]`, []string{"call_1"}, true},
		"a dash as an escape":           {`[{"id":"call\u002d1"}]`, []string{"call-1"}, true},
		"escapes that no id has":        {`[{"text":"\u003cb\u003e \u00e9 \u2019 \n"}]`, []string{"call_1"}, false},
		"blank":                         {`[]`, []string{" "}, true},
		"one id twice":                  {`[]`, []string{"call_1", "call_1"}, true},
		"an id by its place":            {`[]`, []string{"toolmend_1"}, true},
		"the last place":                {`[]`, []string{"toolmend_2"}, true},
		"the next place":                {`[]`, []string{"toolmend_3"}, false},
		"the next place is an id":       {`["toolmend_3"]`, []string{"toolmend_3"}, true},
		"a place twice":                 {`[]`, []string{"toolmend_3_2"}, true},
		"an id that has many spellings": {`[]`, []string{"call/1"}, true},
		"an id that is not ASCII":       {`[]`, []string{"càll"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := []middleware.Message{middleware.Assistant("", call("call_1", "t", "{}"), call("call-1", "t", "{}"))}
			var m middleware.Message
			for _, id := range c.ids {
				m.ToolCalls = append(m.ToolCalls, call(id, "t", "{}"))
			}
			read := false
			req := &middleware.Request{Native: &middleware.Native{Raw: c.raw}}
			req.Defer(2, func() []middleware.Message {
				read = true
				return before
			})
			got := history.FixAnswer(req, m)
			require.Equal(t, c.reads, read)
			if read {
				require.Equal(t, history.FixIDs(before, m), got)
			} else {
				require.Equal(t, m, got)
			}
			require.Equal(t, history.FixIDs(before, m), history.FixAnswer(&middleware.Request{Messages: before}, m), "nothing is deferred")
		})
	}
}

// Each character of an id may be spelled as an escape.
func TestEscapedIDs(t *testing.T) {
	t.Parallel()
	for r := rune(0); r < 128; r++ {
		for _, raw := range []string{fmt.Sprintf(`"\u%04x"`, r), fmt.Sprintf(`"\u%04X"`, r)} {
			read := false
			req := &middleware.Request{Native: &middleware.Native{Raw: raw}}
			req.Defer(-1, func() []middleware.Message {
				read = true
				return nil
			})
			history.FixAnswer(req, middleware.Assistant("", call(strings.Repeat("q", 9)+string(r), "t", "{}")))
			require.True(t, read, "%q", r)
		}
	}
}

// Each call is looked for in the whole request: of many calls the messages are read instead.
func TestFixAnswerOfManyCalls(t *testing.T) {
	t.Parallel()
	for n, reads := range map[int]bool{1: false, 8: false, 9: true} {
		read := false
		req := &middleware.Request{Native: &middleware.Native{Raw: `{"messages":[]}`}}
		req.Defer(-1, func() []middleware.Message { read = true; return nil })
		var calls []middleware.ToolCall
		for i := range n {
			calls = append(calls, call(fmt.Sprintf("id_%d", i), "t", ""))
		}
		history.FixAnswer(req, middleware.Assistant("", calls...))
		require.Equal(t, reads, read, n)
	}
}
