package argsvalidate_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// capped is a request with a length limit.
func capped(tokens int) *middleware.Request {
	req := request()
	req.MaxTokens = tokens
	return req
}

// afterResults is a request that ends with the results of a tool and with more messages.
func afterResults(more ...middleware.Message) *middleware.Request {
	req := request()
	c := call("1", "note", goodNote)
	req.Messages = append(req.Messages, middleware.Assistant("", c), middleware.ToolReply(c, "done"))
	req.Messages = append(req.Messages, more...)
	return req
}

// ended is a response with these parts.
func ended(reason middleware.FinishReason, parts ...middleware.Part) *middleware.Response {
	return &middleware.Response{Message: middleware.Message{Role: middleware.RoleAssistant, Parts: parts}, FinishReason: reason}
}

var thought = middleware.Part{Kind: middleware.PartReasoning, Text: "The user wants the weather."}

const (
	emptyReply     = "Your last message is empty: it has neither text nor a tool call. Call a tool, or answer; if the task is complete, say so in a short text."
	announcedReply = "Your last message announces a tool call and has none. Call a tool, or answer; if the task is complete, say so in a short text."
)

func TestEmptyAnswerIsAskedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req   *middleware.Request
		resp  *middleware.Response
		reply string
	}{
		"nothing":                      {request(), ended(middleware.FinishStop), emptyReply},
		"white space":                  {request(), ended(middleware.FinishStop, middleware.Part{Text: " \n\t"}), emptyReply},
		"reasoning only":               {request(), ended(middleware.FinishStop, thought), emptyReply},
		"reasoning behind results":     {afterResults(), ended(middleware.FinishStop, thought), emptyReply},
		"announced":                    {request(), ended(middleware.FinishToolCalls), announcedReply},
		"announced behind results":     {afterResults(), ended(middleware.FinishToolCalls), announcedReply},
		"announced by a text":          {request(), ended(middleware.FinishToolCalls, middleware.Part{Text: "Let me see."}), announcedReply},
		"user behind an answer":        {afterResults(middleware.Assistant("Sunny."), middleware.User("and now?")), ended(middleware.FinishStop), emptyReply},
		"no finish reason":             {request(), &middleware.Response{Message: middleware.Assistant(""), Native: &middleware.Native{Raw: "{}"}}, emptyReply},
		"system message at the end":    {with(request(), middleware.System("be kind")), ended(middleware.FinishStop), emptyReply},
		"empty lists in the native":    {request(), native(`{"role":"assistant","content":null,"annotations":[],"tool_calls":[],"audio":{}}`), emptyReply},
		"call of the native is no one": {request(), native(`{"content":[{"type":"thinking"}],"function_call":{"name":""}}`), emptyReply},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{}, c.req, middlewaretest.Reply(c.resp), middlewaretest.Text("Sunny."))
			require.NoError(t, out.err)
			require.Equal(t, "Sunny.", out.resp.Message.Text())
			require.Empty(t, out.report.Status)
			told := out.told(2)
			require.Len(t, told, 2)
			require.Equal(t, middleware.RoleAssistant, told[0].Role)
			require.NotEmpty(t, told[0].Text(), "strict providers refuse an empty message")
			require.Empty(t, told[0].ToolCalls)
			require.Equal(t, middleware.User(c.reply), told[1])
			require.Equal(t, told[1:], out.report.Attempts[0].Replies)
			require.Equal(t, "empty", out.report.Attempts[0].Issues[0].Code)
			require.False(t, out.report.Attempts[0].Answer)
			for _, p := range []middlewaretest.Provider{middlewaretest.OpenAI, middlewaretest.Anthropic, middlewaretest.Gemini} {
				if middlewaretest.Check(p, c.req) == nil {
					require.NoError(t, middlewaretest.Check(p, out.asked[1]))
				}
			}

			out = run(t, advanced(argsvalidate.Advanced{EmptyAnswers: argsvalidate.EmptyOff}), c.req, middlewaretest.Reply(c.resp))
			require.NoError(t, out.err)
			require.Empty(t, out.report.Status)
		})
	}
}

// with returns req with more messages.
func with(req *middleware.Request, more ...middleware.Message) *middleware.Request {
	return req.With(more...)
}

// native is an empty message with that text of the provider.
func native(raw string) *middleware.Response {
	resp := ended(middleware.FinishStop)
	resp.Message.Native = &middleware.Native{Raw: raw}
	return resp
}

