package toolmend_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

var book = middleware.Tool{
	Name:       "book",
	Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"}},"required":["city"]}`),
}

// says returns a model that always calls book with these arguments.
func says(arguments string) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		call := middleware.ToolCall{ID: "call_1", Name: "book", Arguments: arguments}
		return &middleware.Response{Message: middleware.Assistant("", call), FinishReason: middleware.FinishToolCalls}, nil
	}
}

// A model sends a number as text. The number is repaired inside the model call,
// and the report has the change.
func ExampleStack() {
	model := says(`{"city":"Rome","nights":"2"}`) // in a program: toolmend.OpenAI(toolmend.Endpoint{Model: "gpt-5", Key: key})
	call := toolmend.Stack(toolmend.Options{})(model)

	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")},
		Tools:    []middleware.Tool{book},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Message.ToolCalls[0].Arguments)
	fmt.Println(resp.Report.Status)
	// Output:
	// {"city":"Rome","nights":2}
	// valid
}

// A model that never corrects itself is an error. Here it is one after the first model call,
// because MaxAttempts is 1.
func ExampleOptions() {
	call := toolmend.Stack(toolmend.Options{
		Validator: argsvalidate.NewValidator(argsvalidate.Options{MaxAttempts: 1}),
	})(says(`{"nights":2}`))

	_, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")},
		Tools:    []middleware.Tool{book},
	})
	fmt.Println(errors.Is(err, argsvalidate.ErrExhausted))
	// Output: true
}

// A middleware of your own can be put outside of any layer.
func ExampleNewLayers() {
	count := func(name string) middleware.Middleware {
		return func(next middleware.ModelCall) middleware.ModelCall {
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				fmt.Println(name)
				return next(ctx, req)
			}
		}
	}
	perMessage, perModelCall := count("message"), count("model call")

	// region: outside
	stack := toolmend.NewLayers(toolmend.Options{}).
		Outside(middleware.LayerValidate, perMessage).  // runs once for each message that the caller gets
		Outside(middleware.LayerAttempt, perModelCall). // runs once for each model call
		Chain()
	// endregion

	_, err := stack(says(`{"nights":2}`))(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")},
		Tools:    []middleware.Tool{book},
	})
	fmt.Println(errors.Is(err, argsvalidate.ErrExhausted))
	// Output:
	// message
	// model call
	// model call
	// model call
	// true
}
