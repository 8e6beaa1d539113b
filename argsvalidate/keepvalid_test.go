package argsvalidate_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// names and arguments of what came out, in order.
func callsOf(m middleware.Message) []string {
	var all []string
	for _, c := range m.ToolCalls {
		all = append(all, c.Name+" "+c.Arguments)
	}
	return all
}

func TestKeepValid(t *testing.T) {
	t.Parallel()
	keep := argsvalidate.Options{Batch: batch.KeepValid}
	first := middlewaretest.Calls("note", `{"text": "a", "tags": []}`, "weather", badWeather, "note", `{"text": "b"}`)
	held := []string{`note {"text": "a"}`, "weather " + goodWeather, `note {"text": "b"}`}
	for name, c := range map[string]struct {
		turns []middlewaretest.Turn
		want  []string
		ids   []string
		notes []string
	}{
		"only the broken call comes back": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("weather", goodWeather)},
			held, []string{"call_1", "call_2", "call_3"}, nil,
		},
		"everything comes back: it stands alone": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("note", `{"text": "A"}`, "weather", goodWeather, "note", `{"text": "B"}`)},
			[]string{`note {"text": "A"}`, "weather " + goodWeather, `note {"text": "B"}`}, []string{"call_4", "call_5", "call_6"}, nil,
		},
		"new calls beside the correction follow": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("note", `{"text": "A"}`, "weather", goodWeather)},
			append(slices.Clone(held), `note {"text": "A"}`), []string{"call_1", "call_2", "call_3", "call_4"}, nil,
		},
		"a new call alone": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("note", `{"text": "A"}`), middlewaretest.Calls("weather", goodWeather)},
			append(slices.Clone(held), `note {"text": "A"}`), []string{"call_1", "call_2", "call_3", "call_4"}, nil,
		},
		"a new call is broken, too": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("note", badNote, "weather", goodWeather), middlewaretest.Calls("note", `{"text": "A"}`)},
			append(slices.Clone(held), `note {"text": "A"}`), []string{"call_1", "call_2", "call_3", "call_4"}, nil,
		},
		"a held one in another spelling": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("weather", goodWeather, "note", `{ "text":"b" }`)},
			held, []string{"call_1", "call_2", "call_3"}, nil,
		},
		"in words": {
			[]middlewaretest.Turn{first, middlewaretest.Text("never mind")}, nil, nil,
			[]string{"attempt 2 has no tool call: the held calls were given up: note, note",
				"the step began with an invalid tool call and ended in an answer without one"},
		},
		"an unknown tool is withdrawn": {
			[]middlewaretest.Turn{middlewaretest.Calls("note", goodNote, "nosuch", "{}"), middlewaretest.Text("never mind")},
			[]string{"note " + goodNote}, []string{"call_1"},
			[]string{"attempt 2 has no tool call: the invalid calls were withdrawn, and the held calls are returned"},
		},
		"still broken, then right": {
			[]middlewaretest.Turn{first, middlewaretest.Calls("weather", `{"city": 5}`), middlewaretest.Calls("weather", goodWeather)},
			held, []string{"call_1", "call_2", "call_3"}, nil,
		},
		"an unknown tool is renamed": {
			[]middlewaretest.Turn{middlewaretest.Calls("note", goodNote, "nosuch", "{}"), middlewaretest.Calls("weather", goodWeather)},
			[]string{"note " + goodNote, "weather " + goodWeather}, []string{"call_1", "call_2"}, nil,
		},
		"two are broken, one is fixed at a time": {
			[]middlewaretest.Turn{
				middlewaretest.Calls("weather", badWeather, "note", goodNote, "note", badNote),
				middlewaretest.Calls("weather", goodWeather, "note", badNote),
				middlewaretest.Calls("note", `{"text": "b"}`),
			},
			[]string{"weather " + goodWeather, "note " + goodNote, `note {"text": "b"}`}, []string{"call_1", "call_2", "call_3"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, keep, request(), c.turns...)
			require.NoError(t, out.err)
			require.Equal(t, c.want, callsOf(out.resp.Message))
			require.Equal(t, c.ids, idsOf(out.resp.Message))
			require.Equal(t, c.notes, out.report.Notes)
			require.NotEqual(t, middleware.Invalid, out.report.Status)
		})
	}
}

func TestKeepValidAsksForTheBrokenCallsOnly(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid}, request(),
		middlewaretest.Calls("note", goodNote, "weather", badWeather), middlewaretest.Calls("weather", goodWeather))
	told := out.told(2)
	require.Contains(t, told[1].Text(), "not executed yet")
	require.Contains(t, told[1].Text(), "Send only the failed calls again")
	require.False(t, told[1].IsError)
	require.True(t, told[2].IsError)
}

// The result is an edit of what the model sent first, so that every wire format
// can carry it.
func TestKeepValidKeepsTheFirstMessage(t *testing.T) {
	t.Parallel()
	native := func(raw string) *middleware.Native { return &middleware.Native{Dialect: "d", Raw: raw} }
	a, b := call("a", "note", goodNote), call("b", "weather", badWeather)
	a.Native, b.Native = native("a"), native("b")
	first := &middleware.Response{Message: middleware.Assistant("Both.", a, b), Model: "m", FinishReason: middleware.FinishToolCalls}
	fixed := call("z", "weather", goodWeather)
	fixed.Native = native("z")
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid}, request(), middlewaretest.Reply(first), answer(fixed))
	want := first.Message.Clone()
	want.ToolCalls[1].Arguments = goodWeather
	require.Equal(t, want, out.resp.Message)
	require.Equal(t, "m", out.resp.Model)
}

func TestKeepValidExhausted(t *testing.T) {
	t.Parallel()
	turns := []middlewaretest.Turn{middlewaretest.Calls("note", goodNote, "weather", badWeather), middlewaretest.Calls("weather", `{"city": 5}`)}
	o := argsvalidate.Options{Batch: batch.KeepValid, MaxAttempts: 2, OnExhausted: middleware.Pass}
	out := run(t, o, request(), turns...)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{"note " + goodNote, `weather {"city": 5}`}, callsOf(out.resp.Message))

	o.OnExhausted = middleware.DropInvalid
	out = run(t, o, request(), turns...)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{"note " + goodNote}, callsOf(out.resp.Message))
}