func TestAnswersThatAreNotEmpty(t *testing.T) {
	t.Parallel()
	nothing := ended(middleware.FinishStop)
	several := ended(middleware.FinishStop)
	several.Choices = []middleware.Message{middleware.Assistant("or so")}
	untooled := request()
	untooled.Tools = nil
	stops := request()
	stops.Stop = []string{"END"}
	tokens := request()
	tokens.Params = json.RawMessage(`{"stop_token_ids":[7]}`)
	nowhere := request()
	nowhere.ToolChoice.Mode, nowhere.AllowedTools = middleware.ToolRequired, []string{}
	anthropic := ended(middleware.FinishStopSequence)
	anthropic.Native = &middleware.Native{Dialect: "anthropic-messages"}
	for name, c := range map[string]struct {
		req  *middleware.Request
		resp *middleware.Response
	}{
		"no tools":                     {untooled, nothing},
		"text":                         {request(), ended(middleware.FinishStop, middleware.Part{Text: "Done."})},
		"refused":                      {request(), ended(middleware.FinishStop, middleware.Part{Text: "No.", Native: &middleware.Native{Raw: `{"refusal":"No."}`}})},
		"filtered":                     {request(), ended(middleware.FinishFilter)},
		"paused":                       {request(), ended("pause_turn")},
		"cut off":                      {request(), ended(middleware.FinishLength)},
		"cut off in reasoning":         {request(), ended(middleware.FinishLength, thought)},
		"queued":                       {request(), ended("queued")},
		"in progress":                  {request(), ended("in_progress")},
		"load":                         {request(), ended("load")},
		"unload":                       {request(), ended("unload")},
		"a stop sequence fired":        {stops, anthropic},
		"a stop sequence may":          {stops, nothing},
		"a stop token may":             {tokens, nothing},
		"prefilled":                    {with(request(), middleware.Assistant("The answer is")), nothing},
		"prefilled and announced":      {with(request(), middleware.Assistant("The answer is")), ended(middleware.FinishToolCalls)},
		"further choices":              {request(), several},
		"a call that the provider ran": {request(), ended(middleware.FinishStop, middleware.Part{Kind: middleware.PartOpaque})},
		"an image":                     {request(), ended(middleware.FinishStop, middleware.Part{Kind: middleware.PartMedia, URL: "https://example.com/a.png"})},
		"images of OpenRouter":         {request(), native(`{"content":"","images":[{"type":"image_url"}]}`)},
		"citations of an empty text":   {request(), ended(middleware.FinishStop, middleware.Part{Native: &middleware.Native{Raw: `{"type":"text","text":"","citations":[{"url":"https://example.com"}]}`}})},
		"no tool can be called":        {nowhere, ended(middleware.FinishStop, middleware.Part{Text: "Done."})},
		"a model without reasons":      {request(), ended("")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, advanced(argsvalidate.Advanced{EmptyAnswers: argsvalidate.EmptyAlways}), c.req, middlewaretest.Reply(c.resp))
			require.NoError(t, out.err)
			require.Empty(t, out.report.Status)
			require.Empty(t, out.report.Notes)
			require.Empty(t, out.report.Attempts[0].Issues)
		})
	}
	// Anthropic names a stop sequence, so a plain stop is one.
	plain := ended(middleware.FinishStop)
	plain.Native = &middleware.Native{Dialect: "anthropic-messages"}
	run(t, argsvalidate.Options{}, stops, middlewaretest.Reply(plain), middlewaretest.Text("Sunny."))
}

