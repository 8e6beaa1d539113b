package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// limited returns request with edit made.
func limited(edit func(*middleware.Request), tools ...middleware.Tool) *middleware.Request {
	req := request(tools...)
	edit(req)
	return req
}

func noTool(r *middleware.Request)    { r.ToolChoice.Mode = middleware.ToolNone }
func onlyNote(r *middleware.Request)  { r.AllowedTools = []string{"note"} }
func noToolAt(r *middleware.Request)  { r.AllowedTools = []string{} }
func oneCall(r *middleware.Request)   { r.NoParallelCalls = true }
func namedNote(r *middleware.Request) { r.ToolChoice.Name = "note" }

func TestForbiddenCallsAreAskedForAgain(t *testing.T) {
	t.Parallel()
	weatherCall, noteCall, words := middlewaretest.Calls("weather", goodWeather), middlewaretest.Calls("note", goodNote), middlewaretest.Text("Sunny.")
	for name, c := range map[string]struct {
		limit       func(*middleware.Request)
		first, then middlewaretest.Turn
		codes       [][]string
		told        []string
	}{
		"none": {noTool, weatherCall, words, [][]string{{"tool_choice"}},
			[]string{"Tool 'weather' was not executed: the request allows no tool call now (tool choice none). Answer without a tool."}},
		"none, an unknown tool": {noTool, middlewaretest.Calls("wind", "{}"), words, [][]string{{"tool_choice"}},
			[]string{"Tool 'wind' was not executed: the request allows no tool call now (tool choice none). Answer without a tool."}},
		"an empty list": {noToolAt, weatherCall, words, [][]string{{"tool_choice"}},
			[]string{"Tool 'weather' was not executed: the request allows only calls of these tools now: none."}},
		"another tool than allowed": {onlyNote, weatherCall, noteCall, [][]string{{"tool_choice"}},
			[]string{"Tool 'weather' was not executed: the request allows only calls of these tools now: note."}},
		"with wrong arguments too": {onlyNote, middlewaretest.Calls("weather", badWeather), noteCall, [][]string{{"tool_choice"}}, nil},
		"an unknown tool": {onlyNote, middlewaretest.Calls("wind", "{}"), noteCall, [][]string{{"unknown_tool"}},
			[]string{"Tool 'wind' does not exist. Available tools: note. Call one of them by its exact name."}},
		"beside an allowed one": {onlyNote, middlewaretest.Calls("note", goodNote, "weather", goodWeather), noteCall, [][]string{nil, {"tool_choice"}}, nil},
		"two calls": {oneCall, middlewaretest.Calls("weather", goodWeather, "note", goodNote), noteCall, [][]string{nil, {"parallel_calls"}}, []string{
			"This call was not executed, because its message holds too many tool calls.",
			"Tool 'note' was not executed: the request allows one tool call in a message. Send one call now, and the others in later messages, if they are still needed.",
		}},
		"two calls, the first forbidden": {func(r *middleware.Request) { oneCall(r); onlyNote(r) },
			middlewaretest.Calls("weather", goodWeather, "note", goodNote), noteCall, [][]string{{"tool_choice"}, nil}, nil},
		"another tool than the named one": {namedNote, weatherCall, noteCall, [][]string{{"tool_choice"}},
			[]string{"Tool 'weather' was not executed: the tool note must be called now, and this is a call to another tool."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
				req := limited(c.limit)
				out := run(t, argsvalidate.Options{Batch: policy}, req, c.first, c.then)
				require.NoError(t, out.err)
				require.LessOrEqual(t, len(out.resp.Message.ToolCalls), 1)
				require.NotEqual(t, middleware.Invalid, out.report.Status)
				var found [][]string
				for _, v := range out.report.Attempts[0].Verdicts {
					found = append(found, codes(v))
				}
				require.Equal(t, c.codes, found)
				for i, want := range c.told {
					require.Equal(t, want, out.told(2)[1+i].Text())
				}
				require.Equal(t, [3]any{req.ToolChoice, req.AllowedTools, req.NoParallelCalls},
					[3]any{out.asked[1].ToolChoice, out.asked[1].AllowedTools, out.asked[1].NoParallelCalls}, "the re-ask keeps the limits")
			}
		})
	}
}

