package textcall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/textcall"
)

// A model that writes text gets tools, and validation with them.
func ExampleNew() {
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		text := "Thought: I should look it up.\nAction: search\nAction Input: \"height of K2\""
		if last := req.Messages[len(req.Messages)-1].Text(); strings.HasPrefix(last, "Observation:") {
			text = "Thought: I know the final answer\nFinal Answer: 8,611 m"
		}
		return &middleware.Response{Message: middleware.Assistant(text), FinishReason: middleware.FinishStop}, nil
	}
	call := middleware.Chain(
		argsvalidate.New(argsvalidate.Options{}),
		textcall.New(textcall.Options{}),
	)(model)

	req := &middleware.Request{
		Messages: []middleware.Message{middleware.User("How high is K2?")},
		Tools: []middleware.Tool{{Name: "search", Description: "Searches the web.", Parameters: json.RawMessage(
			`{"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}`)}},
	}
	resp, err := call(context.Background(), req)
	if err != nil {
		fmt.Println(err)
		return
	}
	c := resp.Message.ToolCalls[0]
	fmt.Println(resp.FinishReason, resp.Report.Status, c.ID, c.Name, c.Arguments)

	resp, err = call(context.Background(), req.With(resp.Message, middleware.ToolReply(c, "K2 is 8,611 m high.")))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.FinishReason, resp.Message.Text())
	// Output:
	// tool_calls valid textcall_1 search {"query": "height of K2"}
	// stop 8,611 m
}

// A function that continues a text is a model with tools.
func ExampleModel() {
	complete := func(_ context.Context, prompt string, stop []string) (string, error) {
		fmt.Printf("%q\n", stop)
		fmt.Println(prompt[strings.LastIndex(prompt, "Question:"):])
		return " I need no tool.\nFinal Answer: Hello!", nil
	}
	call := textcall.Model(textcall.Options{}, complete)
	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("Say hello.")},
		Tools:    []middleware.Tool{{Name: "now", Description: "The time."}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Message.Text())
	// Output:
	// ["\nObservation:" "\nQuestion:"]
	// Question: Say hello.
	// Thought:
	// Hello!
}

// What can be wrong with options is known before anything is built.
func ExampleOptions_Validate() {
	fmt.Println(textcall.Options{MaxAttempts: -1}.Validate())
	// Output: textcall: MaxAttempts: must be 0 to 1000, got -1
}
