package middlewaretest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// polite is a middleware as a user may write one.
func polite(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		return next(ctx, req.WithSystem("Be polite."))
	}
}

// In a test the first argument is the test's own t.
func ExampleNewModel() {
	t := &testing.T{} // stands in for the test here

	model := middlewaretest.NewModel(t,
		middlewaretest.Calls("weather", `{"city":"Oslo"}`),
		middlewaretest.Text("It is cold."),
	)
	call := middleware.Chain(polite)(model.Call)

	req := &middleware.Request{Messages: []middleware.Message{middleware.User("How is Oslo?")}}
	resp, _ := call(context.Background(), req)
	asked := resp.Message.ToolCalls[0]
	fmt.Println(asked.ID, asked.Name, asked.Arguments)

	resp, _ = call(context.Background(), req.With(resp.Message, middleware.ToolReply(asked, "-4 °C")))
	fmt.Println(resp.Message.Text())
	fmt.Println(model.Requests()[1].Messages[0].Text(), len(model.Requests()[1].Messages))
	// Output:
	// call_1 weather {"city":"Oslo"}
	// It is cold.
	// Be polite. 4
}

// A middleware's own test is this one line.
func ExampleRun() {
	_ = func(t *testing.T) {
		middlewaretest.Run(t, polite)
	}
}

func TestPoliteKeepsTheLaws(t *testing.T) {
	t.Parallel()
	middlewaretest.Run(t, polite)
}

// The same seed makes the same mistakes.
func ExampleNewFaulty() {
	model := middlewaretest.NewFaulty(1, middlewaretest.FaultOptions{
		Rates: map[middlewaretest.Fault]float64{"misnamed key": 1},
		Calls: 1,
	})
	resp, err := model.Call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Pay bill 7.")},
		Tools: []middleware.Tool{{Name: "pay", Parameters: []byte(
			`{"type":"object","properties":{"bill":{"type":"integer","minimum":7,"maximum":7}},"required":["bill"]}`)}},
	})
	fmt.Println(resp.Message.ToolCalls[0].Arguments, err)
	fmt.Println(model.Injected())
	// Output:
	// {"the_bill": 7} <nil>
	// map[misnamed key:1]
}

func ExampleStrict() {
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("Hello.")}, nil
	}
	call := middlewaretest.Strict(middlewaretest.Anthropic, model)

	lost := middleware.ToolCall{ID: "toolu_1", Name: "weather", Arguments: `{"city":"Oslo"}`}
	_, err := call(context.Background(), &middleware.Request{Messages: []middleware.Message{
		middleware.User("How is Oslo?"),
		middleware.Assistant("", lost),
		middleware.User("Well?"),
	}})
	fmt.Println(err)
	// Output:
	// middleware: model error: status 400: invalid_request_error: middlewaretest: request refused: messages.1: `tool_use` block 0 has no `tool_result` block directly after it
}
