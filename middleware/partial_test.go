package middleware_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// shows is a model that shows these events, and then fails.
func shows(err error, events ...middleware.Event) middleware.ModelCall {
	return func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		for _, e := range events {
			if req.Sink != nil {
				if err := req.Sink(e); err != nil {
					return nil, err
				}
			}
		}
		return nil, err
	}
}

// TestPartOfAnAnswerIsInTheLedger: what had arrived of an answer that was
// cancelled.
func TestPartOfAnAnswerIsInTheLedger(t *testing.T) {
	t.Parallel()
	call := middleware.ToolCall{ID: "1", Name: "weather", Arguments: `{"city":"Oslo"}`}
	part := func(text string) middleware.Event { return middleware.Event{Kind: middleware.EventText, Text: text} }
	all := []middleware.Event{part("void"), {Kind: middleware.EventReset}, {Kind: middleware.EventReasoning, Text: "hm"}, part("It "), part("is"), {Kind: middleware.EventToolCall, Call: &call}}
	want := middleware.Message{Role: middleware.RoleAssistant, ToolCalls: []middleware.ToolCall{call},
		Parts: []middleware.Part{{Kind: middleware.PartReasoning, Text: "hm"}, {Text: "It is"}}}
	quiet := func(middleware.Event) error { return nil }
	huge := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		sink   middleware.Sink
		events []middleware.Event
		want   middleware.Message
	}{
		"text, reasoning and calls": {quiet, all, want},
		"nothing":                   {quiet, nil, middleware.Message{}},
		"no sink":                   {nil, all, middleware.Message{}},
		"bounded":                   {quiet, []middleware.Event{part(huge), part("x")}, middleware.Assistant(huge)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tally middleware.Tally
			_, err := tally.Call(t.Context(), shows(context.Canceled, c.events...), &middleware.Request{Sink: c.sink})
			require.ErrorIs(t, err, context.Canceled)
			_, err = tally.Finish(nil, err)
			report := middleware.ReportOf(nil, err)
			require.Len(t, report.Attempts, 1)
			require.Equal(t, c.want, report.Attempts[0].Message)
			require.ErrorIs(t, report.Attempts[0].Err, context.Canceled)
			require.Equal(t, -1, report.Final)
		})
	}
}

// TestEachFailedAttemptHasItsOwnPart: parts are kept by attempt, through layers
// inside.
func TestEachFailedAttemptHasItsOwnPart(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	twice := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			var tally middleware.Tally
			_, _ = tally.Call(ctx, next, req)
			return tally.Finish(tally.Call(ctx, next, req))
		}
	}
	n := 0
	model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		n++
		return shows(lost, middleware.Event{Kind: middleware.EventText, Text: strings.Repeat("x", n)})(ctx, req)
	}
	req := &middleware.Request{Sink: func(middleware.Event) error { return nil }}
	_, err := middleware.Chain(twice, twice)(model)(t.Context(), req)
	var got []string
	for _, a := range middleware.ReportOf(nil, err).Attempts {
		got = append(got, a.Message.Text())
	}
	require.Equal(t, []string{"x", "xx", "xxx", "xxxx"}, got)
}
