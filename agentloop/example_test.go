package agentloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// play stands for a real model: it gives these answers, one after the other.
func play(answers ...middleware.Message) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		m := answers[0]
		answers = answers[1:]
		return &middleware.Response{Message: m}, nil
	}
}

type payment struct {
	To     string `json:"to"`
	Amount int    `json:"amount" jsonschema:"minimum=1"`
}

var pay = agentloop.NewTool("pay", "Pays a person.", func(_ context.Context, p payment) (agentloop.Result, error) {
	return agentloop.Text(fmt.Sprintf("paid %d to %s", p.Amount, p.To)), nil
})

func ExampleNew() {
	model := play(
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "pay", Arguments: `{"to": "Ann", "amount": 0}`}),
		middleware.Assistant("", middleware.ToolCall{ID: "2", Name: "pay", Arguments: `{"to": "Ann", "amount": 5.0}`}),
		middleware.Assistant("Ann has her money."))
	call := argsvalidate.New(argsvalidate.Options{})(model) // re-asks because of the first one
	agent, err := agentloop.New(call, agentloop.Options{Tools: []agentloop.Tool{pay}})
	if err != nil {
		panic(err)
	}
	s := agentloop.NewState(middleware.User("Pay Ann 5."))
	err = agent.Run(context.Background(), s)
	fmt.Println(s.Results[0].Text, "-", s.Answer(), err)
	fmt.Println("model calls:", s.Steps[0].Attempts+s.Steps[1].Attempts)
	// Output:
	// paid 5 to Ann - Ann has her money. <nil>
	// model calls: 3
}

func ExampleNewTool() {
	type args struct {
		City string `json:"city" jsonschema:"minLength=1"`
		Unit string `json:"unit,omitempty" jsonschema:"enum=celsius,enum=fahrenheit"`
	}
	tool := agentloop.NewTool("weather", "Says how the weather is.", func(_ context.Context, a args) (agentloop.Result, error) {
		return agentloop.Text("sunny in " + a.City), nil
	})
	fmt.Println(string(tool.Def.Parameters))
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","minLength":1},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}
}

func ExampleAgent_Steps() {
	model := play(
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "pay", Arguments: `{"to":"Ann","amount":5}`}),
		middleware.Assistant("Done."))
	agent, _ := agentloop.New(model, agentloop.Options{Tools: []agentloop.Tool{pay}})
	s := agentloop.NewState(middleware.User("Pay Ann 5."))
	for step, err := range agent.Steps(context.Background(), s) {
		switch {
		case err != nil:
			fmt.Println("failed:", err)
		case step.Response != nil:
			fmt.Println("the model said:", step.Response.Message.Text(), len(step.Response.Message.ToolCalls), "calls")
		default:
			fmt.Println("tools:", step.Results[0].Text)
		}
	}
	// Output:
	// the model said:  1 calls
	// tools: paid 5 to Ann
	// the model said: Done. 0 calls
}

func ExampleState_Approve() {
	model := play(
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "pay", Arguments: `{"to":"Ann","amount":5}`}),
		middleware.Assistant("Done."))
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	agent, _ := agentloop.New(validator.Middleware()(model), agentloop.Options{Tools: []agentloop.Tool{pay.NeedsApproval()}, Validator: validator})
	s := agentloop.NewState(middleware.User("Pay Ann 5."))
	err := agent.Run(context.Background(), s)
	fmt.Println(errors.Is(err, agentloop.ErrPending), s.Pending()[0].Call.Arguments)

	saved, _ := json.Marshal(s) // days later, in another process:
	var back agentloop.State
	_ = json.Unmarshal(saved, &back)
	_ = back.Approve("1")
	err = agent.Run(context.Background(), &back)
	fmt.Println(back.Results[0].Text, err)
	// Output:
	// true {"to":"Ann","amount":5}
	// paid 5 to Ann <nil>
}

func ExampleExtract() {
	model := play(middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "answer", Arguments: `{"to":"Ann","amount":5}`}))
	p, _, err := agentloop.Extract[payment](context.Background(), model, middleware.User("I owe Ann a fiver."))
	fmt.Println(p.To, p.Amount, err)
	// Output:
	// Ann 5 <nil>
}
