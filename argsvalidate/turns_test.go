package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// TestFailedTurnsAreBounded: what failed turns add to a request has a limit, and
// the last one is always there.
func TestFailedTurnsAreBounded(t *testing.T) {
	t.Parallel()
	const size = 300 << 10
	var turns []middlewaretest.Turn
	for i := range 8 {
		turns = append(turns, middlewaretest.Calls("click", fmt.Sprintf(`{"css": "%d%s"}`, i, strings.Repeat("x", size))))
	}
	for name, c := range map[string]struct {
		o    argsvalidate.Options
		want []int // failed turns in each request
	}{
		"by default":     {argsvalidate.Options{}, []int{0, 1, 2, 3, 3, 3, 3, 3}},
		"less":           {argsvalidate.Options{Limits: argsvalidate.Limits{Turns: 2*size + 20_000}}, []int{0, 1, 2, 2, 2, 2, 2, 2}},
		"less than one":  {argsvalidate.Options{Limits: argsvalidate.Limits{Turns: 1}}, []int{0, 1, 1, 1, 1, 1, 1, 1}},
		"only the last":  {argsvalidate.Options{Advanced: argsvalidate.Advanced{LastTurnOnly: true}}, []int{0, 1, 1, 1, 1, 1, 1, 1}},
		"all that there": {argsvalidate.Options{Limits: argsvalidate.Limits{Turns: 1 << 30}}, []int{0, 1, 2, 3, 4, 5, 6, 7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.MaxAttempts = len(turns)
			model := middlewaretest.NewModel(t, turns...)
			req := &middleware.Request{Messages: []middleware.Message{middleware.User("Click.")}, Tools: clickTool}
			_, err := argsvalidate.New(c.o)(middlewaretest.Strict(middlewaretest.Anthropic, model.Call))(t.Context(), req)
			require.ErrorIs(t, err, argsvalidate.ErrExhausted)
			for n, r := range model.Requests() {
				require.Len(t, r.Messages, 1+2*c.want[n], "request %d", n)
				if n > 0 {
					require.Contains(t, r.Messages[len(r.Messages)-2].ToolCalls[0].Arguments[:20], fmt.Sprintf(`"%d`, n-1), "the last turn is there")
				}
			}
			require.Len(t, req.Messages, 1)
		})
	}
}

// TestPartOfAStreamedAnswer: calls that had arrived of an answer that was cancelled
// are in the report, though the sink is not shown them.
func TestPartOfAStreamedAnswer(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		c := click("1", `{"selector": "#ok"}`)
		for _, e := range []middleware.Event{{Kind: middleware.EventText, Text: "Clicking"}, {Kind: middleware.EventToolCall, Call: &c}} {
			if err := req.Sink(e); err != nil {
				return nil, err
			}
		}
		cancel()
		return nil, ctx.Err()
	}
	var shown []middleware.EventKind
	req := &middleware.Request{Tools: clickTool, Sink: func(e middleware.Event) error { shown = append(shown, e.Kind); return nil }}
	_, err := argsvalidate.New(argsvalidate.Options{})(model)(ctx, req)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, []middleware.EventKind{middleware.EventText}, shown)
	require.Equal(t, middleware.Assistant("Clicking", click("1", `{"selector": "#ok"}`)), middleware.ReportOf(nil, err).Attempts[0].Message)
}

// TestCallsAloneVoidNothing: calls of a failed attempt were not shown, so nothing
// has to be voided.
func TestCallsAloneVoidNothing(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Calls("click", `{"css": "#ok"}`), middlewaretest.Calls("click", `{"selector": "#ok"}`))
	var shown []middleware.EventKind
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("Click.")}, Tools: clickTool,
		Sink: func(e middleware.Event) error { shown = append(shown, e.Kind); return nil }}
	_, err := argsvalidate.New(argsvalidate.Options{})(model.Call)(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, []middleware.EventKind{middleware.EventToolCall}, shown)
}

// TestRefusalIsNoMissingCall: a model that refuses in its provider's form is not
// asked for the call that the request demands.
func TestRefusalIsNoMissingCall(t *testing.T) {
	t.Parallel()
	refusal := middleware.Message{Role: middleware.RoleAssistant, Parts: []middleware.Part{
		{Text: "I cannot.", Native: &middleware.Native{Dialect: "openai-responses", Raw: `{"type":"refusal","refusal":"I cannot."}`}}}}
	model := middlewaretest.NewModel(t, middlewaretest.Reply(&middleware.Response{Message: refusal, FinishReason: middleware.FinishStop}))
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("Click.")}, Tools: clickTool, ToolChoice: middleware.ToolChoice{Mode: middleware.ToolRequired}}
	resp, err := argsvalidate.New(argsvalidate.Options{})(model.Call)(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "I cannot.", resp.Message.Text())
}

// TestNoReplies: the verdicts are the same, and Options.Feedback is not called.
func TestNoReplies(t *testing.T) {
	t.Parallel()
	written := 0
	v := argsvalidate.NewValidator(argsvalidate.Options{Feedback: func(argsvalidate.FeedbackInput) string { written++; return "again" }})
	turn := argsvalidate.Turn{Request: &middleware.Request{Tools: clickTool}, Calls: []middleware.ToolCall{click("1", `{"css": "#ok"}`)}}
	want, err := v.ValidateTurn(t.Context(), turn)
	require.Len(t, failure(t, err).Replies, 1)
	require.Equal(t, 1, written)

	turn.NoReplies = true
	got, err := v.ValidateTurn(t.Context(), turn)
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.Empty(t, failure(t, err).Replies)
	require.Equal(t, want, got)
	require.Equal(t, 1, written)
}
