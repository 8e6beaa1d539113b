package tracing_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

func exampleModel(context.Context, *middleware.Request) (*middleware.Response, error) {
	return &middleware.Response{
		Message:      middleware.Assistant("It is sunny."),
		FinishReason: middleware.FinishStop,
		Usage:        middleware.Usage{InputTokens: 12, OutputTokens: 4},
	}, nil
}

// askTwice stands for a layer that asks again.
func askTwice(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		var tally middleware.Tally
		if _, err := tally.Call(ctx, next, req); err != nil {
			return tally.Finish(nil, err)
		}
		return tally.Finish(tally.Call(ctx, next, req))
	}
}

func ExampleNew() {
	spans := tracetest.NewInMemoryExporter()
	tp := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))

	call := middleware.Chain(
		tracing.New(tracing.Options{TracerProvider: tp}),
		askTwice,
	)(exampleModel)
	_, err := call(context.Background(), &middleware.Request{Model: "small"})

	for _, span := range spans.GetSpans() {
		fmt.Println(span.Name)
		for _, kv := range span.Attributes {
			fmt.Printf("  %s = %s\n", kv.Key, kv.Value.Emit())
		}
	}
	fmt.Println(err)
	// Output:
	// model_step small
	//   gen_ai.provider.name = _OTHER
	//   gen_ai.request.model = small
	//   toolmend.attempts = 2
	//   toolmend.status = none
	//   toolmend.invalid_calls = 0
	//   toolmend.notes = 0
	//   toolmend.final_attempt = 2
	//   gen_ai.response.finish_reasons = ["stop"]
	//   toolmend.usage.input_tokens = 24
	//   toolmend.usage.output_tokens = 8
	// <nil>
}

func ExampleNewAttempt() {
	spans := tracetest.NewInMemoryExporter()
	o := tracing.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans))}

	call := middleware.Chain(
		tracing.New(o),
		askTwice,
		tracing.NewAttempt(o),
	)(exampleModel)
	_, err := call(context.Background(), &middleware.Request{Model: "small"})

	for _, span := range spans.GetSpans() { // in the order in which they ended
		fmt.Println(span.Name, span.SpanKind)
	}
	fmt.Println(err)
	// Output:
	// chat small client
	// chat small client
	// model_step small internal
	// <nil>
}

// Without OpenTelemetry: a logger is all that New needs.
func ExampleNew_log() {
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes}))

	call := tracing.New(tracing.Options{Logger: logger})(exampleModel)
	_, err := call(context.Background(), &middleware.Request{Model: "small"})
	fmt.Println(err)
	// Output:
	// level=INFO msg="model step" model=small status=none attempts=1 final_attempt=1 invalid_calls=0 finish_reason=stop input_tokens=12 output_tokens=4 notes=0
	// <nil>
}

func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey || a.Key == "duration" {
		return slog.Attr{}
	}
	return a
}
