// Package durabletest checks an engine that runs agents durably: one that
// continues a run in another process after its process was lost.
//
//	func TestEngine(t *testing.T) { durabletest.Run(t, engine) }
//
// Every scenario runs once undisturbed, and then once for each of its kill
// points: before and after each effect, a model call or a tool. A ledger outside
// of all processes records the effects. Run fails the test if an effect is lost,
// if an effect of another step than the killed one happens again, if a call has
// two idempotency keys, if a call marked AtMostOnce starts twice, or if the final
// state is not that of the undisturbed run.
package durabletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// Engine runs the agent of c until the run ends, and returns its final state and
// its error. It makes an agent with c.Process for each process. When that process
// was killed, the engine discards what it did not record before, and continues in
// a new process. When calls wait, it calls c.Decide, once for each decision that
// it can record.
type Engine func(t *testing.T, c *Case) (*agentloop.State, error)

// Decider takes decisions about calls, as *agentloop.State does.
type Decider interface {
	Approve(callID string) error
	Edit(callID, arguments string) error
	Reject(callID, reason string) error
	Resolve(callID string, r agentloop.Result) error
}

// Process is an agent in a process that may be killed.
type Process struct {
	Agent *agentloop.Agent
	// Context ends when the process is killed. The engine runs the agent with it
	// or a child of it.
	Context context.Context
	kill    context.CancelFunc
}

// Killed reports whether the process was killed. Nothing that it returned or
// saved afterwards may be recorded.
func (p *Process) Killed() bool { return p.Context.Err() != nil }

// Case is one run of a scenario, with at most one kill.
type Case struct {
	Name     string
	Messages []middleware.Message // that the run starts with

	ledger   *ledger
	scenario scenario
}

// Process starts a process. amend may change the options of its agent; nil
// changes nothing.
func (c *Case) Process(ctx context.Context, amend func(*agentloop.Options)) (*Process, error) {
	p := &Process{}
	p.Context, p.kill = context.WithCancel(ctx)
	o := c.scenario.options
	o.Tools = nil
	for _, t := range c.scenario.options.Tools {
		t.Func = c.tool(p, t.Func)
		o.Tools = append(o.Tools, t)
	}
	if amend != nil {
		amend(&o)
	}
	call, validator := c.scenario.stack(c.model(p))
	o.Validator = validator
	var err error
	p.Agent, err = agentloop.New(call, o)
	return p, err
}

// Decide decides on the calls that wait.
func (c *Case) Decide(pending []agentloop.Pending, d Decider) error {
	var errs []error
	for _, p := range pending {
		errs = append(errs, c.scenario.decide(p, d))
	}
	return errors.Join(errs...)
}

// model plays the answers of the scenario: the n-th model step of the
// conversation gets the n-th answers, one for each model call of the step.
func (c *Case) model(p *Process) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		turn, attempt := position(req.Messages)
		answers := c.scenario.answers
		if turn >= len(answers) {
			return nil, fmt.Errorf("durabletest: no answer for model step %d of %s", turn+1, c.Name)
		}
		answer := answers[turn][min(attempt, len(answers[turn])-1)]
		var resp *middleware.Response
		var err error
		lost := c.ledger.effect(p, entry{step: 2 * turn, name: fmt.Sprintf("model %d.%d", turn+1, attempt+1)}, func() {
			if resp, err = nil, answer.err; err == nil {
				resp = &middleware.Response{Message: answer.message.Clone(), Usage: middleware.Usage{InputTokens: 10, OutputTokens: 1}, FinishReason: middleware.FinishStop}
			}
		})
		if lost {
			return nil, context.Cause(p.Context)
		}
		return resp, err
	}
}

// position returns how many model steps the messages hold, and how many answers
// to the present one were rejected, from the errors at the end.
func position(msgs []middleware.Message) (turn, rejected int) {
	for i, m := range msgs {
		if m.Role != middleware.RoleAssistant {
			continue
		}
		if slices.ContainsFunc(m.ToolCalls, func(c middleware.ToolCall) bool { return c.Name == "broken" }) && i+1 < len(msgs) {
			rejected++
			continue
		}
		turn, rejected = turn+1, 0
	}
	return turn, rejected
}

// tool records the calls of a tool.
func (c *Case) tool(p *Process, f agentloop.ToolFunc) agentloop.ToolFunc {
	return func(ctx context.Context, call middleware.ToolCall) (r agentloop.Result, err error) {
		info, _ := agentloop.CallFrom(ctx)
		turn := 0
		_, _ = fmt.Sscanf(call.ID, "%d", &turn)
		lost := c.ledger.effect(p, entry{step: 2*turn - 1, name: call.Name + " " + call.ID, key: info.Key, once: info.AtMostOnce}, func() { r, err = f(ctx, call) })
		if lost {
			return agentloop.Result{}, context.Cause(p.Context)
		}
		return r, err
	}
}

// Run runs every scenario with every kill point as subtests.
func Run(t *testing.T, e Engine) {
	for _, sc := range scenarios() {
		t.Run(sc.name, func(t *testing.T) {
			calm := &ledger{kill: -1}
			want, wantErr := runCase(t, e, sc, calm)
			if t.Failed() {
				return
			}
			sc.expect(t, want, wantErr)
			if n := len(calm.entries); sc.effects > 0 && n != sc.effects {
				t.Errorf("there are %d effects, want %d: %v", n, sc.effects, calm.entries)
			}
			if sc.calm {
				return
			}
			for at := range 2 * len(calm.entries) {
				t.Run(fmt.Sprintf("kill_%d", at), func(t *testing.T) {
					l := &ledger{kill: at}
					got, err := runCase(t, e, sc, l)
					l.check(t, calm)
					if (err == nil) != (wantErr == nil) {
						t.Errorf("the error is %v, without a kill it is %v", err, wantErr)
					}
					compare(t, got, want, l.onceLost)
				})
			}
		})
	}
}

func runCase(t *testing.T, e Engine, sc scenario, l *ledger) (*agentloop.State, error) {
	t.Helper()
	c := &Case{Name: sc.name, Messages: []middleware.Message{middleware.User("Go.")}, ledger: l, scenario: sc}
	return e(t, c)
}

// compare compares the states of two runs, except for what the model was told of
// a call whose outcome is unknown.
func compare(t *testing.T, got, want *agentloop.State, unknown string) {
	t.Helper()
	if got == nil {
		t.Fatal("the engine returned no state")
	}
	if len(got.Messages) != len(want.Messages) {
		t.Fatalf("the run has %d messages, without a kill %d", len(got.Messages), len(want.Messages))
	}
	for i, m := range got.Messages {
		if m.Role == middleware.RoleTool && m.ToolCallID == unknown {
			if !m.IsError || !strings.Contains(m.Text(), "not known") {
				t.Errorf("the outcome of call %s is not known, and the model was told %q", unknown, m.Text())
			}
			continue
		}
		if !reflect.DeepEqual(m, want.Messages[i]) {
			t.Errorf("message %d is %+v, without a kill %+v", i, m, want.Messages[i])
		}
	}
	if len(got.Steps) != len(want.Steps) || len(got.Results) != len(want.Results) || got.Usage != want.Usage {
		t.Errorf("%d steps, %d results, usage %+v; without a kill %d, %d, %+v", len(got.Steps), len(got.Results), got.Usage, len(want.Steps), len(want.Results), want.Usage)
	}
}
