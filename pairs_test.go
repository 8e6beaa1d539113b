package toolmend_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
)

// part is a middleware of this module in its place, and the most model calls that it makes of one.
type part struct {
	name  string
	layer middleware.Layer
	calls int
	make  func() middleware.Middleware
	marks bool // it returns invalid messages, marked
}

// parts are our middlewares with the settings that change what a step returns.
func parts() []part {
	fixed := func(mw middleware.Middleware) func() middleware.Middleware {
		return func() middleware.Middleware { return mw }
	}
	validate := func(name string, o argsvalidate.Options) part {
		return part{name, middleware.LayerValidate, 3, fixed(argsvalidate.New(o)), o.OnExhausted == middleware.Pass}
	}
	return []part{
		{"tracing", middleware.LayerStep, 1, fixed(tracing.New(tracing.Options{})), false},
		{"answer", middleware.LayerAnswer, 3, fixed(answer.New(answer.Options{Schema: json.RawMessage(`{"type":"integer"}`)})), false},
		{"answer, pass", middleware.LayerAnswer, 3, fixed(answer.New(answer.Options{Schema: json.RawMessage(`{"type":"integer"}`), OnExhausted: middleware.Pass})), true},
		validate("argsvalidate", argsvalidate.Options{}),
		validate("argsvalidate, pass", argsvalidate.Options{OnExhausted: middleware.Pass}),
		validate("argsvalidate, drop", argsvalidate.Options{OnExhausted: middleware.DropInvalid}),
		validate("argsvalidate, keep valid", argsvalidate.Options{Batch: batch.KeepValid}),
		{"rescue", middleware.LayerRescue, 2, fixed(rescue.New(rescue.Options{Markups: []rescue.Markup{"hermes"}})), false},
		{"rescue, pass", middleware.LayerRescue, 2, fixed(rescue.New(rescue.Options{Markups: []rescue.Markup{"hermes"}, OnExhausted: middleware.Pass})), true},
		{"retry", middleware.LayerRetry, 4, fixed(retry.New(retry.Options{})), false},
		{"textcall", middleware.LayerTextCall, 3, fixed(textcall.New(textcall.Options{})), false},
		{"textcall, pass", middleware.LayerTextCall, 3, fixed(textcall.New(textcall.Options{OnExhausted: middleware.Pass})), true},
		{"heal", middleware.LayerHeal, 2, func() middleware.Middleware { return heal.New(heal.Options{}) }, false}, // it remembers
		{"budget", middleware.LayerBudget, 1, fixed(budget.New()), false},
		{"tracing of attempts", middleware.LayerAttempt, 1, fixed(tracing.NewAttempt(tracing.Options{})), false},
	}
}

// reply is what a model answers once.
type reply struct {
	resp *middleware.Response
	err  error
}

// replies are the answers of a model, good ones among them.
func replies() []reply {
	var all []reply
	add := func(finish middleware.FinishReason, text string, calls ...middleware.ToolCall) *middleware.Response {
		resp := &middleware.Response{Message: middleware.Assistant(text, calls...), FinishReason: finish, Usage: middleware.Usage{InputTokens: 1}}
		all = append(all, reply{resp: resp})
		return resp
	}
	book := func(id, arguments string) middleware.ToolCall {
		return middleware.ToolCall{ID: id, Name: "book", Arguments: arguments}
	}
	const rome = `{"city":"Rome"}`
	add(middleware.FinishToolCalls, "", book("1", rome))
	add(middleware.FinishToolCalls, "Well.", book("1", rome), book("2", `{"city":"Oslo"}`))
	add(middleware.FinishToolCalls, "", book("1", `{"nights":2}`))
	add(middleware.FinishToolCalls, "Well.", book("1", rome), book("2", `{"city":5,"x"`))
	add(middleware.FinishToolCalls, "", book("1", rome), book("1", rome), middleware.ToolCall{Name: "nothing"})
	add(middleware.FinishToolCalls, "", book("1", `{"nights":2}`)).Unpaired = true
	add(middleware.FinishLength, "", book("1", rome))
	add(middleware.FinishStop, "2").Choices = []middleware.Message{middleware.Assistant("", book("1", rome))}
	add(middleware.FinishFilter, "No.")
	add(middleware.FinishLength, "tw")
	for _, text := range []string{
		"2", "two", "Final Answer: 2", "Action: book", "Thought: go\nAction: book\nAction Input: {\"city\":\"Rome\"}",
		"<tool_call>\n{\"name\":\"book\",\"arguments\":{\"city\":\"Rome\"}}\n</tool_call>",
		"<tool_call>\n{\"name\":\"book\",\"arguments\":{\"nights\":2}}\n</tool_call>",
		"<tool_call>\n{\"name\":\"book\",\"arguments\":{\"city\":",
	} {
		add(middleware.FinishStop, text)
	}
	for _, err := range []error{
		refusal, io.ErrUnexpectedEOF, &middleware.ModelError{StatusCode: 429}, &middleware.ModelError{StatusCode: 503},
		&middleware.ModelError{StatusCode: 400, Message: "The prompt is too long."}, &middleware.ModelError{Err: middleware.ErrInvalidToolCall},
	} {
		all = append(all, reply{err: err})
	}
	return append(all, reply{}) // neither a response nor an error
}

