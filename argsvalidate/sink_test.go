package argsvalidate_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// watched runs req with a sink and returns what it was shown.
func watched(t *testing.T, o argsvalidate.Options, turns ...middlewaretest.Turn) ([]string, outcome) {
	t.Helper()
	var shown []string
	req := request()
	req.Sink = func(e middleware.Event) error {
		s := string(e.Kind)
		if e.Text != "" {
			s += " " + e.Text
		}
		if e.Call != nil {
			s += " " + e.Call.Name + " " + e.Call.Arguments
		}
		shown = append(shown, s)
		return nil
	}
	model := middlewaretest.NewModel(t, turns...)
	resp, err := argsvalidate.New(unmended(o))(model.Call)(t.Context(), req)
	return shown, outcome{resp, err, nil, middleware.ReportOf(resp, err)}
}

func speaking(text string, calls ...middleware.ToolCall) middlewaretest.Turn {
	return middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant(text, calls...)})
}

func TestSinkIsShownOnlyValidCalls(t *testing.T) {
	t.Parallel()
	bad, good, stripped := call("1", "weather", badWeather), call("2", "weather", goodWeather), call("3", "note", `{"text": "a", "tags": []}`)
	raise := argsvalidate.Options{MaxAttempts: 1}
	for name, c := range map[string]struct {
		o     argsvalidate.Options
		turns []middlewaretest.Turn
		want  []string
	}{
		"valid": {argsvalidate.Options{}, []middlewaretest.Turn{speaking("so", good, stripped)},
			[]string{"text so", "tool_call weather " + goodWeather, `tool_call note {"text": "a"}`}},
		"asked again": {argsvalidate.Options{}, []middlewaretest.Turn{speaking("so", bad, stripped), speaking("sorry", good)},
			[]string{"text so", "reset", "text sorry", "tool_call weather " + goodWeather}},
		"an empty message": {argsvalidate.Options{}, []middlewaretest.Turn{middlewaretest.Reply(ended(middleware.FinishStop, thought)), speaking("sorry")},
			[]string{"reasoning " + thought.Text, "reset", "text sorry"}},
		"nothing shown, nothing void": {argsvalidate.Options{}, []middlewaretest.Turn{speaking("", bad), speaking("", good)},
			[]string{"tool_call weather " + goodWeather}},
		"Pass":        {argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, []middlewaretest.Turn{speaking("so", bad, stripped)}, []string{"text so", `tool_call note {"text": "a"}`}},
		"Raise":       {raise, []middlewaretest.Turn{speaking("so", bad, stripped)}, []string{"text so"}},
		"DropInvalid": {argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}, []middlewaretest.Turn{speaking("", bad, good)}, []string{"tool_call weather " + goodWeather}},
		"KeepValid": {argsvalidate.Options{Batch: batch.KeepValid}, []middlewaretest.Turn{speaking("", bad, stripped), speaking("", good)},
			[]string{"tool_call weather " + goodWeather, `tool_call note {"text": "a"}`}},
		"text": {argsvalidate.Options{}, []middlewaretest.Turn{speaking("hello")}, []string{"text hello"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shown, _ := watched(t, c.o, c.turns...)
			require.Equal(t, c.want, shown)
		})
	}
}

func TestSinkErrorEndsTheStep(t *testing.T) {
	t.Parallel()
	gone := errors.New("client is gone")
	for name, kind := range map[string]middleware.EventKind{"on text": middleware.EventText, "on reset": middleware.EventReset, "on a call": middleware.EventToolCall} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := request()
			req.Sink = func(e middleware.Event) error {
				if e.Kind == kind {
					return gone
				}
				return nil
			}
			turns := []middlewaretest.Turn{speaking("so", call("1", "weather", badWeather)), speaking("", call("2", "weather", goodWeather))}
			want := map[middleware.EventKind]int{middleware.EventText: 1, middleware.EventReset: 1, middleware.EventToolCall: 2}[kind]
			model := middlewaretest.NewModel(t, turns[:want]...)
			_, err := argsvalidate.New(unmended(argsvalidate.Options{}))(model.Call)(t.Context(), req)
			require.ErrorIs(t, err, gone)
			require.NotEmpty(t, middleware.ReportOf(nil, err).Attempts)
		})
	}
}
