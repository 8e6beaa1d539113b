package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// Where one call is allowed, no notice asks for several calls, or holds one.
func TestNoticeBesideFurtherCalls(t *testing.T) {
	t.Parallel()
	verdicts := []middleware.Verdict{
		{Call: middleware.ToolCall{ID: "1", Name: "a"}},
		{Call: middleware.ToolCall{ID: "2", Name: "b"}, Issues: []middleware.Issue{{Code: "parallel_calls"}}},
	}
	for _, p := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
		replies := batch.Replies(verdicts, p, func(middleware.Verdict) string { return "one call" })
		require.Len(t, replies, 2)
		require.Equal(t, "This call was not executed, because its message holds too many tool calls.", replies[0].Text())
		require.Equal(t, "one call", replies[1].Text())
	}
}