// errLeft is why a user's context ends.
var errLeft = errors.New("the user left")

// pairModel answers with replies at random, and ends the context now and then.
type pairModel struct {
	t       *testing.T
	random  *rand.Rand
	replies []reply
	cancel  context.CancelCauseFunc
	calls   int
	tokens  int64
}

func (m *pairModel) call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	require.NoError(m.t, ctx.Err(), "a call after the context has ended")
	m.calls++
	if m.random.IntN(20) == 0 {
		m.cancel(errLeft)
	}
	r := m.replies[m.random.IntN(len(m.replies))]
	if n := len(req.Messages); n == 3 && len(req.Messages[1].ToolCalls) > 0 { // a call without its result
		r = reply{err: refusal}
	}
	if r.resp == nil {
		return nil, r.err
	}
	if text := r.resp.Message.Text(); req.Sink != nil && text != "" {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
			return nil, err
		}
	}
	m.tokens += r.resp.Usage.InputTokens
	return r.resp.Clone(), nil
}

// TestPairs holds the laws of a step for each pair of our middlewares in the order of
// docs/writing-middleware.md, before a model with faults: the caller gets a valid message, one
// that is marked, or an error. The model is called no more often than documented, and not after
// the context has ended. No usage is lost.
func TestPairs(t *testing.T) {
	t.Parallel()
	all := parts()
	for i, outer := range all {
		for n, inner := range all[i+1:] {
			if outer.layer == inner.layer {
				continue
			}
			t.Run(outer.name+" around "+inner.name, func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(60) {
					synctest.Test(t, func(t *testing.T) { runPair(t, rand.New(rand.NewPCG(seed, uint64(100*i+n))), outer, inner) })
				}
			})
		}
	}
}

func runPair(t *testing.T, random *rand.Rand, outer, inner part) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	most, has := outer.calls*inner.calls, map[middleware.Layer]bool{outer.layer: true, inner.layer: true}
	if has[middleware.LayerBudget] {
		most = min(most, 2)
		ctx, _ = budget.With(ctx, budget.Limits{ModelCalls: 2})
	}
	l := middleware.Layers{middleware.LayerHistory: heal.Step}
	l[outer.layer], l[inner.layer] = outer.make(), inner.make()
	m := &pairModel{t: t, random: random, replies: replies(), cancel: cancel}
	req := ask()
	if random.IntN(4) == 0 { // a history that the provider may refuse
		req.Messages = append(req.Messages, middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "book", Arguments: "{}"}), middleware.User("Go on."))
	}
	shown := ""
	if random.IntN(2) == 0 {
		req.Sink = func(e middleware.Event) error {
			if shown += e.Text; e.Kind == middleware.EventReset {
				shown = ""
			}
			return nil
		}
	}
	before := req.Clone()
	resp, err := l.Chain()(m.call)(ctx, req)
	at := fmt.Sprintf("%+v, %v", resp, err)
	require.Equal(t, before.Messages, req.Messages, at)
	require.LessOrEqual(t, m.calls, most, at)
	report := middleware.ReportOf(resp, err)
	if outer.layer != middleware.LayerBudget && inner.layer != middleware.LayerBudget || err == nil {
		require.Equal(t, m.tokens, report.Usage().InputTokens, at)
	}
	if err != nil {
		require.Nil(t, resp, at)
		return
	}
	if resp == nil { // the model returned neither
		return
	}
	calls, good := resp.Message.ToolCalls, goodCalls(resp)
	require.Equal(t, report.Status == middleware.Valid && len(calls) > 0, resp.Runnable(), at)
	if resp.Runnable() {
		require.True(t, good, at)
	}
	marked := report.Status == middleware.Invalid
	require.True(t, !marked || outer.marks || inner.marks || !has[middleware.LayerValidate] && has[middleware.LayerAnswer], at)
	if !marked && has[middleware.LayerValidate] {
		require.True(t, good, at)
	}
	if !marked && has[middleware.LayerAnswer] && len(calls) == 0 && resp.FinishReason != middleware.FinishFilter {
		_, err := strconv.Atoi(strings.TrimSpace(resp.Message.Text()))
		require.NoError(t, err, at)
	}
	if req.Sink != nil && !marked { // textcall does not show the thought in front of a call
		require.Contains(t, resp.Message.Text(), shown, at)
	}
}

// goodCalls reports whether each call of a response is complete, and one that book takes.
func goodCalls(resp *middleware.Response) bool {
	for i, c := range resp.Message.ToolCalls {
		var arguments struct {
			City   *string
			Nights *int
		}
		cut := resp.FinishReason == middleware.FinishLength && i == len(resp.Message.ToolCalls)-1
		if cut || c.Name != "book" || json.Unmarshal([]byte(c.Arguments), &arguments) != nil || arguments.City == nil {
			return false
		}
	}
	return true
}
