package durabletest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// scenario is an agent and what it is expected to do without a kill.
type scenario struct {
	name    string
	options agentloop.Options
	answers [][]answer // by model step, then by model call of the step
	decide  func(p agentloop.Pending, d Decider) error
	effects int  // how many there are without a kill; 0: not checked
	calm    bool // without kills: whether a new process counts anew is the engine's choice
	expect  func(t *testing.T, s *agentloop.State, err error)
}

const attempts = 2 // retry.Options.MaxAttempts

type answer struct {
	message middleware.Message
	err     error
}

// stack returns the chain of a process.
func (sc scenario) stack(model middleware.ModelCall) (middleware.ModelCall, *argsvalidate.Validator) {
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	retries := retry.New(retry.Options{MaxAttempts: attempts, MinDelay: 1})
	return middleware.Chain(v.Middleware(), retries)(model), v
}

func call(id, name, args string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: name, Arguments: args}
}

func calls(cs ...middleware.ToolCall) []answer {
	return []answer{{message: middleware.Assistant("", cs...)}}
}
func text(s string) []answer { return []answer{{message: middleware.Assistant(s)}} }

const at = `{"at":"a"}`

// tool makes a tool that repeats its arguments.
func tool(name string, mark func(*agentloop.Tool)) agentloop.Tool {
	t := agentloop.RawTool(name, "", []byte(`{"type":"object","properties":{"at":{"type":"string"}},"required":["at"],"additionalProperties":false}`),
		func(_ context.Context, c middleware.ToolCall) (agentloop.Result, error) {
			return agentloop.Text(c.Name + " " + c.Arguments), nil
		})
	if mark != nil {
		mark(&t)
	}
	return t
}

// ends returns an expectation: the answer, and the texts of the results.
func ends(answer string, results ...string) func(*testing.T, *agentloop.State, error) {
	return func(t *testing.T, s *agentloop.State, err error) {
		t.Helper()
		if err != nil || s.Answer() != answer {
			t.Errorf("the run ended with %q, %v; want %q", s.Answer(), err, answer)
		}
		if len(s.Results) != len(results) {
			t.Fatalf("the run has %d results, want %d", len(s.Results), len(results))
		}
		for i, want := range results {
			if got := s.Results[i].Text; got != want {
				t.Errorf("result %d is %q, want %q", i, got, want)
			}
		}
	}
}

func modelError(status int, text string) []answer {
	return []answer{{err: &middleware.ModelError{StatusCode: status, Err: errors.New(text)}}}
}