// Nothing at all behind the results of tools says that the turn is complete.
func TestNothingBehindResults(t *testing.T) {
	t.Parallel()
	const note = "the answer is empty: behind the results of tools, that is the end of a turn"
	nothing := middlewaretest.Reply(ended(middleware.FinishStop))
	reminder := middleware.User("<system-reminder>\nBe brief.\n</system-reminder>")
	for name, req := range map[string]*middleware.Request{
		"results": afterResults(), "a reminder behind them": afterResults(reminder), "a blank message behind them": afterResults(middleware.User(" ")),
		"a message of a framework behind them": afterResults(middleware.User("Please return text or call a tool.")),
	} {
		out := run(t, argsvalidate.Options{MaxAttempts: 1}, req, nothing)
		require.NoError(t, out.err, name)
		require.Empty(t, out.report.Status, name)
		require.Equal(t, []string{note}, out.report.Notes, name)

		out = run(t, advanced(argsvalidate.Advanced{EmptyAnswers: argsvalidate.EmptyAlways}), req, nothing, nothing)
		require.NoError(t, out.err, name)
		require.Equal(t, emptyReply, out.told(2)[1].Text(), name)
		require.Equal(t, []string{note}, out.report.Notes, name)
		require.Empty(t, out.report.Status, name)
	}
	for name, first := range map[string]middlewaretest.Turn{
		"reasoning":       middlewaretest.Reply(ended(middleware.FinishStop, thought)),
		"announced":       middlewaretest.Reply(ended(middleware.FinishToolCalls)),
		"an invalid call": middlewaretest.Calls("weather", badWeather),
	} {
		out := run(t, argsvalidate.Options{}, afterResults(), first, nothing)
		require.NoError(t, out.err, name)
		require.Contains(t, out.report.Notes, note, name)
	}
	out := run(t, argsvalidate.Options{MaxAttempts: 1, Advanced: argsvalidate.Advanced{EmptyAnswers: argsvalidate.EmptyAlways}}, afterResults(), nothing)
	require.NoError(t, out.err)
	require.Equal(t, []string{note}, out.report.Notes)

	// Responses has an item for the answer. An empty one is an answer, and reasoning comes with each.
	item := ended(middleware.FinishStop, thought, middleware.Part{Kind: middleware.PartText})
	item.Native = &middleware.Native{Dialect: "openai-responses"}
	out = run(t, argsvalidate.Options{}, afterResults(), middlewaretest.Reply(item))
	require.NoError(t, out.err)
	require.Equal(t, []string{note}, out.report.Notes)
	out = run(t, argsvalidate.Options{}, request(), middlewaretest.Reply(item), middlewaretest.Text("Sunny."))
	require.NoError(t, out.err)
	require.Equal(t, emptyReply, out.told(2)[1].Text())
}

func TestEmptyAnswerStaysEmpty(t *testing.T) {
	t.Parallel()
	nothing, thinks := middlewaretest.Reply(ended(middleware.FinishStop)), middlewaretest.Reply(ended(middleware.FinishStop, thought))
	announces := middlewaretest.Reply(ended(middleware.FinishToolCalls))
	for name, c := range map[string]struct {
		o     argsvalidate.Options
		req   *middleware.Request
		turns []middlewaretest.Turn
		note  string
	}{
		"nothing twice":                    {argsvalidate.Options{}, request(), []middlewaretest.Turn{nothing, nothing}, "attempt 2 has neither text nor a tool call"},
		"one attempt":                      {argsvalidate.Options{MaxAttempts: 1}, request(), []middlewaretest.Turn{nothing}, "attempt 1 has neither text nor a tool call"},
		"reasoning twice behind results":   {argsvalidate.Options{}, afterResults(), []middlewaretest.Turn{thinks, thinks}, "attempt 2 has neither text nor a tool call"},
		"announced twice":                  {argsvalidate.Options{}, request(), []middlewaretest.Turn{announces, announces}, "attempt 2 announces a tool call and has none"},
		"behind an invalid call":           {argsvalidate.Options{MaxAttempts: 2}, request(), []middlewaretest.Turn{middlewaretest.Calls("weather", badWeather), nothing}, "attempt 2 has neither text nor a tool call"},
		"an invalid call between the two":  {argsvalidate.Options{MaxAttempts: 9}, request(), []middlewaretest.Turn{nothing, middlewaretest.Calls("weather", badWeather), nothing}, "attempt 3 has neither text nor a tool call"},
		"behind results, with everything":  {advanced(argsvalidate.Advanced{EmptyAnswers: argsvalidate.EmptyAlways}), afterResults(), []middlewaretest.Turn{nothing, thinks}, "attempt 2 has neither text nor a tool call"},
		"behind a call and reasoning only": {argsvalidate.Options{}, afterResults(), []middlewaretest.Turn{middlewaretest.Calls("weather", badWeather), thinks, thinks}, "attempt 3 has neither text nor a tool call"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []middleware.OnExhausted{0, middleware.Raise, middleware.DropInvalid} {
				c.o.OnExhausted = policy
				out := run(t, c.o, c.req, c.turns...)
				require.ErrorIs(t, out.err, argsvalidate.ErrEmpty)
				require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
				require.Equal(t, "the model sent an empty message", failure(t, out.err).ClientMessage())
				require.Equal(t, middleware.Invalid, out.report.Status)
			}
			c.o.OnExhausted = middleware.Pass
			out := run(t, c.o, c.req, c.turns...)
			require.NoError(t, out.err)
			require.Equal(t, middleware.Invalid, out.report.Status)
			require.Contains(t, out.report.Notes, c.note)
			last := out.report.Attempts[len(c.turns)-1]
			require.Equal(t, "empty", last.Issues[0].Code)
			require.Equal(t, len(c.turns)-1, out.report.Final)
			require.Empty(t, last.Replies)
			why, unusable := out.resp.Unusable()
			require.True(t, unusable)
			require.Equal(t, last.Issues[0].Message, why)
		})
	}
}

