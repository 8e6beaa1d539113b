package toolmend_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
)

var (
	good     = middlewaretest.Calls("book", `{"city":"Rome"}`)
	bad      = middlewaretest.Calls("book", `{"nights":2}`)
	worse    = middlewaretest.Calls("book", `{"nights":[]}`)
	worst    = middlewaretest.Calls("book", `{}`)
	limited  = middlewaretest.Fail(&middleware.ModelError{StatusCode: 429})
	refusal  = &middleware.ModelError{StatusCode: 400, Message: "No tool output found for function call a."}
	inMarkup = middlewaretest.Text("<tool_call>\n{\"name\": \"book\", \"arguments\": {\"nights\": 2}}\n</tool_call>")
)

func ask() *middleware.Request {
	return &middleware.Request{Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")}, Tools: []middleware.Tool{book}}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	t.Run("default", func(t *testing.T) { middlewaretest.Run(t, toolmend.Stack(toolmend.Options{})) })
	t.Run("with rescue and heal", func(t *testing.T) {
		middlewaretest.Run(t, toolmend.Stack(toolmend.Options{Rescue: &rescue.Options{}, Heal: &heal.Options{}}))
	})
}

// TestNeighbours and the tests beside it hold the rest of the order.
func TestOrder(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options toolmend.Options
		turns   []middlewaretest.Turn // all are used
		check   func(t *testing.T, resp *middleware.Response, err error)
	}{
		"a message that stays invalid is an error": {
			turns: []middlewaretest.Turn{bad, worse, worst},
			check: func(t *testing.T, _ *middleware.Response, err error) {
				require.ErrorIs(t, err, argsvalidate.ErrExhausted)
			},
		},
		"a retry is within one attempt of the validation": {
			turns: []middlewaretest.Turn{bad, limited, worse, worst},
			check: func(t *testing.T, _ *middleware.Response, err error) {
				require.ErrorIs(t, err, argsvalidate.ErrExhausted)
			},
		},
		"no retries": {
			options: toolmend.Options{Retry: retry.Options{MaxAttempts: 1}},
			turns:   []middlewaretest.Turn{limited},
			check:   func(t *testing.T, _ *middleware.Response, err error) { require.Error(t, err) },
		},
		"a call in the text stays text": {
			turns: []middlewaretest.Turn{inMarkup},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.Empty(t, resp.Message.ToolCalls)
			},
		},
		"a rescued call is validated": {
			options: toolmend.Options{Rescue: &rescue.Options{}},
			turns:   []middlewaretest.Turn{inMarkup, good},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.JSONEq(t, `{"city":"Rome"}`, resp.Message.ToolCalls[0].Arguments)
			},
		},
		"a call of a model that writes text is validated": {
			options: toolmend.Options{TextCall: &textcall.Options{}},
			turns: []middlewaretest.Turn{
				middlewaretest.Text("Thought: book\nAction: book\nAction Input: {\"nights\": 2}"),
				middlewaretest.Text("Thought: book\nAction: book\nAction Input: {\"city\": \"Rome\"}"),
			},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.JSONEq(t, `{"city":"Rome"}`, resp.Message.ToolCalls[0].Arguments)
			},
		},
		"the answer is validated": {
			options: toolmend.Options{Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}},
			turns:   []middlewaretest.Turn{bad, good},
			check:   func(t *testing.T, _ *middleware.Response, err error) { require.NoError(t, err) },
		},
		"an invalid answer is asked for again": {
			options: toolmend.Options{Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}},
			turns:   []middlewaretest.Turn{middlewaretest.Text("two"), middlewaretest.Text("2")},
			check: func(t *testing.T, resp *middleware.Response, err error) {
				require.NoError(t, err)
				require.Equal(t, "2", resp.Message.Text())
			},
		},
		"a refusal is an error": {
			turns: []middlewaretest.Turn{middlewaretest.Fail(refusal)},
			check: func(t *testing.T, _ *middleware.Response, err error) { require.Error(t, err) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // retries wait
				model := middlewaretest.NewModel(t, c.turns...)
				resp, err := toolmend.Stack(c.options)(model.Call)(t.Context(), ask())
				c.check(t, resp, err)
				require.Len(t, model.Requests(), len(c.turns))
			})
		})
	}
}

// The budget counts the attempts that retries and re-asks make, and refuses the next one.
func TestBudget(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]middlewaretest.Turn{"retry": limited, "re-ask": bad} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := middlewaretest.NewModel(t, first)
				ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
				_, err := toolmend.Stack(toolmend.Options{})(model.Call)(ctx, ask())
				require.ErrorIs(t, err, budget.ErrExceeded)
				require.EqualValues(t, 1, b.Spent().ModelCalls)
			})
		})
	}
}

// Healing is inside of the attempt, so its second request is not one more.
func TestSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spans := tracetest.NewSpanRecorder()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
		scripted, first := middlewaretest.NewModel(t, bad, limited, good), true
		model := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			if first {
				first = false
				return nil, refusal
			}
			return scripted.Call(ctx, req)
		}
		req := ask()
		req.Messages = append(req.Messages, middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "book", Arguments: `{"city":"Oslo"}`}))
		o := toolmend.Options{Tracing: tracing.Options{TracerProvider: provider}, Heal: &heal.Options{}}
		_, err := toolmend.Stack(o)(model)(t.Context(), req)
		require.NoError(t, err)

		var steps, attempts int
		for _, s := range spans.Ended() {
			if s.Parent().IsValid() {
				attempts++
			} else {
				steps++
			}
		}
		require.Equal(t, 1, steps)
		require.Equal(t, 4, attempts)
	})
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	faulty := middlewaretest.NewFaulty(1, middlewaretest.FaultOptions{})
	call := toolmend.Stack(toolmend.Options{Retry: retry.Options{MaxAttempts: 1}, Rescue: &rescue.Options{}, Heal: &heal.Options{}})(faulty.Call)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				resp, err := call(context.Background(), ask())
				if err == nil && resp.Report.Status == middleware.Invalid {
					t.Error("an invalid message without an error")
				}
			}
		})
	}
	all.Wait()
}

// Each part's own error comes out, with the field that it belongs to.
func TestOptions(t *testing.T) {
	t.Parallel()
	for field, o := range map[string]toolmend.Options{
		"Retry":    {Retry: retry.Options{MaxAttempts: -1}},
		"Answer":   {Answer: &answer.Options{}},
		"Rescue":   {Rescue: &rescue.Options{MaxAttempts: -1}},
		"TextCall": {TextCall: &textcall.Options{MaxAttempts: -1}},
		"Heal":     {Heal: &heal.Options{Rules: []heal.Rule{99}}},
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			err := o.Validate()
			require.ErrorContains(t, err, "toolmend: Options."+field+": ")
			require.PanicsWithError(t, err.Error(), func() { toolmend.Stack(o) })
		})
	}
	require.NoError(t, toolmend.Options{}.Validate())
}
