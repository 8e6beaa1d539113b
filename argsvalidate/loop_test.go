package argsvalidate_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// looping returns a request whose last n calls of weather failed with the same error.
func looping(n int, result func(i int) middleware.Message) *middleware.Request {
	req := request()
	for i := range n {
		c := middleware.ToolCall{ID: fmt.Sprint(i), Name: "weather", Arguments: `{"city": "Oslo"}`}
		reply := result(i)
		reply.Role, reply.ToolCallID = middleware.RoleTool, c.ID
		req.Messages = append(req.Messages, middleware.Assistant("", c), reply)
	}
	return req
}

func failed(text string) func(int) middleware.Message {
	return func(int) middleware.Message {
		return middleware.Message{IsError: true, Parts: []middleware.Part{{Text: text}}}
	}
}

func TestNoLoops(t *testing.T) {
	t.Parallel()
	again := middlewaretest.Calls("weather", `{"city":"Oslo"}`)
	o := argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.NoLoops(0)}}
	for n, reasks := range map[int]int{0: 0, 2: 0, 3: 1, 4: 0, 5: 0, 6: 1, 9: 0, 12: 1, 15: 0, 18: 0, 24: 1} {
		out := run(t, o, looping(n, failed("no such city")), slices.Repeat([]middlewaretest.Turn{again}, 1+reasks)...)
		require.Len(t, out.asked, 1+reasks, "%d failures", n)
		require.Equal(t, middleware.Valid, out.report.Status, "it passes then")
		if reasks > 0 {
			require.Contains(t, out.asked[1].Messages[len(out.asked[1].Messages)-1].Text(), fmt.Sprintf("has failed %d times in a row", n))
		}
	}
	for name, c := range map[string]struct {
		req    *middleware.Request
		rule   argsvalidate.Rule
		reasks int
	}{
		"an error by its first word": {looping(3, func(int) middleware.Message { return middleware.Message{Parts: []middleware.Part{{Text: "Error: no"}}} }), argsvalidate.NoLoops(3), 1},
		"results, no errors":         {looping(3, func(int) middleware.Message { return middleware.Message{Parts: []middleware.Part{{Text: "pending"}}} }), argsvalidate.NoLoops(3), 0},
		"results that differ":        {looping(3, func(i int) middleware.Message { return failed(fmt.Sprint(i))(i) }), argsvalidate.NoLoops(3), 0},
		"polling":                    {looping(3, failed("no")), argsvalidate.NoLoops(3, "weather"), 0},
		"other arguments":            {looping(3, failed("no")), argsvalidate.NoLoops(4), 0},
	} {
		out := run(t, argsvalidate.Options{Rules: []argsvalidate.Rule{c.rule}}, c.req, slices.Repeat([]middlewaretest.Turn{again}, 1+c.reasks)...)
		require.Len(t, out.asked, 1+c.reasks, name)
	}
	out := run(t, o, looping(3, failed("no")), middlewaretest.Calls("weather", `{"city":"Rome"}`))
	require.Len(t, out.asked, 1, "another call")
	require.Panics(t, func() { argsvalidate.NoLoops(-1) })
}

// A loop is found too if the calls come in parallel: the same call several times in a message,
// or beside others.
func TestNoLoopsInParallel(t *testing.T) {
	t.Parallel()
	weather, other := middleware.ToolCall{Name: "weather", Arguments: `{"city": "Oslo"}`}, middleware.ToolCall{Name: "note", Arguments: goodNote}
	for name, c := range map[string]struct {
		batch  []middleware.ToolCall
		turns  int
		reasks bool
	}{
		"two of a kind, 2":      {[]middleware.ToolCall{weather, weather}, 1, false},
		"two of a kind, 4":      {[]middleware.ToolCall{weather, weather}, 2, true},
		"two of a kind, 6":      {[]middleware.ToolCall{weather, weather}, 3, true},
		"two of a kind, 8":      {[]middleware.ToolCall{weather, weather}, 4, false},
		"five of a kind, 5":     {[]middleware.ToolCall{weather, weather, weather, weather, weather}, 1, true},
		"another call, 2":       {[]middleware.ToolCall{weather, other}, 2, false},
		"another call, 3":       {[]middleware.ToolCall{weather, other}, 3, true},
		"another call first, 3": {[]middleware.ToolCall{other, weather}, 3, true},
		"another call, 4":       {[]middleware.ToolCall{other, weather}, 4, false},
		"only others, 3":        {[]middleware.ToolCall{other, other}, 3, false},
	} {
		req := request()
		for turn := range c.turns {
			m := middleware.Assistant("")
			var replies []middleware.Message
			for i, call := range c.batch {
				call.ID = fmt.Sprint(turn, ".", i)
				reply := middleware.ToolReply(call, "no such city")
				reply.IsError = call.Name == "weather"
				m.ToolCalls, replies = append(m.ToolCalls, call), append(replies, reply)
			}
			req.Messages = slices.Concat(req.Messages, []middleware.Message{m}, replies)
		}
		turns := []middlewaretest.Turn{middlewaretest.Calls("weather", `{"city":"Oslo"}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`)}
		if !c.reasks {
			turns = turns[:1]
		}
		out := run(t, argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.NoLoops(3)}}, req, turns...)
		require.Len(t, out.asked, len(turns), name)
	}
}

// The last attempt of a step goes to another model, if the step makes one.
func TestEscalate(t *testing.T) {
	t.Parallel()
	bad, good := middlewaretest.Calls("weather", `{}`), middlewaretest.Calls("weather", `{"city":"Oslo"}`)
	models := func(o argsvalidate.Options, req *middleware.Request, turns ...middlewaretest.Turn) (models []string) {
		for _, r := range run(t, o, req, turns...).asked {
			models = append(models, r.Model)
		}
		return models
	}
	small := request()
	small.Model = "small"
	o := argsvalidate.Options{Advanced: argsvalidate.Advanced{Escalate: "large"}}
	require.Equal(t, []string{"small", "small", "large"}, models(o, small, bad, bad, good))
	require.Equal(t, "small", small.Model)
	require.Equal(t, []string{"", "", ""}, models(o, request(), bad, bad, good), "a format whose model is not in the request")
	o.MaxAttempts, o.OnExhausted = 1, middleware.Pass
	require.Equal(t, []string{"small"}, models(o, small, bad))
}
