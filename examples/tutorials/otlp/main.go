// Command otlp is the program of docs/howto/tracing.md: one step of a model, whose spans
// and metrics go to a collector.
//
//	OTEL_TRACES_EXPORTER=otlp OTEL_METRICS_EXPORTER=otlp OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 go run .
//
// Without the variables nothing leaves the program.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend"
	"github.com/toolmend/toolmend/middleware"
)

func main() {
	ctx := context.Background()
	stop, err := export(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(run(ctx, os.Stdout), stop(ctx)); err != nil {
		log.Fatal(err)
	}
}

// region: export
// export sends spans and metrics to where the usual variables say: OTEL_TRACES_EXPORTER and
// OTEL_METRICS_EXPORTER (otlp, console or none), OTEL_EXPORTER_OTLP_ENDPOINT,
// OTEL_SERVICE_NAME. Without the first two, nothing is sent.
func export(ctx context.Context) (stop func(context.Context) error, err error) {
	spans, err := autoexport.NewSpanExporter(ctx, autoexport.WithFallbackSpanExporter(
		func(context.Context) (trace.SpanExporter, error) { return tracetest.NewNoopExporter(), nil }))
	if err != nil {
		return nil, err
	}
	metrics, err := autoexport.NewMetricReader(ctx, autoexport.WithFallbackMetricReader(
		func(context.Context) (metric.Reader, error) { return metric.NewManualReader(), nil }))
	if err != nil {
		return nil, err
	}
	tracers := trace.NewTracerProvider(trace.WithBatcher(spans))
	meters := metric.NewMeterProvider(metric.WithReader(metrics))
	otel.SetTracerProvider(tracers)
	otel.SetMeterProvider(meters)
	return func(ctx context.Context) error { return errors.Join(tracers.Shutdown(ctx), meters.Shutdown(ctx)) }, nil
}

// endregion

func run(ctx context.Context, out io.Writer) error {
	resp, err := toolmend.Stack(toolmend.Options{})(model)(ctx, &middleware.Request{
		Model:    "scripted",
		Messages: []middleware.Message{middleware.User("How is the weather in Oslo?")},
		Tools:    []middleware.Tool{{Name: "weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)}},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(out, resp.Message.ToolCalls[0].Arguments, "after", len(resp.Report.Attempts), "attempts")
	return nil
}

// model plays one that misnames a property, and corrects itself.
func model(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
	arguments := `{"town":"Oslo"}`
	if len(req.Messages) > 1 {
		arguments = `{"city":"Oslo"}`
	}
	call := middleware.ToolCall{ID: fmt.Sprint("call_", len(req.Messages)), Name: "weather", Arguments: arguments}
	return &middleware.Response{
		Message: middleware.Assistant("", call), FinishReason: middleware.FinishToolCalls, Model: req.Model,
		Usage: middleware.Usage{InputTokens: 50, OutputTokens: 10},
	}, nil
}
