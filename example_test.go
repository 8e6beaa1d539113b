package toolmend_test

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// A model sends a number as text. The number is repaired inside the model call,
// and the report has the change.
func Example() {
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		call := middleware.ToolCall{ID: "call_1", Name: "book", Arguments: `{"city":"Rome","nights":"2"}`}
		return &middleware.Response{Message: middleware.Assistant("", call), FinishReason: middleware.FinishToolCalls}, nil
	}
	call := middleware.Chain(argsvalidate.New(argsvalidate.Options{}))(model)

	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Two nights in Rome, please.")},
		Tools: []middleware.Tool{{
			Name:       "book",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"nights":{"type":"integer"}},"required":["city"]}`),
		}},
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