// Held calls are not lost to an empty message.
func TestEmptyAnswerUnderKeepValid(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.Pass}
	first, nothing := middlewaretest.Calls("note", goodNote, "weather", badWeather), middlewaretest.Reply(ended(middleware.FinishStop))
	out := run(t, o, request(), first, nothing, middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote, goodWeather}, out.arguments())

	out = run(t, o, request(), first, nothing, nothing)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{goodNote, badWeather}, out.arguments())
}

// A re-ask that fails leaves the marked message, or an error with both causes.
func TestReaskOfAFaultThatFails(t *testing.T) {
	t.Parallel()
	broken := &middleware.ModelError{StatusCode: 503}
	for name, c := range map[string]struct {
		req   *middleware.Request
		first middlewaretest.Turn
		is    error
		code  string
	}{
		"empty":    {request(), middlewaretest.Reply(ended(middleware.FinishStop)), argsvalidate.ErrEmpty, "empty"},
		"demanded": {demanding(""), middlewaretest.Text("It is sunny."), argsvalidate.ErrNoCall, "tool_choice"},
	} {
		out := run(t, argsvalidate.Options{OnExhausted: middleware.Pass}, c.req, c.first, middlewaretest.Fail(broken))
		require.NoError(t, out.err, name)
		require.Equal(t, middleware.Invalid, out.report.Status, name)
		require.Zero(t, out.report.Final, name)
		require.Equal(t, c.code, out.report.Attempts[0].Issues[0].Code, name)

		out = run(t, argsvalidate.Options{}, c.req, c.first, middlewaretest.Fail(broken))
		require.ErrorIs(t, out.err, broken, name)
		require.ErrorIs(t, out.err, c.is, name)
	}
}

// The check of a plain answer does not allocate: it costs what a filtered one costs.
func TestPlainAnswerDoesNotAllocate(t *testing.T) { // not parallel: it counts allocations
	resp := ended(middleware.FinishStop, thought, middleware.Part{Text: "It is sunny."})
	call := argsvalidate.New(argsvalidate.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) { return resp, nil })
	req := request()
	plain := testing.AllocsPerRun(100, func() { _, _ = call(t.Context(), req) })
	resp = ended(middleware.FinishFilter, thought, thought)
	require.Equal(t, testing.AllocsPerRun(100, func() { _, _ = call(t.Context(), req) }), plain)
}

func TestTruncatedCallIsAskedWithMoreTokens(t *testing.T) {
	t.Parallel()
	cut := truncated(call("1", "weather", `{"city": "Os`))
	good := middlewaretest.Calls("weather", goodWeather)
	out := run(t, argsvalidate.Options{}, capped(50), cut, good)
	require.NoError(t, out.err)
	require.Equal(t, 100, out.asked[1].MaxTokens)
	require.Equal(t, []string{"the call of attempt 1 was cut off at the length limit of 50 tokens: attempt 2 has 100"}, out.report.Notes)

	out = run(t, advanced(argsvalidate.Advanced{RaiseTokens: 70}), capped(50), cut, good)
	require.Equal(t, 70, out.asked[1].MaxTokens)

	out = run(t, argsvalidate.Options{MaxAttempts: 5}, capped(50), middlewaretest.Calls("weather", badWeather), cut, middlewaretest.Calls("weather", badWeather), good)
	require.NoError(t, out.err)
	require.Equal(t, []int{50, 50, 100, 100}, []int{out.asked[0].MaxTokens, out.asked[1].MaxTokens, out.asked[2].MaxTokens, out.asked[3].MaxTokens})
}

