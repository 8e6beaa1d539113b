package agentloop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	textanswer "github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

// TestUnreadText: what textcall cannot read is never the answer of a run. The
// model is told so, and one that writes the same for ever costs four model
// calls, however the layers end their steps.
func TestUnreadText(t *testing.T) {
	t.Parallel()
	const same, readable = "Action: Search[K2]", "Final Answer: 8,611 m"
	stacks := map[string]middleware.Middleware{
		"default":      middleware.Chain(argsvalidate.New(argsvalidate.Options{}), textcall.New(textcall.Options{})),
		"alone":        textcall.New(textcall.Options{}),
		"pass":         middleware.Chain(argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass}), textcall.New(textcall.Options{OnExhausted: middleware.Pass})),
		"raise inside": middleware.Chain(argsvalidate.New(argsvalidate.Options{}), textcall.New(textcall.Options{OnExhausted: middleware.Raise})),
		"drop around":  middleware.Chain(argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.DropInvalid}), textcall.New(textcall.Options{})),
	}
	for name, stack := range stacks {
		for kind, tc := range map[string]struct {
			text  func(n int) string
			calls int
			err   bool
		}{
			"the same for ever":     {func(int) string { return same }, 4, true},
			"nothing but space":     {func(n int) string { return fmt.Sprintf("%*s", n, "") }, 4, true},
			"the same, more spaces": {func(n int) string { return fmt.Sprintf("Action: %*sSearch[K2]", n, "") }, 4, true},
			"always another":        {func(n int) string { return fmt.Sprint(same, n) }, 9, true},
			"readable in the end": {func(n int) string {
				if n == 5 {
					return readable
				}
				return fmt.Sprint(same, n)
			}, 5, false},
		} {
			t.Run(name+": "+kind, func(t *testing.T) {
				t.Parallel()
				n := 0
				model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
					n++
					if n > 3 && n < 5 {
						require.Contains(t, req.Messages[len(req.Messages)-1].Text(), "Your last message could not be used")
					}
					return &middleware.Response{Message: middleware.Assistant(tc.text(n)), FinishReason: middleware.FinishStop}, nil
				}
				agent, err := agentloop.New(stack(model), agentloop.Options{Tools: []agentloop.Tool{{
					Def: middleware.Tool{Name: "search"},
					Func: func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
						return agentloop.Result{Text: "x"}, nil
					},
				}}})
				require.NoError(t, err)
				s := &agentloop.State{Messages: []middleware.Message{middleware.User("How high is K2?")}}
				s.Sink = func(e middleware.Event) error {
					require.NotContains(t, e.Text, "Action")
					return nil
				}
				err = agent.Run(t.Context(), s)
				require.Equal(t, tc.calls, n)
				if tc.err {
					require.ErrorIs(t, err, agentloop.ErrFailures)
					require.Empty(t, s.Answer())
					require.Equal(t, middleware.RoleUser, s.Messages[len(s.Messages)-1].Role, "the run can go on")
					return
				}
				require.NoError(t, err)
				require.Equal(t, "8,611 m", s.Answer())
				require.Zero(t, s.Failures)
				require.Equal(t, middleware.Invalid, s.Steps[0].Status)
			})
		}
	}
}

// TestAnswerBeforeFailedTurns: the answer to the question before stays the last one.
func TestAnswerBeforeFailedTurns(t *testing.T) {
	t.Parallel()
	s := &agentloop.State{Failures: 1, Messages: []middleware.Message{middleware.User("a?"), middleware.Assistant("a"), middleware.User("b?"),
		middleware.Assistant("Action: b"), middleware.User("That could not be used.")}}
	require.Equal(t, "a", s.Answer())
}

// TestInvalidAnswerPasses: what package answer passes on, though it is invalid,
// ends the run like any answer.
func TestInvalidAnswerPasses(t *testing.T) {
	t.Parallel()
	n := 0
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		n++
		return &middleware.Response{Message: middleware.Assistant("no JSON")}, nil
	}
	agent, err := agentloop.New(textanswer.New(textanswer.Options{Schema: []byte(`{"type":"object"}`), MaxAttempts: 2, OnExhausted: middleware.Pass})(model), agentloop.Options{})
	require.NoError(t, err)
	s := &agentloop.State{Messages: []middleware.Message{middleware.User("JSON!")}}
	require.NoError(t, agent.Run(t.Context(), s))
	require.Equal(t, "no JSON", s.Answer())
	require.Equal(t, 2, n)
	require.Equal(t, middleware.Invalid, s.Steps[0].Status)
}
