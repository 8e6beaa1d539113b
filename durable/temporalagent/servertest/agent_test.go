package servertest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// plan is the first message of a conversation: what the scripted model does. So
// one agent serves all tests, and the model is the same in every process.
type plan struct {
	Name    string
	Turns   int           // model steps, the answer included
	Hidden  int           // the turn whose first response is invalid, from 1
	Both    int           // the turn that calls two tools
	Approve int           // the turn that calls the tool which needs approval
	Once    int           // the turn that calls the tool which must not start twice
	Bytes   int           // of each result
	Model   time.Duration // what a model call takes
	Tool    time.Duration
}

// fiveTurns has eleven effects: six model calls and five tools.
func fiveTurns(i int) plan {
	return plan{
		Name: fmt.Sprintf("agent-%02d", i), Turns: 5, Hidden: 2, Both: 3,
		Model: 150 * time.Millisecond, Tool: 50 * time.Millisecond,
	}
}

func (p plan) message() middleware.Message {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	return middleware.User(string(text))
}

// effects are the keys that the plan leaves in the ledger if nothing is killed.
// The idempotency key of a tool begins with the run, which is not in them.
func (p plan) effects() []string {
	var keys []string
	for turn := 1; turn <= p.Turns; turn++ {
		if turn == p.Hidden {
			keys = append(keys, p.modelKey(turn, "invalid"))
		}
		keys = append(keys, p.modelKey(turn, "valid"))
		for _, call := range p.calls(turn) {
			keys = append(keys, p.toolKey(turn, call.ID))
		}
	}
	return keys
}

func (p plan) modelKey(turn int, what string) string {
	return fmt.Sprintf("%s model %d %s", p.Name, turn, what)
}

func (p plan) toolKey(turn int, call string) string {
	return fmt.Sprintf("%s tool %d %s", p.Name, turn, call)
}

// parameters are those of all tools.
type parameters struct {
	Agent string        `json:"agent"`
	Turn  int           `json:"turn"`
	Bytes int           `json:"bytes"`
	Takes time.Duration `json:"takes"` // nanoseconds
}

// calls are the tool calls of a turn; none in the last one.
func (p plan) calls(turn int) []middleware.ToolCall {
	if turn == p.Turns {
		return nil
	}
	arguments, err := json.Marshal(parameters{p.Name, turn, p.Bytes, p.Tool})
	if err != nil {
		panic(err)
	}
	call := func(id, name string) middleware.ToolCall {
		return middleware.ToolCall{ID: fmt.Sprintf("%s%d", id, turn), Name: name, Arguments: string(arguments)}
	}
	switch turn {
	case p.Both:
		return []middleware.ToolCall{call("a", "fetch"), call("b", "count")}
	case p.Approve:
		return []middleware.ToolCall{call("a", "ship")}
	case p.Once:
		return []middleware.ToolCall{call("a", "pay")}
	}
	return []middleware.ToolCall{call("a", "fetch")}
}

// newAgent returns the agent of all tests, which has its effects on the world.
func newAgent(world string) (*agentloop.Agent, error) {
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	model := middleware.Chain(validator.Middleware())(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		return answer(ctx, world, req)
	})
	tool := func(ctx context.Context, p parameters) (agentloop.Result, error) { return work(ctx, world, p) }
	pay := agentloop.NewTool("pay", "Pays.", tool)
	pay.AtMostOnce = true
	return agentloop.New(model, agentloop.Options{
		Tools: []agentloop.Tool{
			agentloop.NewTool("fetch", "Fetches.", tool),
			agentloop.NewTool("count", "Counts.", tool),
			agentloop.NewTool("ship", "Ships.", tool).NeedsApproval(),
			pay,
		},
		Validator: validator,
		MaxSteps:  1000,
	})
}

// answer is the model: it follows the plan of the conversation.
func answer(ctx context.Context, world string, req *middleware.Request) (*middleware.Response, error) {
	var p plan
	if err := json.Unmarshal([]byte(req.Messages[0].Text()), &p); err != nil {
		return nil, err
	}
	turn := 1
	for _, m := range req.Messages {
		if m.Role == middleware.RoleAssistant {
			turn++
		}
	}
	last := req.Messages[len(req.Messages)-1]
	askedAgain := turn-1 == p.Hidden && last.Role == middleware.RoleTool && last.IsError
	what := "valid"
	switch {
	case askedAgain:
		turn-- // the failed turn is in the request
	case turn == p.Hidden:
		what = "invalid"
	}
	if err := effect(ctx, world, p.Name, p.modelKey(turn, what), p.Model); err != nil {
		return nil, err
	}
	calls := p.calls(turn)
	if what == "invalid" {
		calls[0].Arguments = `{"turn": 2}` // without the required ones
	}
	resp := &middleware.Response{FinishReason: middleware.FinishToolCalls, Usage: middleware.Usage{InputTokens: 10, OutputTokens: 1}}
	resp.Message = middleware.Assistant("", calls...)
	if len(calls) == 0 {
		resp.Message, resp.FinishReason = middleware.Assistant("done: "+p.Name), middleware.FinishStop
	}
	return resp, nil
}

// work is a tool.
func work(ctx context.Context, world string, args parameters) (agentloop.Result, error) {
	info, _ := agentloop.CallFrom(ctx)
	key := plan{Name: args.Agent}.toolKey(args.Turn, info.Call.ID)
	if err := effect(ctx, world, args.Agent, key, args.Takes); err != nil {
		return agentloop.Result{}, err
	}
	text := fmt.Sprintf("%s of turn %d. ", info.Call.Name, args.Turn)
	return agentloop.Text(text + strings.Repeat("x", args.Bytes)), nil
}