func scenarios() []scenario {
	echo := tool("look", nil)
	return []scenario{{
		name:    "turns",
		options: agentloop.Options{Tools: []agentloop.Tool{echo, tool("list", nil)}},
		answers: [][]answer{calls(call("1a", "look", at)), calls(call("2a", "look", at), call("2b", "list", at)), text("done")},
		expect:  ends("done", "look "+at, "look "+at, "list "+at),
	}, {
		name:    "a hidden re-ask",
		options: agentloop.Options{Tools: []agentloop.Tool{echo}},
		answers: [][]answer{{calls(call("1x", "broken", "{"))[0], calls(call("1a", "look", at))[0]}, text("done")},
		expect: func(t *testing.T, s *agentloop.State, err error) {
			t.Helper()
			ends("done", "look "+at)(t, s, err)
			if s.Usage.InputTokens != 30 || s.Steps[0].Attempts != 2 {
				t.Errorf("the usage is %+v, the first step has %d attempts", s.Usage, s.Steps[0].Attempts)
			}
		},
	}, {
		name: "marks",
		options: agentloop.Options{Tools: []agentloop.Tool{tool("alone", func(t *agentloop.Tool) { t.Serial = true }),
			tool("pure", func(t *agentloop.Tool) { t.Pure = true }), tool("answer", func(t *agentloop.Tool) { t.ReturnDirect = true })}},
		answers: [][]answer{calls(call("1a", "alone", at), call("1b", "pure", at), call("1c", "alone", at)), calls(call("2a", "answer", at))},
		expect:  ends("answer "+at, "alone "+at, "pure "+at, "alone "+at, "answer "+at),
	}, {
		name:    "at most once",
		options: agentloop.Options{Tools: []agentloop.Tool{tool("pay", func(t *agentloop.Tool) { t.AtMostOnce = true })}},
		answers: [][]answer{calls(call("1a", "pay", at)), calls(call("2a", "pay", at)), text("done")},
		expect:  ends("done", "pay "+at, "pay "+at),
	}, {
		name:    "decisions",
		options: agentloop.Options{Tools: []agentloop.Tool{echo, tool("pay", func(t *agentloop.Tool) { t.Approval = true })}},
		answers: [][]answer{
			calls(call("1a", "pay", at), call("1b", "pay", at), call("1c", "pay", at), call("1d", "pay", at), call("1e", "look", at)),
			calls(call("2a", "pay", at)), text("done"),
		},
		decide: func(p agentloop.Pending, d Decider) error {
			switch p.Call.ID {
			case "1b":
				return d.Edit(p.Call.ID, `{"at":"b"}`)
			case "1c":
				return d.Reject(p.Call.ID, "no")
			case "1d":
				return d.Resolve(p.Call.ID, agentloop.Text("by hand"))
			}
			return d.Approve(p.Call.ID)
		},
		expect: ends("done", "pay "+at, `pay {"at":"b"}`, "Tool call 'pay' was rejected by a human reviewer. Reason: no", "by hand", "look "+at, "pay "+at),
	}, {
		name: "suspended",
		options: agentloop.Options{Tools: []agentloop.Tool{{Def: echo.Def, Func: func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			return agentloop.Result{}, agentloop.Suspend("later")
		}}}},
		answers: [][]answer{calls(call("1a", "look", at)), text("done")},
		decide: func(p agentloop.Pending, d Decider) error {
			if p.Reason != "later" {
				return errors.New("the reason is " + p.Reason)
			}
			return d.Resolve(p.Call.ID, agentloop.Text("now"))
		},
		expect: ends("done", "now"),
	}, {
		name: "a tool that fails",
		options: agentloop.Options{Tools: []agentloop.Tool{{Def: echo.Def, Func: func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			return agentloop.Result{}, errors.New("broken")
		}}}},
		answers: [][]answer{calls(call("1a", "look", at)), text("sorry")},
		expect:  ends("sorry", "broken"),
	}, {
		name: "a tool that aborts",
		options: agentloop.Options{Tools: []agentloop.Tool{{Def: echo.Def, Func: func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
			return agentloop.Result{}, agentloop.Abort(errors.New("out of money"))
		}}}},
		answers: [][]answer{calls(call("1a", "look", at)), text("never")},
		effects: 2,
		expect:  fails("out of money", nil),
	}, {
		name:    "a model that refuses",
		options: agentloop.Options{Tools: []agentloop.Tool{echo}},
		answers: [][]answer{calls(call("1a", "look", at)), modelError(400, "refused")},
		effects: 3,
		expect:  fails("refused", nil),
	}, {
		name:    "a model that is overloaded",
		options: agentloop.Options{Tools: []agentloop.Tool{echo}},
		answers: [][]answer{calls(call("1a", "look", at)), modelError(529, "overloaded")},
		effects: 2 + attempts, // and no multiple of it
		expect:  fails("overloaded", nil),
	}, {
		name:    "too many steps",
		options: agentloop.Options{Tools: []agentloop.Tool{echo}, MaxSteps: 1},
		answers: [][]answer{calls(call("1a", "look", at)), text("never")},
		effects: 2,
		calm:    true,
		expect:  fails("too many steps", agentloop.ErrMaxSteps),
	}, {
		name:    "a stop condition",
		options: agentloop.Options{Tools: []agentloop.Tool{echo}, StopWhen: agentloop.ToolUsed("look")},
		answers: [][]answer{calls(call("1a", "look", at)), text("never")},
		effects: 2,
		expect:  ends("", "look "+at),
	}}
}

// fails returns an expectation: the text of the error, and what it is.
func fails(text string, is error) func(*testing.T, *agentloop.State, error) {
	return func(t *testing.T, s *agentloop.State, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), text) || is != nil && !errors.Is(err, is) {
			t.Errorf("the error is %v, want %q", err, text)
		}
	}
}
