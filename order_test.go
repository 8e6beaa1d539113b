package toolmend_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
)

// Each case has the number of messages of each request, which differs if the two layers
// that it names are swapped.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	number := &answer.Options{Schema: []byte(`{"type":"integer"}`)}
	for name, c := range map[string]struct {
		options  toolmend.Options
		turns    []middlewaretest.Turn
		messages []int
	}{
		"answer, argsvalidate": {toolmend.Options{Answer: number}, []middlewaretest.Turn{middlewaretest.Text("two"), bad, good}, []int{1, 3, 5}},
		"rescue, retry":        {toolmend.Options{Rescue: &rescue.Options{}}, []middlewaretest.Turn{cut, limited, good}, []int{1, 3, 3}},
		"retry, textcall": {toolmend.Options{TextCall: &textcall.Options{}}, []middlewaretest.Turn{
			middlewaretest.Text("Thought: book\nAction: book"), limited,
			middlewaretest.Text("Thought: book\nAction: book\nAction Input: {\"city\": \"Rome\"}"),
		}, []int{2, 4, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := middlewaretest.NewModel(t, c.turns...)
				_, err := toolmend.Stack(c.options)(model.Call)(t.Context(), ask())
				require.NoError(t, err)
				var messages []int
				for _, req := range model.Requests() {
					messages = append(messages, len(req.Messages))
				}
				require.Equal(t, c.messages, messages)
			})
		})
	}
}

// A call in the markup of a model is read with textcall too, which asks for another form.
func TestRescueBesideTextCall(t *testing.T) {
	t.Parallel()
	const call = "<tool_call>\n{\"name\":\"book\",\"arguments\":{\"city\":\"Rome\"}}\n</tool_call>"
	for name, c := range map[string]struct {
		text   string
		format textcall.Format
		rescue bool
		calls  int
	}{
		"alone":                   {call, textcall.ReAct, true, 1},
		"behind text":             {"I will book.\n" + call, textcall.ReAct, true, 1},
		"JSON action":             {call, textcall.JSONAction, true, 1},
		"without rescue":          {call, textcall.ReAct, false, 2},
		"what rescue cannot read": {"<tool_call>{\"name\":\"nothing\",\"arguments\":{}}</tool_call>\nAction: book", textcall.ReAct, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := toolmend.Options{TextCall: &textcall.Options{Format: c.format}, Rescue: &rescue.Options{Markups: []rescue.Markup{"hermes"}}}
			if !c.rescue {
				o.Rescue = nil
			}
			for _, sink := range []middleware.Sink{nil, func(middleware.Event) error { return nil }} {
				turns := []middlewaretest.Turn{middlewaretest.Text(c.text), good}
				model := middlewaretest.NewModel(t, turns[:c.calls]...)
				req := ask()
				req.Sink = sink
				resp, err := toolmend.Stack(o)(model.Call)(t.Context(), req)
				require.NoError(t, err)
				require.True(t, resp.Runnable())
				require.JSONEq(t, `{"city":"Rome"}`, resp.Message.ToolCalls[0].Arguments)
				require.Len(t, model.Requests(), c.calls)
			}
		})
	}
}

// The budget counts a re-ask of textcall.
func TestBudgetInsideTextCall(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Text("Thought: book\nAction: book"))
	ctx, _ := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
	_, err := toolmend.Stack(toolmend.Options{TextCall: &textcall.Options{}})(model.Call)(ctx, ask())
	require.ErrorIs(t, err, budget.ErrExceeded)
}

// A step has one span though the answer is asked for again, and a model call that the
// budget refuses has none.
func TestSpansOfNeighbours(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit int
		turns []middlewaretest.Turn
		spans int // the step's and one for each model call
	}{
		"tracing, answer":            {10, []middlewaretest.Turn{middlewaretest.Text("two"), middlewaretest.Text("2")}, 3},
		"budget, tracing of attempt": {1, []middlewaretest.Turn{bad}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewSpanRecorder()
			provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
			ctx, _ := budget.With(t.Context(), budget.Limits{ModelCalls: c.limit})
			o := toolmend.Options{Tracing: tracing.Options{TracerProvider: provider}, Answer: &answer.Options{Schema: []byte(`{"type":"integer"}`)}}
			model := middlewaretest.NewModel(t, c.turns...)
			_, _ = toolmend.Stack(o)(model.Call)(ctx, ask())
			require.Len(t, spans.Ended(), c.spans)
		})
	}
}
