package report_test

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

func ExampleFigures() {
	tools := []middleware.Tool{{Name: "add", Parameters: []byte(`{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`)}}
	checker := report.NewChecker(argsvalidate.Options{})
	figures := report.NewFigures(report.Options{})
	for _, arguments := range []string{`{"x":1}`, `{"x":"2"}`, `{}`} {
		calls, err := checker.Check(context.Background(), tools, middleware.FinishToolCalls, middleware.ToolCall{Name: "add", Arguments: arguments})
		if err != nil {
			fmt.Println(err)
			return
		}
		figures.Add(&report.Step{Model: "m", Tools: tools, Attempts: []report.Attempt{{Calls: calls}}})
	}
	s := figures.Summary()
	fmt.Printf("%d calls, %d not valid as sent, %d in the end\n", s.Total.Calls, s.Total.Bad(), s.Total.Final)
	for _, f := range s.Faults {
		fmt.Printf("%s %s: %s, expected %s, received %s\n", f.Tool, f.Pointer, f.Code, f.Expected, f.Received)
	}
	// Output:
	// 3 calls, 2 not valid as sent, 1 in the end
	// add /x: required, expected integer, received nothing
	// add /x: type, expected integer, received string
}
