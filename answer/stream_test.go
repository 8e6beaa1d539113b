package answer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// watched sends the same request with a sink, and returns what it got.
func watched(t *testing.T, o answer.Options, model middleware.ModelCall) (events []string, resp *middleware.Response, err error) {
	t.Helper()
	req := ask()
	req.Sink = func(e middleware.Event) error {
		text := string(e.Kind) + " " + e.Text
		if e.Call != nil {
			text += e.Call.Name
		}
		events = append(events, text)
		return nil
	}
	resp, err = answer.New(o)(model)(t.Context(), req)
	return events, resp, err
}

// pieces is a model that thinks, writes its answers in pieces of two bytes, and
// calls a tool where the answer says so.
func pieces(answers ...string) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		text := answers[0]
		answers = answers[1:]
		for _, e := range []middleware.Event{{Kind: middleware.EventReasoning, Text: "hm"}, {Kind: middleware.EventText, Text: text[:2]}, {Kind: middleware.EventText, Text: text[2:]}} {
			if err := req.Sink(e); err != nil {
				return nil, err
			}
		}
		m := middleware.Assistant(text)
		if text == "call" {
			m.ToolCalls = []middleware.ToolCall{{ID: "1", Name: "weather", Arguments: "{}"}}
			if err := req.Sink(middleware.Event{Kind: middleware.EventToolCall, Call: &m.ToolCalls[0]}); err != nil {
				return nil, err
			}
		}
		return &middleware.Response{Message: m}, nil
	}
}

func TestStreamIsHeld(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model middleware.ModelCall
		want  []string
	}{
		"valid":    {pieces(`{"n": 1}`), []string{"reasoning hm", `text {"n": 1}`}},
		"repaired": {pieces(`{"n": 1,}`), []string{"reasoning hm", `text {"n": 1}`}},
		"re-asked": {pieces("one", `{"n": 1}`), []string{"reasoning hm", "reset ", "reasoning hm", `text {"n": 1}`}},
		"passed on": {pieces("one", "two", "six"),
			[]string{"reasoning hm", "reset ", "reasoning hm", "reset ", "reasoning hm", "text six"}},
		"a tool call": {pieces("call"), []string{"reasoning hm", "text call", "tool_call weather"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			events, _, err := watched(t, answer.Options{Schema: wanted, OnExhausted: middleware.Pass}, c.model)
			require.NoError(t, err)
			require.Equal(t, c.want, events)
		})
	}
}

// TestResetOnlyAfterShown: text that was not shown needs no event that voids
// it.
func TestResetOnlyAfterShown(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Text("one"), middlewaretest.Text(`{"n": 1}`))
	events, _, err := watched(t, answer.Options{Schema: wanted}, model.Call)
	require.NoError(t, err)
	require.Equal(t, []string{`text {"n": 1}`}, events)
}

func TestErrorOfTheSink(t *testing.T) {
	t.Parallel()
	gone := errors.New("the client is gone")
	req := ask()
	req.Sink = func(middleware.Event) error { return gone }
	model := middlewaretest.NewModel(t, middlewaretest.Text(`{"n": 1}`))
	_, err := answer.New(answer.Options{Schema: wanted})(model.Call)(t.Context(), req)
	require.ErrorIs(t, err, gone)
	require.Len(t, middleware.ReportOf(nil, err).Attempts, 1)
}

// A sink that panics ends the step with an error.
func TestSinkPanics(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]middleware.EventKind{"while the model writes": middleware.EventReasoning, "when the answer is shown": middleware.EventText} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask()
			req.Sink = func(e middleware.Event) error {
				if e.Kind == kind {
					panic("secret")
				}
				return nil
			}
			_, err := answer.New(answer.Options{Check: func(context.Context, string) ([]middleware.Issue, error) { return nil, nil }})(pieces("yes."))(t.Context(), req)
			require.EqualError(t, err, "answer: the request's sink panicked: string")
		})
	}
}
