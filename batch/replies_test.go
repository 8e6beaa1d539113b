package batch_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

func valid(c middleware.ToolCall) middleware.Verdict { return middleware.Verdict{Call: c} }

func invalid(c middleware.ToolCall) middleware.Verdict {
	return middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: "required", Pointer: "/a", Message: "m"}}}
}

func unknown(c middleware.ToolCall) middleware.Verdict {
	return middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: "unknown_tool"}}}
}

func wrong(v middleware.Verdict) string { return "wrong: " + v.Call.Name }

func TestOneReplyForEachCallInCallOrder(t *testing.T) {
	t.Parallel()
	verdicts := []middleware.Verdict{valid(call("1", "a", "")), invalid(call("2", "b", "")), valid(call("3", "c", "")), invalid(call("4", "d", ""))}
	for policy, notice := range map[batch.Policy][]string{
		batch.ReissueAll: {"not executed", "another tool call in the same batch failed argument validation", "Re-issue all tool calls"},
		batch.KeepValid:  {"not executed yet", "held", "Send only the failed calls again"},
	} {
		replies := batch.Replies(verdicts, policy, wrong)
		require.Len(t, replies, 4)
		for i, m := range replies {
			v := verdicts[i]
			require.Equal(t, middleware.RoleTool, m.Role)
			require.Equal(t, v.Call.ID, m.ToolCallID)
			require.Equal(t, v.Call.Name, m.ToolName)
			require.Equal(t, !v.OK(), m.IsError, "errors only")
			if !v.OK() {
				require.Equal(t, "wrong: "+v.Call.Name, m.Text())
				continue
			}
			for _, text := range notice {
				require.Contains(t, m.Text(), text)
			}
		}
	}
	require.Empty(t, batch.Replies(nil, batch.ReissueAll, wrong))
}

// The replies have the ids and names of the echo, whatever the verdicts
// say: a provider pairs them by these.
func TestTurn(t *testing.T) {
	t.Parallel()
	m := middleware.Assistant("so", call("x1", "lost tool", "rubbish"), call("x2", "b", `{"a": 1}`))
	verdicts := []middleware.Verdict{invalid(call("toolmend_1", "lost tool", "rubbish")), valid(call("toolmend_2", "b", `{"a": 1}`))}
	turn := batch.Turn(m, nil, verdicts, batch.ReissueAll, wrong)
	require.Len(t, turn, 3)
	require.Equal(t, []middleware.ToolCall{call("x1", "lost_tool", "{}"), call("x2", "b", `{"a": 1}`)}, turn[0].ToolCalls)
	for i, c := range turn[0].ToolCalls {
		require.Equal(t, c.ID, turn[i+1].ToolCallID)
		require.Equal(t, c.Name, turn[i+1].ToolName)
	}
	require.Equal(t, "wrong: lost tool", turn[1].Text(), "the text is about what was sent")
}

func TestLost(t *testing.T) {
	t.Parallel()
	a, b, b2, c := call("1", "a", ""), call("2", "b", ""), call("3", "b", ""), call("4", "c", "")
	for name, x := range map[string]struct {
		verdicts []middleware.Verdict
		next     []middleware.ToolCall
		want     []middleware.ToolCall
	}{
		"all came back":            {[]middleware.Verdict{invalid(a), valid(b)}, []middleware.ToolCall{b, a}, nil},
		"only the corrected one":   {[]middleware.Verdict{invalid(a), valid(b)}, []middleware.ToolCall{a}, []middleware.ToolCall{b}},
		"of the same name":         {[]middleware.Verdict{invalid(b), valid(b2)}, []middleware.ToolCall{b}, []middleware.ToolCall{b2}},
		"one of two":               {[]middleware.Verdict{invalid(a), valid(b), valid(b2)}, []middleware.ToolCall{a, b}, []middleware.ToolCall{b2}},
		"something else":           {[]middleware.Verdict{invalid(a), valid(b)}, []middleware.ToolCall{c}, []middleware.ToolCall{b}},
		"in words":                 {[]middleware.Verdict{invalid(a), valid(b)}, nil, nil},
		"nothing was valid before": {[]middleware.Verdict{invalid(a)}, []middleware.ToolCall{c}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, x.want, batch.Lost(x.verdicts, middleware.Assistant("", x.next...)))
		})
	}
}
