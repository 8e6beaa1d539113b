package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/textcall"
)

func demanding(only string) *middleware.Request {
	req := request()
	if req.ToolChoice.Name = only; only == "" {
		req.ToolChoice.Mode = middleware.ToolRequired
	}
	return req
}

func TestDemandedCallIsAskedForOnce(t *testing.T) {
	t.Parallel()
	words := middlewaretest.Text("It is sunny.")
	out := run(t, argsvalidate.Options{}, demanding(""), words, middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodWeather}, out.arguments())
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Empty(t, out.report.Notes)
	told := out.told(2)
	require.Equal(t, []middleware.Role{middleware.RoleAssistant, middleware.RoleUser}, []middleware.Role{told[0].Role, told[1].Role})
	require.Equal(t, "It is sunny.", told[0].Text())
	require.Equal(t, "Your last message calls no tool, but a tool must be called now. Call one of these tools: weather, note.", told[1].Text())
	require.Equal(t, told[1:], out.report.Attempts[0].Replies)

	out = run(t, argsvalidate.Options{}, demanding("weather"), words, middlewaretest.Calls("weather", badWeather), middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, "Your last message calls no tool, but the tool 'weather' must be called now. Call it.", out.told(2)[1].Text())
	require.Equal(t, []string{goodWeather}, out.arguments())

	out = run(t, argsvalidate.Options{}, demanding(""), middlewaretest.Text(" "), middlewaretest.Calls("weather", goodWeather))
	require.Equal(t, "(empty)", out.told(2)[0].Text(), "many servers refuse an empty message")

	out = run(t, argsvalidate.Options{OnExhausted: middleware.Pass}, demanding(""), words, words)
	require.NoError(t, out.err)
	require.Equal(t, "It is sunny.", out.resp.Message.Text())
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{"the request demands a tool call, and attempt 2 has none"}, out.report.Notes)

	out = run(t, argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, demanding(""), words)
	require.NoError(t, out.err)
	require.Equal(t, []string{"the request demands a tool call, and attempt 1 has none"}, out.report.Notes)
}

// A layer inside that has asked again already is not made to ask again.
func TestDemandedCallBehindALayerThatAsks(t *testing.T) {
	t.Parallel()
	words := middlewaretest.Text("It is sunny.")
	model := middlewaretest.NewModel(t, words, words, words)
	resp, err := middleware.Chain(argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass}), textcall.New(textcall.Options{}))(model.Call)(t.Context(), demanding(""))
	require.NoError(t, err)
	require.Len(t, resp.Report.Attempts, 3)
	require.Contains(t, resp.Report.Notes, "the request demands a tool call, and attempt 1 has none")
}

func TestDemandedCallUnderRaise(t *testing.T) {
	t.Parallel()
	words := middlewaretest.Text("It is sunny.")
	raise := argsvalidate.Options{}
	perTool := argsvalidate.Options{OnExhausted: middleware.Pass, PerTool: map[string]argsvalidate.ToolOptions{"weather": {OnExhausted: middleware.Raise}}}
	for name, out := range map[string]outcome{
		"any tool":  run(t, raise, demanding(""), words, words),
		"one tool":  run(t, perTool, demanding("weather"), words, words),
		"last of 3": run(t, raise, demanding(""), words, middlewaretest.Calls("weather", badWeather), words),
	} {
		require.ErrorIs(t, out.err, argsvalidate.ErrNoCall, name)
		require.ErrorIs(t, out.err, argsvalidate.ErrExhausted, name)
		require.EqualError(t, out.err, "argsvalidate: attempts exhausted: argsvalidate: the request demands a tool call, and the model sent none", name)
		require.Equal(t, "It is sunny.", failure(t, out.err).Response.Message.Text(), name)
	}
}

