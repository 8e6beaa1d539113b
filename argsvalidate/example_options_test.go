package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// played plays a model: each answer once, in order.
func played(answers ...middleware.Message) middleware.ModelCall {
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		m := answers[0]
		answers = answers[1:]
		return &middleware.Response{Model: "small-1", Message: m, Usage: middleware.Usage{InputTokens: 100, OutputTokens: 20}}, nil
	}
}

func click(id, arguments string) middleware.ToolCall {
	return middleware.ToolCall{ID: id, Name: "click", Arguments: arguments}
}

var clickTool = []middleware.Tool{{Name: "click",
	Parameters: []byte(`{"type":"object","properties":{"selector":{"type":"string"}},"required":["selector"],"additionalProperties":false}`)}}

// Settings for one tool: what models send for selector, and that a call that
// stays invalid is dropped.
func ExampleOptions_perTool() {
	o := argsvalidate.Options{PerTool: map[string]argsvalidate.ToolOptions{
		"click": {Aliases: map[string]string{"element": "selector"}, OnExhausted: middleware.DropInvalid},
	}}
	call := argsvalidate.New(o)(played(middleware.Assistant("", click("1", `{"element": "#ok"}`))))
	resp, err := call(context.Background(), &middleware.Request{Tools: clickTool})
	fmt.Println(resp.Message.ToolCalls[0].Arguments, len(resp.Report.Attempts), err)
	// Output: {"selector": "#ok"} 1 <nil>
}

// A fixer of your own is asked when the built-in rules have no answer. What it
// returns is validated like any other arguments.
func ExampleOptions_fixers() {
	fix := func(_ context.Context, t middleware.Tool, c middleware.ToolCall, _ []middleware.Issue) (string, bool) {
		return `{"selector": "#default"}`, t.Name == "click" && c.Arguments == "{}"
	}
	call := argsvalidate.New(argsvalidate.Options{Fixers: []argsvalidate.Fixer{fix}})(played(middleware.Assistant("", click("1", `{}`))))
	resp, err := call(context.Background(), &middleware.Request{Tools: clickTool})
	fmt.Println(resp.Message.ToolCalls[0].Arguments, err)
	// Output: {"selector": "#default"} <nil>
}

// With KeepValid the model sends only the broken call again.
func ExampleOptions_keepValid() {
	call := argsvalidate.New(argsvalidate.Options{Batch: batch.KeepValid})(played(
		middleware.Assistant("", click("1", `{"selector": "#a"}`), click("2", `{"selector": 7.5}`), click("3", `{"css": "#c"}`)),
		middleware.Assistant("", click("4", `{"selector": "#c"}`)),
	))
	resp, err := call(context.Background(), &middleware.Request{Tools: clickTool})
	for _, c := range resp.Message.ToolCalls {
		fmt.Println(c.ID, c.Arguments)
	}
	fmt.Println(err)
	// Output:
	// 1 {"selector": "#a"}
	// 2 {"selector": "7.5"}
	// 3 {"selector": "#c"}
	// <nil>
}

// A sink gets text at once and tool calls when they are valid; a reset voids
// what was shown of a failed attempt.
func ExampleValidator_Middleware_sink() {
	model := played(middleware.Assistant("", click("1", `{"css": "#ok"}`)), middleware.Assistant("", click("2", `{"selector": "#ok"}`)))
	streaming := func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: "Clicking."}); err != nil {
			return nil, err
		}
		return model(ctx, req)
	}
	req := &middleware.Request{Tools: clickTool, Sink: func(e middleware.Event) error {
		line := string(e.Kind) + " " + e.Text
		if e.Call != nil {
			line += e.Call.Arguments
		}
		fmt.Println(strings.TrimSpace(line))
		return nil
	}}
	_, err := argsvalidate.New(argsvalidate.Options{})(streaming)(context.Background(), req)
	fmt.Println(err)
	// Output:
	// text Clicking.
	// reset
	// text Clicking.
	// tool_call {"selector": "#ok"}
	// <nil>
}

// What a step cost, attempt by attempt, is in its report.
func ExampleValidator_Middleware_cost() {
	call := argsvalidate.New(argsvalidate.Options{})(played(
		middleware.Assistant("", click("1", `{"css": "#ok"}`)), middleware.Assistant("", click("2", `{"selector": "#ok"}`))))
	resp, err := call(context.Background(), &middleware.Request{Tools: clickTool})
	for i, a := range middleware.ReportOf(resp, err).Attempts {
		fmt.Println("attempt", i+1, a.Model, a.Usage.InputTokens+a.Usage.OutputTokens, "tokens, valid:", a.Verdicts[0].OK())
	}
	fmt.Println("sum", resp.Usage.InputTokens+resp.Usage.OutputTokens)
	// Output:
	// attempt 1 small-1 120 tokens, valid: false
	// attempt 2 small-1 120 tokens, valid: true
	// sum 240
}
