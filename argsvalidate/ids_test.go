package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func idsOf(m middleware.Message) []string {
	var ids []string
	for _, c := range m.ToolCalls {
		ids = append(ids, c.ID)
	}
	return ids
}

// history holds two calls, so that the next one is the third.
func history() *middleware.Request {
	a, b := call("a", "note", goodNote), call("b", "note", goodNote)
	req := request()
	req.Messages = append(req.Messages, middleware.Assistant("", a, b), middleware.ToolReply(a, "ok"), middleware.ToolReply(b, "ok"))
	return req
}

func TestBrokenIDsAreMadeUnique(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, want []string }{
		"missing":          {[]string{"", ""}, []string{"toolmend_3", "toolmend_4"}},
		"blank":            {[]string{" ", "x"}, []string{"toolmend_3", "x"}},
		"duplicate":        {[]string{"x", "x"}, []string{"x", "toolmend_4"}},
		"reused":           {[]string{"b", "x"}, []string{"toolmend_3", "x"}},
		"taken by a later": {[]string{"", "toolmend_3"}, []string{"toolmend_3_2", "toolmend_3"}},
		"good":             {[]string{"x", "y"}, []string{"x", "y"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			good := answer(call(c.sent[0], "weather", goodWeather), call(c.sent[1], "note", goodNote))
			out := run(t, argsvalidate.Options{}, history(), good)
			require.Equal(t, c.want, idsOf(out.resp.Message))
			require.Equal(t, c.sent, idsOf(out.report.Attempts[0].Message), "the ledger keeps what was sent")
			for i, v := range out.report.Attempts[0].Verdicts {
				if c.sent[i] == c.want[i] {
					require.Empty(t, v.Changes)
					continue
				}
				require.Equal(t, []middleware.Change{{By: "id", Before: c.sent[i], After: c.want[i]}}, v.Changes)
			}
			require.Equal(t, c.want, idsOf(run(t, argsvalidate.Options{}, history(), good).resp.Message), "the same way every time")
		})
	}
}

// The id of an answer does not depend on how many hidden attempts it took, and
// no two hidden turns share an id that we made up.
func TestIDsAreStableOverAttempts(t *testing.T) {
	t.Parallel()
	bad, good := answer(call("", "weather", badWeather)), answer(call("", "weather", goodWeather))
	out := run(t, argsvalidate.Options{}, history(), bad, answer(call("", "weather", `{}`)), good)
	require.Equal(t, []string{"toolmend_3"}, idsOf(out.resp.Message))
	messages := out.asked[2].Messages
	require.Equal(t, []string{"toolmend_3"}, idsOf(messages[len(messages)-4]))
	require.Equal(t, "toolmend_3", messages[len(messages)-3].ToolCallID)
	require.Equal(t, []string{"toolmend_4"}, idsOf(messages[len(messages)-2]))
	require.Equal(t, "toolmend_4", messages[len(messages)-1].ToolCallID)

	// An id that the model wrote itself stays, however often.
	out = run(t, argsvalidate.Options{}, history(), answer(call("x", "weather", badWeather)), answer(call("x", "weather", goodWeather)))
	require.Equal(t, []string{"x"}, idsOf(out.resp.Message))
}

func TestPassKeepsArgumentsAndMendsIDs(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, request(), answer(call("", "weather", badWeather)))
	require.Equal(t, []middleware.ToolCall{call("toolmend_1", "weather", badWeather)}, out.resp.Message.ToolCalls)
}

// Arguments that are no object are refused by providers in the history: they
// are echoed as an object and quoted in the error, which says that the call
// arrived broken.
func TestRubbishIsEchoedAsAnObject(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"city": `, `[1]`, `"text"`, `{} {}`, "\xff", `nonsense`} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", args), middlewaretest.Text("no"))
			told := out.told(2)
			require.Equal(t, "{}", told[0].ToolCalls[0].Arguments)
			require.Contains(t, told[1].Text(), "sent ")
			require.Contains(t, told[1].Text(), "Send the arguments as one JSON object and nothing else.")
			require.Equal(t, args, out.report.Attempts[0].Message.ToolCalls[0].Arguments)
			for _, p := range []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini} {
				require.NoError(t, middlewaretest.Check(p, out.asked[1]))
			}
		})
	}
	t.Run("what arrived whole stays", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", `{"city" : "Oslo", "days": 3 "x": 1}`), middlewaretest.Text("no"))
		require.Equal(t, `{"city" : "Oslo"}`, out.told(2)[0].ToolCalls[0].Arguments)
		require.Contains(t, out.told(2)[1].Text(), "The call arrived broken: the conversation keeps only the properties that arrived whole.")
	})
	t.Run("an object stays as it is", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", ` {"days" : 0 } `), middlewaretest.Text("no"))
		require.Equal(t, ` {"days" : 0 } `, out.told(2)[0].ToolCalls[0].Arguments)
	})
}
