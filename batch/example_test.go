package batch_test

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// The model corrects the invalid call, and its valid sibling is held.
func ExamplePolicy() {
	book := middleware.Tool{Name: "book", Parameters: []byte(`{"type": "object", "properties": {"flight": {"type": "string"}}, "required": ["flight"]}`)}
	search := middleware.Tool{Name: "search", Parameters: []byte(`{"type": "object"}`)}
	answers := []middleware.Message{
		middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "search"}, middleware.ToolCall{ID: "2", Name: "book", Arguments: `{"seat": "12A"}`}),
		middleware.Assistant("", middleware.ToolCall{ID: "3", Name: "book", Arguments: `{"flight": "SK4"}`}),
	}
	model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		answer := answers[0]
		answers = answers[1:]
		return &middleware.Response{Message: answer}, nil
	}
	call := middleware.Chain(argsvalidate.New(argsvalidate.Options{Batch: batch.KeepValid}))(model)
	resp, err := call(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("a trip to the fjords")},
		Tools:    []middleware.Tool{search, book},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range resp.Message.ToolCalls {
		fmt.Println(c.ID, c.Name, c.Arguments)
	}
	// Output:
	// 1 search {}
	// 2 book {"flight": "SK4"}
}

// A loop of your own asks the model once for the invalid call, and keeps the valid one.
func Example() {
	ctx := context.Background()
	tools := []middleware.Tool{
		{Name: "book", Parameters: []byte(`{"type": "object", "properties": {"flight": {"type": "string"}}, "required": ["flight"]}`)},
		{Name: "search", Parameters: []byte(`{"type": "object"}`)},
	}
	m := middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "search", Arguments: "{}"}, middleware.ToolCall{ID: "2", Name: "book", Arguments: `{"seat": "12A"}`})
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	verdicts, err := v.Validate(ctx, tools, m.ToolCalls...)
	if err != nil {
		render := func(v middleware.Verdict) string { return v.Issues[0].Path() + ": " + v.Issues[0].Message }
		for _, sent := range batch.Turn(m, tools, verdicts, batch.KeepValid, render) {
			fmt.Println(sent.Role, sent.ToolName, sent.IsError) // to append to the request
		}
		next := middleware.Assistant("", middleware.ToolCall{ID: "3", Name: "book", Arguments: `{"flight": "SK4"}`}) // the model's answer
		if spliced, _, ok := batch.Splice(m, next, verdicts); ok {
			next = spliced
		}
		m = next
	}
	_, err = v.Validate(ctx, tools, m.ToolCalls...)
	fmt.Println(m.ToolCalls[0].Name, m.ToolCalls[1].Arguments, err)
	// Output:
	// assistant  false
	// tool search false
	// tool book true
	// search {"flight": "SK4"} <nil>
}