func TestPermittedCalls(t *testing.T) {
	t.Parallel()
	builtin := middleware.Tool{Name: "computer", Kind: middleware.KindBuiltin}
	spaced := tool("find", "")
	spaced.Namespace = "crm"
	spacedCall := middleware.ToolCall{ID: "1", Name: "find", Namespace: "crm", Arguments: "{}"}
	approval := middleware.ToolCall{ID: "a", Name: "mcp_approval_request", Kind: middleware.KindBuiltin, Arguments: "{}"}
	allow := func(names ...string) func(*middleware.Request) {
		return func(r *middleware.Request) { r.AllowedTools = names }
	}
	announces := func(r *middleware.Request) {
		onlyNote(r)
		r.Messages = append([]middleware.Message{middleware.System("Also: `crm_find`.")}, r.Messages...)
	}
	for name, c := range map[string]struct {
		req   *middleware.Request
		calls []middleware.ToolCall
	}{
		"no limit, two calls":              {request(), []middleware.ToolCall{call("1", "weather", goodWeather), call("2", "note", goodNote)}},
		"allowed twice":                    {limited(onlyNote), []middleware.ToolCall{call("1", "note", goodNote), call("2", "note", `{"text":"b"}`)}},
		"one call":                         {limited(oneCall), []middleware.ToolCall{call("1", "note", goodNote)}},
		"another beside the named one":     {limited(namedNote), []middleware.ToolCall{call("1", "weather", goodWeather), call("2", "note", goodNote)}},
		"the named one is not in the list": {limited(func(r *middleware.Request) { namedNote(r); r.AllowedTools = []string{"weather"} }), []middleware.ToolCall{call("1", "note", goodNote)}},
		"a misspelt allowed one":           {limited(onlyNote), []middleware.ToolCall{call("1", "Note", goodNote)}},
		"a namespace":                      {limited(allow("crm"), spaced), []middleware.ToolCall{spacedCall}},
		"a tool of a namespace":            {limited(allow("find"), spaced), []middleware.ToolCall{spacedCall}},
		"an announced tool":                {limited(announces), []middleware.ToolCall{call("1", "crm_find", "{}")}},
		"a built-in tool":                  {limited(allow("computer"), builtin), []middleware.ToolCall{{ID: "1", Name: "computer", Kind: middleware.KindBuiltin}}},
		"an approval outside of the list":  {limited(onlyNote), []middleware.ToolCall{approval}},
		"an approval beside the one call":  {limited(oneCall), []middleware.ToolCall{call("1", "note", goodNote), approval}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{Mend: mend.Default()}, c.req, answer(c.calls...))
			require.NoError(t, out.err)
			require.Len(t, out.resp.Message.ToolCalls, len(c.calls))
		})
	}
}

func TestForbiddenCallsOfOtherKinds(t *testing.T) {
	t.Parallel()
	custom, builtin := middleware.Tool{Name: "patch", Kind: middleware.KindCustom}, middleware.Tool{Name: "computer", Kind: middleware.KindBuiltin}
	for _, c := range []middleware.ToolCall{{ID: "1", Name: "patch", Arguments: "*", Kind: middleware.KindCustom}, {ID: "1", Name: "computer", Kind: middleware.KindBuiltin}} {
		for _, limit := range []func(*middleware.Request){noTool, onlyNote} {
			out := run(t, argsvalidate.Options{MaxAttempts: 1}, limited(limit, note, custom, builtin), answer(c))
			require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
			require.Equal(t, []string{"tool_choice"}, codes(failure(t, out.err).Verdicts[0]))
		}
	}
}

