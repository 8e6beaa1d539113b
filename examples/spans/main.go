// Command spans prints the OpenTelemetry spans of one step: the model misnames an argument,
// and corrects it when it is told. It needs no collector and no key.
//
//	go run ./examples/spans
//
// Contents are off, as they are by default: codes and pointers show, values do not.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	// A program exports spans with an exporter of OpenTelemetry in place of this one.
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))

	call := toolmend.Stack(toolmend.Options{
		Tracing: tracing.Options{TracerProvider: provider, Provider: "scripted"},
	})(model)
	_, err := call(ctx, &middleware.Request{
		Model:    "scripted-model",
		Messages: []middleware.Message{middleware.User("How is the weather in Oslo?")},
		Tools: []middleware.Tool{{
			Name:       "get_weather",
			Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
		}},
	})
	if err != nil {
		return err
	}
	for _, s := range exporter.GetSpans() {
		if !s.Parent.IsValid() {
			show(out, exporter.GetSpans(), s, "")
		}
	}
	return provider.Shutdown(ctx)
}

// model plays a model that misnames an argument, and corrects itself when it is told.
func model(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	arguments := `{"town":"Oslo"}`
	if len(req.Messages) > 1 {
		arguments = `{"city":"Oslo"}`
	}
	c := middleware.ToolCall{ID: fmt.Sprint("call_", len(req.Messages)), Name: "get_weather", Arguments: arguments}
	return &middleware.Response{Message: middleware.Assistant("", c), FinishReason: middleware.FinishToolCalls}, nil
}

// show prints a span, and its children below it. Ids and times differ from run to run and
// are left out.
func show(out io.Writer, spans tracetest.SpanStubs, span tracetest.SpanStub, indent string) {
	fmt.Fprintf(out, "%s%s %s\n", indent, span.Name, strings.ToLower(span.SpanKind.String()))
	for _, a := range span.Attributes {
		fmt.Fprintf(out, "%s  %s = %s\n", indent, a.Key, a.Value.Emit())
	}
	for _, e := range span.Events {
		words := []string{e.Name}
		for _, a := range e.Attributes {
			words = append(words, fmt.Sprintf("%s=%s", a.Key, a.Value.Emit()))
		}
		fmt.Fprintf(out, "%s  • %s\n", indent, strings.Join(words, " "))
	}
	for _, child := range spans {
		if child.Parent.SpanID() == span.SpanContext.SpanID() {
			show(out, spans, child, indent+"  ")
		}
	}
}
