package main

import (
	"context"
	"fmt"
	"time"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

type (
	dateArgs struct {
		Date string `json:"date" jsonschema:"format=date"`
	}
	routeArgs struct {
		From string `json:"from" jsonschema:"minLength=3,maxLength=3"`
		To   string `json:"to" jsonschema:"minLength=3,maxLength=3"`
		Date string `json:"date" jsonschema:"format=date"`
	}
	flightArgs struct {
		Flight string `json:"flight"`
		Seat   string `json:"seat,omitempty"`
	}
	mailArgs struct {
		To      string `json:"to"`
		Subject string `json:"subject"`
	}
)

// newAgent returns an agent with five tools. It is the same as without Temporal:
// agent.Run would run it in one process.
func newAgent(w world) (*agentloop.Agent, error) {
	validator := argsvalidate.NewValidator(argsvalidate.Options{})
	return agentloop.New(validator.Middleware()(model), agentloop.Options{
		Validator: validator,
		Tools: []agentloop.Tool{
			agentloop.NewTool("check_calendar", "Checks a day.", func(ctx context.Context, a dateArgs) (agentloop.Result, error) {
				return w.change(ctx, a.Date+" is free")
			}),
			agentloop.NewTool("search_flights", "Searches flights.", func(ctx context.Context, a routeArgs) (agentloop.Result, error) {
				return w.change(ctx, "found DY 1306 from "+a.From+" to "+a.To)
			}),
			agentloop.NewTool("hold_seat", "Holds a seat.", func(ctx context.Context, a flightArgs) (agentloop.Result, error) {
				return w.change(ctx, "held a seat on "+a.Flight)
			}),
			agentloop.NewTool("book_flight", "Books and pays.", func(ctx context.Context, a flightArgs) (agentloop.Result, error) {
				return w.change(ctx, "booked and paid "+a.Flight)
			}).NeedsApproval(),
			agentloop.NewTool("send_mail", "Sends a mail.", func(ctx context.Context, a mailArgs) (agentloop.Result, error) {
				return w.change(ctx, "sent a mail to "+a.To)
			}),
		},
	})
}

// script is what the model calls, turn by turn. A seat that is null is not valid:
// it is removed inside the model step.
var script = [][]middleware.ToolCall{
	{
		{ID: "call_1", Name: "check_calendar", Arguments: `{"date":"2026-12-03"}`},
		{ID: "call_2", Name: "search_flights", Arguments: `{"from":"OSL","to":"LHR","date":"2026-12-03"}`},
	},
	{{ID: "call_3", Name: "hold_seat", Arguments: `{"flight":"DY 1306","seat":null}`}},
	{{ID: "call_4", Name: "book_flight", Arguments: `{"flight":"DY 1306","seat":null}`}},
	{{ID: "call_5", Name: "send_mail", Arguments: `{"to":"me@example.org","subject":"You fly to London"}`}},
}

// model plays one that takes a second to think.
func model(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	turn := 0
	for _, m := range req.Messages {
		if m.Role == middleware.RoleAssistant {
			turn++
		}
	}
	if turn == len(script) {
		return &middleware.Response{Message: middleware.Assistant("You fly to London with DY 1306 on the 3rd of December."), FinishReason: middleware.FinishStop}, nil
	}
	return &middleware.Response{Message: middleware.Assistant("", script[turn]...), FinishReason: middleware.FinishToolCalls}, nil
}

// change has an effect on the world that happens once for an idempotency key, as
// a payment would: Temporal runs a tool again if its worker was killed.
func (w world) change(ctx context.Context, what string) (agentloop.Result, error) {
	info, ok := agentloop.CallFrom(ctx)
	if !ok {
		return agentloop.Result{}, fmt.Errorf("%s was not called by an agent", what)
	}
	return agentloop.Text(what), w.once(info.Key, what)
}
