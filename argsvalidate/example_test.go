package argsvalidate_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

var forecast = middleware.Tool{Name: "forecast", Parameters: []byte(
	`{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 14}}, "required": ["city"]}`)}

func ExampleNew() {
	// A model that asks for too many days, and for fewer once it is told.
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		args := `{"city": "Oslo", "days": 30}`
		if last := req.Messages[len(req.Messages)-1]; last.IsError {
			fmt.Println(last.Text())
			args = `{"city": "Oslo", "days": 14}`
		}
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "forecast", Arguments: args})}, nil
	}
	ask := argsvalidate.New(argsvalidate.Options{})(model)

	resp, err := ask(context.Background(), &middleware.Request{
		Messages: []middleware.Message{middleware.User("How will the month be in Oslo?")},
		Tools:    []middleware.Tool{forecast},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("--")
	fmt.Println(resp.Message.ToolCalls[0].Arguments)
	fmt.Println(resp.Report.Status, "after", len(resp.Report.Attempts), "attempts")
	// Output:
	// Tool 'forecast' argument validation failed. Fix the following errors and retry:
	//   • [days] wanted a number of at most 14; sent number 30
	// --
	// {"city": "Oslo", "days": 14}
	// valid after 2 attempts
}

func ExampleNewValidator() {
	v := argsvalidate.NewValidator(argsvalidate.Options{Tools: []middleware.Tool{forecast}})
	ok, notes := v.Inspect(forecast)
	fmt.Println(ok, len(notes))
	// Output: true 0
}

func ExampleValidator_Validate() {
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	edited := middleware.ToolCall{ID: "1", Name: "forecast", Arguments: `{"city": "Oslo", "days": 30}`}
	verdicts, err := v.Validate(context.Background(), []middleware.Tool{forecast}, edited)
	fmt.Println(errors.Is(err, argsvalidate.ErrInvalid))
	for _, i := range verdicts[0].Issues {
		fmt.Println(argsvalidate.Line("forecast", i))
	}
	// Output:
	// true
	// Tool 'forecast' argument 'days': wanted a number of at most 14; sent number 30
}

func ExampleValidator_Middleware() {
	v := argsvalidate.NewValidator(argsvalidate.Options{MaxAttempts: 1})
	ask := middleware.Chain(v.Middleware())(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "1", Name: "forecast", Arguments: `{"days": 3}`})}, nil
	})
	_, err := ask(context.Background(), &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}, Tools: []middleware.Tool{forecast}})
	fmt.Println(errors.Is(err, argsvalidate.ErrExhausted))
	fmt.Println(err)
	// Output:
	// true
	// argsvalidate: attempts exhausted: arguments still invalid after 1 attempts; forecast: required
}

// check prints what a rule has to say.
func check(r argsvalidate.Rule, tool, args string) {
	issues, err := r.Check(context.Background(), &argsvalidate.Call{ToolCall: middleware.ToolCall{ID: "1", Name: tool, Arguments: args}})
	if err != nil {
		fmt.Println(err)
	}
	for _, i := range issues {
		fmt.Println(argsvalidate.Line(tool, i))
	}
}

func ExampleFieldRule() {
	check(argsvalidate.FieldRule[int]{
		Path:    "/numbers/*",
		Valid:   func(n int) bool { return 0 < n && n < 100 },
		Message: "{value} is out of range",
	}, "add", `{"numbers": [5, 500]}`)
	// Output: Tool 'add' argument 'numbers[1]': 500 is out of range
}

func ExampleDotted() {
	fmt.Println(argsvalidate.Dotted("config.thresholds.*"))
	// Output: /config/thresholds/*
}

func ExampleForTool() {
	type period struct{ From, To int }
	check(argsvalidate.ForTool("report", func(_ context.Context, p period, _ *argsvalidate.Call) ([]middleware.Issue, error) {
		if p.From > p.To {
			return []middleware.Issue{{Pointer: "/from", Message: "is after to"}}, nil
		}
		return nil, nil
	}), "report", `{"from": 2025, "to": 2020}`)
	// Output: Tool 'report' argument 'from': is after to
}

func ExampleForbidPattern() {
	check(argsvalidate.ForbidPattern(regexp.MustCompile(`\.\./`), "{value} leaves the folder", "read"), "read", `{"files": [{"path": "a/../../b"}]}`)
	// Output: Tool 'read' argument 'files[0].path': ../ leaves the folder
}

func ExampleInternalIDs() {
	check(argsvalidate.InternalIDs(), "get", `{"id": "lc_0f0e0d0c-0000-4000-8000-abcdef012345"}`)
	// Output: Tool 'get' argument 'id': 'lc_0f0e0d0c-0000-4000-8000-abcdef012345' is an internal ID of the framework, NOT a valid data identifier; use a real resource ID
}

func ExampleRuleFunc() {
	check(argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		if len(c.Siblings) == 0 {
			return []middleware.Issue{{Message: "never alone"}}, nil
		}
		return nil, nil
	}), "commit", `{}`)
	// Output: Tool 'commit' arguments: never alone
}

func ExampleOptions_Validate() {
	fmt.Println(argsvalidate.Options{MaxAttempts: -1}.Validate())
	// Output: argsvalidate: MaxAttempts: must be 0 to 1000, got -1
}

func ExampleDefaultFeedback() {
	fmt.Println(argsvalidate.DefaultFeedback(argsvalidate.FeedbackInput{
		Verdict:   middleware.Verdict{Call: middleware.ToolCall{Name: "forcast"}, Issues: []middleware.Issue{{Code: "unknown_tool"}}},
		Available: []string{"forecast", "search"},
		Attempt:   1,
	}))
	// Output: Tool 'forcast' does not exist. Did you mean 'forecast'? Available tools: forecast, search. Call one of them by its exact name.
}
