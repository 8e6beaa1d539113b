package heal_test

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
)

// A conversation that was interrupted has a call without a result. The provider refuses it,
// and gets it once more with an error result.
func ExampleNew() {
	refused := true
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if refused {
			refused = false
			return nil, &middleware.ModelError{StatusCode: 400, Message: "No tool output found for function call a."}
		}
		last := req.Messages[len(req.Messages)-1]
		fmt.Println(last.Role, last.ToolCallID, last.IsError)
		return &middleware.Response{Message: middleware.Assistant("I check first.")}, nil
	}
	resp, err := heal.New(heal.Options{})(model)(context.Background(), &middleware.Request{Messages: []middleware.Message{
		middleware.User("What is the weather?"),
		middleware.Assistant("", middleware.ToolCall{ID: "a", Name: "weather", Arguments: `{"city": "Oslo"}`}),
	}})
	fmt.Println(resp.Message.Text(), err)
	fmt.Println(resp.Report.Notes[0])
	// Output:
	// tool a true
	// I check first. <nil>
	// heal: orphan-calls: the provider refused the request; 1 tool call in the history had no result; each got an error result
}
