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