// Many servers ignore the limit, so the model is asked for one call once.
func TestSeveralCallsAreAskedForOnce(t *testing.T) {
	t.Parallel()
	two := middlewaretest.Calls("weather", goodWeather, "note", goodNote)
	pass := run(t, argsvalidate.Options{OnExhausted: middleware.Pass}, limited(oneCall), two, two)
	require.NoError(t, pass.err)
	require.Len(t, pass.resp.Message.ToolCalls, 2)
	require.Equal(t, middleware.Invalid, pass.report.Status)

	drop := run(t, argsvalidate.Options{OnExhausted: middleware.DropInvalid}, limited(oneCall), two, two)
	require.NoError(t, drop.err)
	require.Equal(t, []string{goodWeather}, drop.arguments())
	require.Equal(t, middleware.Valid, drop.report.Status)

	raise := run(t, argsvalidate.Options{MaxAttempts: 5}, limited(oneCall), two, middlewaretest.Calls("weather", badWeather), two)
	require.ErrorIs(t, raise.err, argsvalidate.ErrExhausted)
	require.Equal(t, "note: this call is not allowed (3 attempts)", failure(t, raise.err).ClientMessage())
	require.Contains(t, raise.err.Error(), "note: parallel_calls")
}

func TestForbiddenCallsStay(t *testing.T) {
	t.Parallel()
	again := middlewaretest.Calls("weather", goodWeather)
	raise := run(t, argsvalidate.Options{MaxAttempts: 2}, limited(noTool), again, again)
	require.ErrorIs(t, raise.err, argsvalidate.ErrInvalid)
	require.Equal(t, "weather: this call is not allowed (2 attempts)", failure(t, raise.err).ClientMessage())
	pass := run(t, argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass}, limited(noTool), again, again)
	require.NoError(t, pass.err)
	require.Equal(t, middleware.Invalid, pass.report.Status)
	require.Equal(t, []string{goodWeather}, pass.arguments())
}

// With batch.KeepValid the model need not repeat the allowed call, and a forbidden call is
// withdrawn or replaced.
func TestForbiddenCallUnderKeepValid(t *testing.T) {
	t.Parallel()
	keep := argsvalidate.Options{Batch: batch.KeepValid}
	both := middlewaretest.Calls("note", goodNote, "weather", goodWeather)
	out := run(t, keep, limited(onlyNote), both, middlewaretest.Text("So be it."))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote}, out.arguments())
	out = run(t, keep, limited(onlyNote), both, middlewaretest.Calls("note", `{"text": "b"}`))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote, `{"text": "b"}`}, out.arguments())
	forbidden := middlewaretest.Calls("weather", goodWeather, "weather", goodWeather)
	out = run(t, keep, limited(onlyNote), forbidden, middlewaretest.Calls("note", goodNote))
	require.NoError(t, out.err)
	require.Equal(t, []string{goodNote}, out.arguments())
}

func TestValidateTurnEnforcesTheRequest(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	calls := []middleware.ToolCall{call("1", "weather", goodWeather), call("2", "note", goodNote)}
	for name, c := range map[string]struct {
		limit func(*middleware.Request)
		turn  argsvalidate.Turn
		want  [][]string
	}{
		"none":                     {noTool, argsvalidate.Turn{Calls: calls}, [][]string{{"tool_choice"}, {"tool_choice"}}},
		"allowed":                  {onlyNote, argsvalidate.Turn{Calls: calls}, [][]string{{"tool_choice"}, nil}},
		"one call":                 {oneCall, argsvalidate.Turn{Calls: calls}, [][]string{nil, {"parallel_calls"}}},
		"one call beside others":   {oneCall, argsvalidate.Turn{Calls: calls[:1], Beside: calls[1:]}, [][]string{nil}},
		"named":                    {namedNote, argsvalidate.Turn{Calls: calls[:1]}, [][]string{{"tool_choice"}}},
		"named, and beside it":     {namedNote, argsvalidate.Turn{Calls: calls[:1], Beside: calls[1:]}, [][]string{nil}},
		"cut off, and not allowed": {onlyNote, argsvalidate.Turn{Calls: calls[:1], Truncated: true}, [][]string{{"tool_choice"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.turn.Request = limited(c.limit)
			verdicts, _ := v.ValidateTurn(t.Context(), c.turn)
			var found [][]string
			for _, v := range verdicts {
				found = append(found, codes(v))
			}
			require.Equal(t, c.want, found)
		})
	}
}
