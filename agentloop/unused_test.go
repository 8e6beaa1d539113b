package agentloop_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	textanswer "github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// uncertain are texts with a call that rescue does not make.
var uncertain = map[string]string{
	"incomplete":   `<tool_call>{"name":"pay","arguments":{"to":`,
	"unknown_tool": `<tool_call>{"name":"ghost","arguments":{}}</tool_call>`,
	"unreadable":   `<tool_call>{"name":"pay","arguments":5}</tool_call>`,
	"destructive":  `<tool_call>{"name":"drop","arguments":{}}</tool_call>`,
	"truncated":    `<tool_call>{"name":"pay","arguments":{"to":`,
}

func sends(t *testing.T, name string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		resp := &middleware.Response{Message: middleware.Assistant(uncertain[name]), FinishReason: middleware.FinishStop}
		if name == "truncated" {
			resp.FinishReason = middleware.FinishLength
		}
		return resp, nil
	}
}

// A call that rescue was not sure of is never an answer: it is raised, marked or
// counted, in a step, after an earlier re-ask, beside held calls and in a loop.
func TestUncertainCallsAreNoAnswers(t *testing.T) {
	t.Parallel()
	pay := middleware.Tool{Name: "pay", Parameters: []byte(`{"type":"object","properties":{"to":{"type":"string"}},"required":["to"]}`)}
	drop := middleware.Tool{Name: "drop", Destructive: true}
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("go")}, Tools: []middleware.Tool{pay, drop}}
	for name, text := range uncertain {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inner := rescue.New(rescue.Options{Markups: []rescue.Markup{rescue.Markup("hermes")}})(sends(t, name))
			for _, begin := range []middleware.Message{{}, middleware.Assistant("", call("1", "pay", "{}")), middleware.Assistant("", call("1", "pay", "{}"), call("2", "pay", `{"to":"Ann"}`))} {
				for _, policy := range []middleware.OnExhausted{0, middleware.Pass, middleware.Raise, middleware.DropInvalid} {
					for _, b := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
						n := 0
						model := func(ctx context.Context, r *middleware.Request) (*middleware.Response, error) {
							if n++; n == 1 && len(begin.ToolCalls) > 0 {
								return &middleware.Response{Message: begin, FinishReason: middleware.FinishToolCalls}, nil
							}
							return inner(ctx, r)
						}
						resp, err := argsvalidate.New(argsvalidate.Options{OnExhausted: policy, Batch: b})(model)(t.Context(), req)
						kept := b == batch.KeepValid && len(begin.ToolCalls) > 1 // the held call outlives the text
						switch {
						case kept && policy == middleware.DropInvalid:
							require.NoError(t, err)
							require.Equal(t, `{"to":"Ann"}`, resp.Message.ToolCalls[0].Arguments)
						case policy == middleware.Pass:
							require.NoError(t, err)
							require.Equal(t, middleware.Invalid, resp.Report.Status)
							require.Equal(t, middleware.Invalid, middleware.ReportOf(resp, nil).Status)
							require.False(t, resp.Runnable())
						default:
							require.ErrorIs(t, err, argsvalidate.ErrExhausted)
						}
					}
				}
			}
			for _, stack := range []middleware.Middleware{
				argsvalidate.New(argsvalidate.Options{}), argsvalidate.New(argsvalidate.Options{OnExhausted: middleware.Pass}),
				middleware.Chain(), // rescue itself raises
				middleware.Chain(textanswer.New(textanswer.Options{Check: func(context.Context, string) ([]middleware.Issue, error) { return nil, nil }}), argsvalidate.New(argsvalidate.Options{})),
			} {
				tool := says("drop", "x")
				tool.Def.Destructive = true
				s := goState()
				err := newAgent(t, stack(inner), tools(says("pay", "paid"), tool)).Run(t.Context(), s)
				require.ErrorIs(t, err, agentloop.ErrFailures)
				require.False(t, strings.Contains(s.Answer(), text), s.Answer())
				require.Empty(t, s.Results)
			}
		})
	}
}

// With package answer inside of argsvalidate, the status of the text survives a
// re-ask for a call.
func TestStatusOfAnAnswerAfterAReAsk(t *testing.T) {
	t.Parallel()
	pay := middleware.Tool{Name: "pay", Parameters: []byte(`{"type":"object","required":["to"]}`)}
	for text, want := range map[string]middleware.Status{"good": middleware.Valid, "bad": middleware.Invalid} {
		check := func(_ context.Context, text string) ([]middleware.Issue, error) {
			if text == "bad" {
				return []middleware.Issue{{Message: "is bad"}}, nil
			}
			return nil, nil
		}
		n := 0
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			if n++; n == 1 {
				return &middleware.Response{Message: middleware.Assistant("", call("1", "pay", "{}"))}, nil
			}
			return &middleware.Response{Message: middleware.Assistant(text)}, nil
		}
		chain := middleware.Chain(argsvalidate.New(argsvalidate.Options{}), textanswer.New(textanswer.Options{Check: check, OnExhausted: middleware.Pass}))
		resp, err := chain(model)(t.Context(), &middleware.Request{Tools: []middleware.Tool{pay}})
		require.NoError(t, err, "a text that package answer passed on is an answer")
		require.Equal(t, want, resp.Report.Status)
		_, unusable := resp.Unusable()
		require.False(t, unusable)
	}
}
