package agentloop_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

const interrupted = "This call was interrupted: whether it ran is not known. Call the tool again if its result is still needed."

func TestCloseCalls(t *testing.T) {
	t.Parallel()
	a, b := call("a", "t", "{}"), call("b", "t", "{}")
	user, both := middleware.User("go"), middleware.Assistant("", a, b)
	gone := func(c middleware.ToolCall) middleware.Message {
		m := middleware.ToolReply(c, interrupted)
		m.IsError = true
		return m
	}
	ra, rb := middleware.ToolReply(a, "ra"), middleware.ToolReply(b, "rb")
	for name, c := range map[string]struct{ in, want []middleware.Message }{
		"sound":            {[]middleware.Message{user, both, ra, rb}, []middleware.Message{user, both, ra, rb}},
		"dangling":         {[]middleware.Message{user, both, ra}, []middleware.Message{user, both, ra, gone(b)}},
		"none":             {[]middleware.Message{user, both, user}, []middleware.Message{user, both, gone(a), gone(b), user}},
		"orphan":           {[]middleware.Message{user, ra, user}, []middleware.Message{user, user}},
		"double":           {[]middleware.Message{user, both, ra, rb, middleware.ToolReply(a, "again")}, []middleware.Message{user, both, ra, rb}},
		"order":            {[]middleware.Message{user, both, rb, ra}, []middleware.Message{user, both, ra, rb}},
		"displaced":        {[]middleware.Message{user, both, ra, user, rb}, []middleware.Message{user, both, ra, rb, user}},
		"of another turn":  {[]middleware.Message{user, both, middleware.Assistant("", b), ra, rb}, []middleware.Message{user, both, gone(a), gone(b), middleware.Assistant("", b), rb}},
		"hollow assistant": {[]middleware.Message{user, middleware.Assistant(""), user}, []middleware.Message{user, user}},
		"one id twice":     {[]middleware.Message{user, middleware.Assistant("", a, a), middleware.ToolReply(a, "1"), user, middleware.ToolReply(a, "2")}, []middleware.Message{user, middleware.Assistant("", a, a), middleware.ToolReply(a, "1"), middleware.ToolReply(a, "2"), user}},
		"empty":            {nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.in)
			require.Equal(t, c.want, agentloop.CloseCalls(c.in))
			require.Equal(t, before, c.in, "what was given is not changed")
		})
	}
	whole := []middleware.Message{user, both, ra, rb}
	require.Same(t, &whole[0], &agentloop.CloseCalls(whole)[0], "nothing to change: the same slice")
}

// Over any history: strict about pairing, the same twice, and the messages that
// are kept are the same values.
func TestCloseCallsProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.SampledFrom([]string{"a", "b", "c"})
		message := rapid.Custom(func(t *rapid.T) middleware.Message {
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				return middleware.User("u")
			case 1:
				return middleware.ToolReply(call(id.Draw(t, "id"), "t", ""), "r")
			case 2:
				return middleware.Assistant("")
			}
			var cs []middleware.ToolCall
			for _, i := range rapid.SliceOfNDistinct(id, 1, 3, rapid.ID).Draw(t, "ids") {
				cs = append(cs, call(i, "t", "{}"))
			}
			return middleware.Assistant("", cs...)
		})
		in := append([]middleware.Message{middleware.User("first")}, rapid.SliceOfN(message, 0, 8).Draw(t, "history")...)
		out := agentloop.CloseCalls(in)
		require.NoError(t, middlewaretest.Check(middlewaretest.OpenAI, &middleware.Request{Messages: out}))
		require.Equal(t, out, agentloop.CloseCalls(out), "a second time changes nothing")
		for _, m := range out {
			if m.Text() != interrupted {
				require.True(t, slices.ContainsFunc(in, func(i middleware.Message) bool { return equalMessages(i, m) }))
			}
		}
	})
}

func equalMessages(a, b middleware.Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID && a.Text() == b.Text() && slices.Equal(a.ToolCalls, b.ToolCalls)
}
