package argsvalidate_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// A call of free text never becomes a function call whose arguments are no JSON.
func TestKeepValidKeepsTheKindOfACorrection(t *testing.T) {
	t.Parallel()
	for _, kind := range []middleware.Kind{middleware.KindCustom, middleware.KindBuiltin} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			patch := middleware.ToolCall{ID: "p", Name: "patch", Arguments: "*** Begin Patch", Kind: kind}
			o := argsvalidate.Options{Batch: batch.KeepValid}
			req := request(note, middleware.Tool{Name: "patch", Kind: kind})
			out := run(t, o, req, answer(call("a", "note", goodNote), call("b", "edit_file", "{}")), answer(patch))
			require.NoError(t, out.err)
			require.Equal(t, []middleware.ToolCall{call("a", "note", goodNote), patch}, out.resp.Message.ToolCalls)
			require.Equal(t, middleware.Unchecked, out.report.Status, "free text is not validated")
		})
	}
}

// Clients without ids number the calls of each turn anew, or leave ids out.
func TestKeepValidKeepsTheOrderOfParallelCalls(t *testing.T) {
	t.Parallel()
	days := func(ids []string, values ...string) middlewaretest.Turn {
		var calls []middleware.ToolCall
		for i, v := range values {
			calls = append(calls, call(ids[i], "weather", `{"city": "Oslo", "days": `+v+`}`))
		}
		return answer(calls...)
	}
	for name, ids := range map[string][]string{
		"no ids":           {"", "", ""},
		"numbered by turn": {"call_0", "call_1", "call_2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := argsvalidate.Options{Batch: batch.KeepValid}
			out := run(t, o, request(), days(ids, "1", `"two"`, `"three"`), days(ids, "2", "3"))
			require.NoError(t, out.err)
			require.Equal(t, []string{`{"city": "Oslo", "days": 1}`, `{"city": "Oslo", "days": 2}`, `{"city": "Oslo", "days": 3}`}, out.arguments())
		})
	}
}

// The id of a new call may be that of a kept one.
func TestKeepValidGivesNewCallsIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid}
	out := run(t, o, request(), answer(call("x", "note", goodNote), call("y", "weather", badWeather)),
		answer(call("x", "weather", goodWeather), call("y", "note", `{"text": "new"}`)))
	require.NoError(t, out.err)
	require.Equal(t, []middleware.ToolCall{call("x", "note", goodNote), call("y", "weather", goodWeather), call("toolmend_3", "note", `{"text": "new"}`)}, out.resp.Message.ToolCalls)
}

// The error speaks of the message as a whole, not of the last one, in which all
// was valid.
func TestKeepValidErrorNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 2}
	out := run(t, o, request(), answer(call("1", "note", badNote), call("2", "weather", badWeather), call("3", "note", goodNote)),
		answer(call("4", "weather", goodWeather)))
	require.EqualError(t, out.err, "argsvalidate: attempts exhausted: arguments still invalid after 2 attempts; note: type")
	e := failure(t, out.err)
	require.Equal(t, []middleware.ToolCall{call("1", "note", badNote), call("2", "weather", goodWeather), call("3", "note", goodNote)}, e.Response.Message.ToolCalls)
	require.Len(t, e.Verdicts, 3)
	require.Len(t, e.Replies, 3)
	for i, ok := range []bool{false, true, true} {
		require.Equal(t, ok, e.Verdicts[i].OK())
		require.Equal(t, e.Response.Message.ToolCalls[i], e.Verdicts[i].Call, "with the id of the message")
		require.Equal(t, e.Response.Message.ToolCalls[i].ID, e.Replies[i].ToolCallID)
		require.Equal(t, !ok, e.Replies[i].IsError)
	}
}

// What the sink was shown last is the message that comes out.
func TestSinkShowsTheMessageThatComesOut(t *testing.T) {
	t.Parallel()
	held, bad := call("1", "note", goodNote), call("2", "weather", badWeather)
	keep := argsvalidate.Options{Batch: batch.KeepValid}
	refusal := middlewaretest.Fail(&middleware.ModelError{Output: "{", Err: middleware.ErrInvalidToolCall})
	for name, c := range map[string]struct {
		o     argsvalidate.Options
		turns []middlewaretest.Turn
		want  []string
	}{
		"KeepValid": {keep, []middlewaretest.Turn{speaking("first", held, bad), speaking("second", call("3", "weather", goodWeather))},
			[]string{"text first", "reset", "text second", "reset", "text first", "tool_call note " + goodNote, "tool_call weather " + goodWeather}},
		"KeepValid, the first one is silent": {keep, []middlewaretest.Turn{speaking("", held, bad), speaking("second", call("3", "weather", goodWeather))},
			[]string{"text second", "reset", "tool_call note " + goodNote, "tool_call weather " + goodWeather}},
		"KeepValid, an answer of its own": {keep, []middlewaretest.Turn{speaking("first", bad), speaking("second", held)},
			[]string{"text first", "reset", "text second", "tool_call note " + goodNote}},
		"Pass after a refusal": {argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass}, []middlewaretest.Turn{speaking("first", held, bad), refusal},
			[]string{"text first", "reset", "text first", "tool_call note " + goodNote}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, out := watched(t, c.o, c.turns...)
			require.NoError(t, out.err)
			require.Equal(t, c.want, shown)
		})
	}
}

