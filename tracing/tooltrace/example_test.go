package tooltrace_test

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/tracing"
	"github.com/toolmend/toolmend/tracing/tooltrace"
)

// The tool fails once. One span covers both attempts, because tooltrace is
// outside RetryTools.
func ExampleNew() {
	spans := tracetest.NewInMemoryExporter()
	provider := trace.NewTracerProvider(trace.WithSyncer(spans))

	attempts := 0
	weather := agentloop.RawTool("weather", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		if attempts++; attempts == 1 {
			return agentloop.Result{}, &middleware.ModelError{StatusCode: 503, Err: errors.New("weather service unavailable")}
		}
		return agentloop.Text("sunny"), nil
	})
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == middleware.RoleTool {
			return &middleware.Response{Message: middleware.Assistant("It is " + last.Text() + ".")}, nil
		}
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "call_1", Name: "weather", Arguments: "{}"})}, nil
	}

	agent, err := agentloop.New(model, agentloop.Options{
		Tools: []agentloop.Tool{weather},
		ToolMiddleware: agentloop.ChainTools(
			tooltrace.New(tracing.Options{TracerProvider: provider}),
			agentloop.RetryTools(retry.Options{MaxAttempts: 2}),
		),
	})
	if err != nil {
		panic(err)
	}
	state := agentloop.NewState(middleware.User("What is the weather?"))
	if err := agent.Run(context.Background(), state); err != nil {
		panic(err)
	}
	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name, attempts, "attempts")
	}
	// Output: execute_tool weather 2 attempts
}
