package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/gateway"
)

// TestNoSpans holds that a gateway without a TracerProvider makes no spans, also
// if the program has a global one. It is not parallel, because it sets that.
func TestNoSpans(t *testing.T) {
	before := otel.GetTracerProvider()
	defer otel.SetTracerProvider(before)
	spans := tracetest.NewSpanRecorder()
	otel.SetTracerProvider(trace.NewTracerProvider(trace.WithSpanProcessor(spans)))
	run(t, gateway.Config{}, gateway.Options{MeterProvider: metric.NewMeterProvider()}, secrets(), chatAnswer(mending))
	require.Empty(t, spans.Started())
}
