package rescue_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
)

// A server has left the call of a model in the text of the answer.
func ExampleNew() {
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{
			Message: middleware.Assistant("Let me check.\n" +
				"<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"),
			FinishReason: middleware.FinishStop,
		}, nil
	}
	call := middleware.Chain(
		argsvalidate.New(argsvalidate.Options{}),
		rescue.New(rescue.Options{}),
	)(model)

	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Will it rain in Oslo?")},
		Tools: []middleware.Tool{{Name: "get_weather", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}, "required": ["city"]}`)}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := resp.Message.ToolCalls[0]
	fmt.Printf("%q\n", resp.Message.Text())
	fmt.Println(c.ID, c.Name, c.Arguments)
	fmt.Println(resp.FinishReason, resp.Report.Status, resp.Report.Attempts[0].Changes[0].By)
	// Output:
	// "Let me check.\n"
	// rescue_1 get_weather {"city": "Oslo", "days": 3}
	// tool_calls valid rescue/qwen3-coder
}