// Whatever the model answers, a call that it was told is held comes out, unless
// it has sent the whole batch again or has given the batch up in words; and no
// call comes out that it did not send.
func TestKeepValidNeverLosesAHeldCall(t *testing.T) {
	t.Parallel()
	arguments := map[string][]string{
		"note":    {`{"text": "a"}`, `{"text": "b"}`, `{ "text":"a" }`, badNote},
		"weather": {goodWeather, `{"city": "Rome"}`, badWeather},
		"ghost":   {`{}`},
	}
	message := rapid.Custom(func(t *rapid.T) middleware.Message {
		var calls []middleware.ToolCall
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			name := rapid.SampledFrom([]string{"note", "weather", "ghost"}).Draw(t, "name")
			id := rapid.SampledFrom([]string{"", "call_0", "call_1", "call_2", "x"}).Draw(t, "id")
			calls = append(calls, call(id, name, rapid.SampledFrom(arguments[name]).Draw(t, "arguments")))
		}
		return middleware.Assistant("so", calls...)
	})
	rapid.Check(t, func(rt *rapid.T) {
		messages := rapid.SliceOfN(message, 2, 5).Draw(rt, "messages")
		n := 0
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			n++
			return &middleware.Response{Message: messages[n-1], FinishReason: middleware.FinishStop}, nil
		}
		o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: len(messages), OnExhausted: middleware.Pass}
		resp, err := argsvalidate.New(unmended(o))(model)(t.Context(), request())
		require.NoError(rt, err)
		report := resp.Report

		content := func(c middleware.ToolCall) string { return c.Name + rawjson.Canonical(c.Arguments) }
		sent, out, ids := map[string]bool{}, map[string]bool{}, map[string]bool{}
		for _, m := range messages[:n] {
			for _, c := range m.ToolCalls {
				sent[content(c)] = true
			}
		}
		for _, c := range resp.Message.ToolCalls {
			require.True(rt, sent[content(c)], "the model sent it")
			require.False(rt, ids[c.ID], "ids are unique")
			require.NotEmpty(rt, c.ID)
			out[content(c)], ids[c.ID] = true, true
			if report.Status == middleware.Valid {
				verdicts, err := argsvalidate.NewValidator(unmended(argsvalidate.Options{})).Validate(t.Context(), request().Tools, c)
				require.NoError(rt, err, "%v", verdicts)
			}
		}
		if slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "given up") }) {
			return
		}
		for i, a := range report.Attempts {
			for k, reply := range a.Replies {
				if !strings.Contains(reply.Text(), "is held until") || out[content(a.Verdicts[k].Call)] {
					continue
				}
				require.True(rt, slices.ContainsFunc(messages[i+1:n], func(m middleware.Message) bool {
					return len(m.ToolCalls) >= len(a.Verdicts) && slices.ContainsFunc(m.ToolCalls, func(c middleware.ToolCall) bool { return c.Name == reply.ToolName })
				}), "lost: %v", a.Verdicts[k].Call)
			}
		}
	})
}

// A text that textcall could not read is not an answer that gives up a held batch.
func TestKeepValidAndATextThatCannotBeRead(t *testing.T) {
	t.Parallel()
	unread := middleware.Response{Message: middleware.Assistant("Action: weather"), FinishReason: middleware.FinishStop}
	unread.Report = middleware.Report{Status: middleware.Invalid, Attempts: []middleware.Attempt{
		{Message: unread.Message, Issues: []middleware.Issue{{Code: "unreadable", Message: "no input"}}}}}
	first := answer(call("a", "note", goodNote), call("b", "weather", badWeather))
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.Pass}, request(), first, middlewaretest.Reply(&unread))
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.resp.Report.Status)
	out = run(t, argsvalidate.Options{Batch: batch.KeepValid}, request(), first, middlewaretest.Reply(&unread))
	require.ErrorIs(t, out.err, argsvalidate.ErrInvalid)
}
