package tracing_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

// BenchmarkStep measures New and NewAttempt around a model that writes its
// request as JSON, the least that an adapter does, and answers at once. x-bare
// is the ratio to that model alone, measured in the same run.
func BenchmarkStep(b *testing.B) {
	never := sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))
	recording := sdktrace.NewTracerProvider()
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))
	benchmarks := []struct {
		name string
		o    tracing.Options
	}{
		{"nobody listens", tracing.Options{}},
		{"never sampled", tracing.Options{TracerProvider: never}},
		{"recording", tracing.Options{TracerProvider: recording}},
		{"metrics", tracing.Options{MeterProvider: meters}},
		{"log discarded", tracing.Options{Logger: slog.New(slog.DiscardHandler)}},
	}
	resp := answer().resp
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		_, err := json.Marshal(req)
		return resp, err
	}
	b.Run("bare", func(b *testing.B) {
		ctx, req := b.Context(), request()
		b.ReportAllocs()
		for b.Loop() {
			_, _ = model(ctx, req)
		}
	})
	for _, bm := range benchmarks {
		b.Run(bm.name, func(b *testing.B) {
			call := middleware.Chain(tracing.New(bm.o), tracing.NewAttempt(bm.o))(model)
			ctx, req := b.Context(), request()
			b.ReportAllocs()
			for b.Loop() {
				_, _ = call(ctx, req)
			}
			traced := float64(b.Elapsed()) / float64(b.N)
			b.ReportMetric(traced/bare(ctx, model, req), "x-bare")
		})
	}
}

// bare returns the nanoseconds of one call of the model alone.
func bare(ctx context.Context, model middleware.ModelCall, req *middleware.Request) float64 {
	const n = 1 << 14
	start := time.Now()
	for range n {
		_, _ = model(ctx, req)
	}
	return float64(time.Since(start)) / n
}
