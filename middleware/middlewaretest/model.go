package middlewaretest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/toolmend/toolmend/middleware"
)

// scriptedUsage is what a turn made by Text or Calls costs.
var scriptedUsage = middleware.Usage{InputTokens: 10, OutputTokens: 5}

// Model is a scripted model. It is safe for concurrent use. The order in
// which concurrent calls get its turns is not defined.
type Model struct {
	t     testing.TB
	turns []Turn

	mu   sync.Mutex
	next int
	reqs []*middleware.Request
	done bool // the test is over: t must not be used any more
}

// NewModel returns a model that plays turns in order. It fails the test if
// it is called more often than it has turns, if turns are left over at the
// end of the test, and if [Check] for OpenAI refuses a request. The calls of
// all turns get the ids call_1, call_2 and so on.
func NewModel(t testing.TB, turns ...Turn) *Model {
	t.Helper()
	m := &Model{t: t, turns: make([]Turn, len(turns))}
	ids := 0
	for i, turn := range turns {
		if turn.resp != nil {
			turn.resp = turn.resp.Clone()
			if turn.made {
				for c := range turn.resp.Message.ToolCalls {
					ids++
					turn.resp.Message.ToolCalls[c].ID = fmt.Sprintf("call_%d", ids)
				}
			}
		}
		m.turns[i] = turn
	}
	t.Cleanup(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done = true
		if left := len(m.turns) - m.next; left > 0 {
			t.Errorf("middlewaretest: Model: %d of %d turns are left over", left, len(m.turns))
		}
	})
	return m
}

// Call plays the next turn. It is a middleware.ModelCall. A sink in req gets
// the text and then the calls of the response, and Call returns its error.
// If the context has ended, Call returns the context's error and plays no
// turn. An error that fails the test is also returned.
func (m *Model) Call(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	turn, err := m.take(req)
	if err != nil {
		return nil, err
	}
	if turn.err != nil || turn.resp == nil {
		return nil, turn.err
	}
	resp := turn.resp.Clone()
	if turn.made {
		resp.Model = req.Model
	}
	if err := emit(req.Sink, resp); err != nil {
		return nil, err
	}
	return resp, nil
}

// take records the request, checks it and returns the next turn.
func (m *Model) take(req *middleware.Request) (Turn, error) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reqs = append(m.reqs, req.Clone())
	if err := Check(OpenAI, req); err != nil {
		return Turn{}, m.fail(err)
	}
	if m.next >= len(m.turns) {
		return Turn{}, m.fail(fmt.Errorf("middlewaretest: Model: asked %d times, but there are %d turns", len(m.reqs), len(m.turns)))
	}
	m.next++
	return m.turns[m.next-1], nil
}

// fail reports an error to the test, unless that is over, and returns it.
func (m *Model) fail(err error) error {
	m.t.Helper()
	if !m.done {
		m.t.Errorf("%v", err)
	}
	return err
}

// Requests returns deep copies of the requests that the model got, in order,
// including those that failed the test.
func (m *Model) Requests() []*middleware.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]*middleware.Request, len(m.reqs))
	for i, r := range m.reqs {
		out[i] = r.Clone()
	}
	return out
}

// Turn is one scripted response. It may be used in any number of models.
type Turn struct {
	resp *middleware.Response
	err  error
	made bool // by Text or Calls: ids and the model's name are filled in
}

// Text is a response with text, the finish reason stop and a usage of 10
// input and 5 output tokens.
func Text(s string) Turn {
	return Turn{made: true, resp: &middleware.Response{
		Message: middleware.Assistant(s), FinishReason: middleware.FinishStop, Usage: scriptedUsage,
	}}
}

// Calls is a response with tool calls, the finish reason tool_calls and a
// usage of 10 input and 5 output tokens. nameArgs are pairs of a tool name
// and its arguments. Calls panics if there is no pair, or if arguments are
// missing.
func Calls(nameArgs ...string) Turn {
	if len(nameArgs) == 0 || len(nameArgs)%2 != 0 {
		panic(fmt.Sprintf("middlewaretest: Calls: pairs of a name and its arguments are wanted, got %d strings", len(nameArgs)))
	}
	var calls []middleware.ToolCall
	for i := 0; i < len(nameArgs); i += 2 {
		calls = append(calls, middleware.ToolCall{Name: nameArgs[i], Arguments: nameArgs[i+1]})
	}
	return Turn{made: true, resp: &middleware.Response{
		Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishToolCalls, Usage: scriptedUsage,
	}}
}

// Fail is an error in place of a response. It panics if err is nil.
func Fail(err error) Turn {
	if err == nil {
		panic("middlewaretest: Fail: the error is nil")
	}
	return Turn{err: err}
}

// Reply is a copy of r, with its ids and its usage. nil makes the model
// break its contract: it returns neither a response nor an error.
func Reply(r *middleware.Response) Turn {
	if r == nil {
		return Turn{}
	}
	return Turn{resp: r.Clone()}
}

// emit shows resp to sink as an adapter does that streams.
func emit(sink middleware.Sink, resp *middleware.Response) error {
	if sink == nil {
		return nil
	}
	var events []middleware.Event
	for _, p := range resp.Message.Parts {
		kind := middleware.EventText
		switch p.Kind {
		case middleware.PartText:
		case middleware.PartReasoning:
			kind = middleware.EventReasoning
		default:
			continue
		}
		events = append(events, middleware.Event{Kind: kind, Text: p.Text})
	}
	for _, c := range resp.Message.ToolCalls {
		events = append(events, middleware.Event{Kind: middleware.EventToolCall, Call: &c})
	}
	for _, e := range events {
		if err := sink(e); err != nil {
			return err
		}
	}
	return nil
}
