package tracing_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

// Options.Attributes are on every span and every metric.
func TestAttributes(t *testing.T) {
	t.Parallel()
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	own := attribute.String("upstream", "local")
	o := tracing.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)),
		Attributes: []attribute.KeyValue{own},
	}
	call := middleware.Chain(tracing.New(o), tracing.NewAttempt(o))(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("done"), Usage: middleware.Usage{InputTokens: 3, OutputTokens: 1}}, nil
	})
	_, err := call(t.Context(), &middleware.Request{Model: "m"})
	require.NoError(t, err)
	require.Len(t, spans.GetSpans(), 2)
	for _, s := range spans.GetSpans() {
		require.Contains(t, s.Attributes, own, s.Name)
	}
	var data metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(t.Context(), &data))
	seen := 0
	for _, m := range data.ScopeMetrics[0].Metrics {
		var sets []attribute.Set
		switch d := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range d.DataPoints {
				sets = append(sets, p.Attributes)
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				sets = append(sets, p.Attributes)
			}
		case metricdata.Histogram[int64]:
			for _, p := range d.DataPoints {
				sets = append(sets, p.Attributes)
			}
		}
		for _, s := range sets {
			v, _ := s.Value("upstream")
			require.Equal(t, "local", v.AsString(), m.Name)
			seen++
		}
	}
	require.GreaterOrEqual(t, seen, 4)
	require.ErrorContains(t, tracing.Options{Attributes: []attribute.KeyValue{attribute.String("a", "\xff")}}.Validate(), "Options.Attributes: must have a key and be UTF-8")
	require.Error(t, tracing.Options{Attributes: []attribute.KeyValue{{}}}.Validate())
}

// The ids of an answer and of a conversation, and whether an answer is streamed.
func TestIDsAndStreams(t *testing.T) {
	t.Parallel()
	l := listen(t)
	ask := func(ctx context.Context, sink middleware.Sink) {
		call := middleware.Chain(tracing.New(l.options()), tracing.NewAttempt(l.options()))(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			return &middleware.Response{ID: "resp_1", Message: middleware.Assistant("done")}, nil
		})
		_, err := call(ctx, &middleware.Request{Model: "m", Sink: sink})
		require.NoError(t, err)
	}
	ask(tracing.WithConversation(t.Context(), "chat-7"), func(middleware.Event) error { return nil })
	ask(t.Context(), nil)
	steps, attempts := l.named("model_step"), l.named("chat")
	require.Equal(t, "chat-7", attrs(steps[0].Attributes)["gen_ai.conversation.id"])
	require.NotContains(t, attrs(steps[1].Attributes), "gen_ai.conversation.id")
	streamed, whole := attrs(attempts[0].Attributes), attrs(attempts[1].Attributes)
	require.Equal(t, "chat-7", streamed["gen_ai.conversation.id"])
	require.Equal(t, true, streamed["gen_ai.request.stream"])
	require.Equal(t, "resp_1", streamed["gen_ai.response.id"])
	require.NotContains(t, whole, "gen_ai.request.stream")
	require.NotContains(t, whole, "gen_ai.conversation.id")
}