func TestNoCallIsNoFault(t *testing.T) {
	t.Parallel()
	ended := func(reason middleware.FinishReason, parts ...middleware.Part) *middleware.Response {
		return &middleware.Response{Message: middleware.Message{Role: middleware.RoleAssistant, Parts: parts}, FinishReason: reason}
	}
	text := middleware.Part{Text: "so"}
	several := ended(middleware.FinishStop, text)
	several.Choices = []middleware.Message{middleware.Assistant("or so")}
	free := tool("patch", "")
	free.Kind = middleware.KindCustom
	for name, c := range map[string]struct {
		req  *middleware.Request
		resp *middleware.Response
	}{
		"nothing demands it":             {request(), ended(middleware.FinishStop, text)},
		"filtered":                       {demanding(""), ended(middleware.FinishFilter, text)},
		"refused":                        {demanding(""), ended(middleware.FinishStop, middleware.Part{Text: "No.", Native: &middleware.Native{Raw: `{"refusal":"No."}`}})},
		"cut off":                        {demanding(""), ended(middleware.FinishLength, text)},
		"a reason of the provider's own": {demanding(""), ended("pause_turn", text)},
		"a call that the provider ran":   {demanding(""), ended(middleware.FinishStop, middleware.Part{Kind: middleware.PartOpaque}, text)},
		"further choices":                {demanding(""), several},
		"no tools":                       {&middleware.Request{Messages: request().Messages, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}}, ended(middleware.FinishStop, text)},
		"a custom call": {&middleware.Request{Messages: request().Messages, Tools: []middleware.Tool{free}, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}},
			&middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "patch", Arguments: "*", Kind: middleware.KindCustom})}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{}, c.req, middlewaretest.Reply(c.resp))
			require.NoError(t, out.err)
			require.Empty(t, out.report.Notes)
		})
	}
}

// Calls that are held stay so while the model is asked for the rest.
func TestDemandedCallUnderKeepValid(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid}
	first := middlewaretest.Calls("note", goodNote, "weather", badWeather)
	out := run(t, o, demanding(""), first, middlewaretest.Text("never mind"), middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote, goodWeather}, out.arguments())

	out = run(t, o, demanding(""), middlewaretest.Calls("note", goodNote, "nosuch", "{}"), middlewaretest.Text("never mind"))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote}, out.arguments())
	require.Equal(t, middleware.FinishToolCalls, out.resp.FinishReason)
}

// The report of an error has the status of the calls that the error holds, which
// are not those of the last attempt.
func TestStatusOfAnErrorUnderKeepValid(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid}
	first := middlewaretest.Calls("note", goodNote, "weather", badWeather)
	two := middlewaretest.Calls("weather", badWeather, "note", "{}")
	for name, out := range map[string]outcome{
		"no call in the end":         run(t, o, demanding(""), first, middlewaretest.Text("never mind"), middlewaretest.Text("never mind")),
		"half of them in the end":    run(t, o, demanding(""), two, two, middlewaretest.Calls("note", goodNote)),
		"half of them, not demanded": run(t, o, request(), two, two, middlewaretest.Calls("note", goodNote)),
	} {
		require.ErrorIs(t, out.err, argsvalidate.ErrExhausted, name)
		require.Len(t, failure(t, out.err).Verdicts, 2, name)
		require.Equal(t, middleware.Invalid, out.report.Status, name)
		require.Len(t, out.report.Attempts, 3, name)
	}
}

// A call to another tool than the one that the request demands is invalid.
func TestCallToAnotherToolThanDemanded(t *testing.T) {
	t.Parallel()
	note, weather := middlewaretest.Calls("note", goodNote), middlewaretest.Calls("weather", goodWeather)
	for _, b := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
		o := argsvalidate.Options{MaxAttempts: 2, Batch: b}
		out := run(t, o, demanding("weather"), note, weather)
		require.NoError(t, out.err)
		require.Equal(t, []string{"weather " + goodWeather}, callsOf(out.resp.Message))
		require.Equal(t, "tool_choice", out.report.Attempts[0].Verdicts[0].Issues[0].Code)
		told := out.told(2)
		require.Contains(t, told[len(told)-1].Text(), "the tool weather must be called now")

		out = run(t, o, demanding("weather"), middlewaretest.Calls("note", goodNote, "note", `{"text":"b"}`), weather)
		require.NoError(t, out.err)
		require.Equal(t, []string{"weather " + goodWeather}, callsOf(out.resp.Message))
		out = run(t, o, demanding("weather"), note, note)
		require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)

		out = run(t, o, demanding("weather"), middlewaretest.Calls("note", goodNote, "weather", goodWeather))
		require.NoError(t, out.err, "it is among the calls")
		out = run(t, o, demanding("weather"), middlewaretest.Calls("note", goodNote, "weather", badWeather), weather)
		require.NoError(t, out.err)
		out = run(t, o, demanding("gone"), note)
		require.NoError(t, out.err, "the request does not declare it")
	}
	out := run(t, argsvalidate.Options{MaxAttempts: 1}, demanding("weather"), note)
	require.Equal(t, middleware.Invalid, out.report.Status)
}