// A truncated call whose limit cannot be raised is final.
func TestTruncatedCallIsFinal(t *testing.T) {
	t.Parallel()
	cut := truncated(call("1", "weather", `{"city": "Os`))
	for name, c := range map[string]struct {
		o     argsvalidate.Options
		req   *middleware.Request
		turns []middlewaretest.Turn
		note  string
	}{
		"no limit":        {argsvalidate.Options{}, request(), []middlewaretest.Turn{cut}, "the request states no length limit"},
		"off":             {advanced(argsvalidate.Advanced{RaiseTokens: argsvalidate.NoRaise}), capped(50), []middlewaretest.Turn{cut}, "the length limit is not raised"},
		"bounded":         {advanced(argsvalidate.Advanced{RaiseTokens: 50}), capped(50), []middlewaretest.Turn{cut}, "the length limit may not be raised further"},
		"the largest":     {argsvalidate.Options{}, capped(math.MaxInt/2 + 1), []middlewaretest.Turn{cut}, "the length limit may not be raised further"},
		"twice":           {argsvalidate.Options{MaxAttempts: 9}, capped(50), []middlewaretest.Turn{cut, cut}, "the length limit was raised before"},
		"refused":         {argsvalidate.Options{}, capped(50), []middlewaretest.Turn{cut, middlewaretest.Fail(&middleware.ModelError{StatusCode: 400})}, "attempt 2 failed, so the last response was returned"},
		"one attempt":     {argsvalidate.Options{MaxAttempts: 1}, capped(50), []middlewaretest.Turn{cut}, ""},
		"kept valid ones": {argsvalidate.Options{Batch: batch.KeepValid}, request(), []middlewaretest.Turn{truncated(call("1", "note", goodNote), call("2", "weather", "{"))}, "the request states no length limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, c.o, c.req, c.turns...)
			require.Error(t, out.err)
			if name != "refused" {
				require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
			}
			c.o.OnExhausted = middleware.Pass
			out = run(t, c.o, c.req, c.turns...)
			require.NoError(t, out.err)
			require.Equal(t, middleware.Invalid, out.report.Status)
			if c.note != "" {
				require.Contains(t, out.report.Notes[len(out.report.Notes)-1], c.note)
			}
		})
	}
}

// The limit is not raised past what a budget has left.
func TestTruncatedCallWithinABudget(t *testing.T) {
	t.Parallel()
	cut := &middleware.Response{Message: middleware.Assistant("", call("1", "weather", "{")), FinishReason: middleware.FinishLength, Usage: middleware.Usage{InputTokens: 30, OutputTokens: 50}}
	for name, c := range map[string]struct {
		limits budget.Limits
		calls  int
	}{
		"enough":         {budget.Limits{Tokens: 210}, 2},
		"too little":     {budget.Limits{Tokens: 209}, 1},
		"no call left":   {budget.Limits{ModelCalls: 1}, 1},
		"a call is left": {budget.Limits{ModelCalls: 2}, 2},
	} {
		ctx, _ := budget.With(t.Context(), c.limits)
		calls := 0
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) { calls++; return cut, nil }
		resp, err := middleware.Chain(argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass}), budget.New())(model)(ctx, capped(50))
		require.NoError(t, err, name)
		require.Equal(t, middleware.Invalid, resp.Report.Status, name)
		require.Equal(t, c.calls, calls, name)
	}
}

func TestEmptyAnswersWords(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]argsvalidate.EmptyAnswers{"off": argsvalidate.EmptyOff, "default": argsvalidate.EmptyDefault, "always": argsvalidate.EmptyAlways} {
		var e argsvalidate.EmptyAnswers
		require.NoError(t, e.UnmarshalText([]byte(word)))
		require.Equal(t, want, e)
		text, err := e.MarshalText()
		require.NoError(t, err)
		require.Equal(t, word, string(text))
		require.Error(t, e.UnmarshalText([]byte("never")))
	}
	require.Equal(t, "default", argsvalidate.EmptyAnswers(0).String())
	require.ErrorContains(t, advanced(argsvalidate.Advanced{EmptyAnswers: 4}).Validate(), "EmptyAnswers")
	require.ErrorContains(t, advanced(argsvalidate.Advanced{RaiseTokens: -2}).Validate(), "RaiseTokens")
}

func advanced(a argsvalidate.Advanced) argsvalidate.Options { return argsvalidate.Options{Advanced: a} }
