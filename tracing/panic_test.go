package tracing_test

import (
	"context"
	"log/slog"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

type badProcessor struct{ start, end bool }

func (p badProcessor) OnStart(context.Context, sdktrace.ReadWriteSpan) {
	if p.start {
		panic("OnStart")
	}
}

func (p badProcessor) OnEnd(sdktrace.ReadOnlySpan) {
	if p.end {
		panic("OnEnd")
	}
}
func (badProcessor) Shutdown(context.Context) error   { return nil }
func (badProcessor) ForceFlush(context.Context) error { return nil }

type badTracerProvider struct{ tracenoop.TracerProvider }

func (badTracerProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { panic("Tracer") }

type badTracer struct{ tracenoop.Tracer }

func (badTracer) Start(context.Context, string, ...trace.SpanStartOption) (context.Context, trace.Span) {
	return nil, nil
}

type emptyTracerProvider struct{ tracenoop.TracerProvider }

func (emptyTracerProvider) Tracer(string, ...trace.TracerOption) trace.Tracer { return badTracer{} }

type badMeterProvider struct{ metricnoop.MeterProvider }

func (badMeterProvider) Meter(string, ...metric.MeterOption) metric.Meter { panic("Meter") }

type badHistogram struct{ metricnoop.Float64Histogram }

func (badHistogram) Enabled(context.Context) bool { panic("Enabled") }

type badMeter struct{ metricnoop.Meter }

func (badMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return badHistogram{}, nil
}

type badInstruments struct{ metricnoop.MeterProvider }

func (badInstruments) Meter(string, ...metric.MeterOption) metric.Meter { return badMeter{} }

type badHandler struct{ slog.Handler }

func (badHandler) Enabled(context.Context, slog.Level) bool  { return true }
func (badHandler) Handle(context.Context, slog.Record) error { panic("Handle") }

type badFilter struct{ slog.Handler }

func (badFilter) Enabled(context.Context, slog.Level) bool { panic("Enabled") }

// badError panics in every method.
type badError struct{}

func (badError) Error() string   { panic("Error") }
func (badError) Is(error) bool   { panic("Is") }
func (badError) Unwrap() error   { panic("Unwrap") }
func (badError) As(any) bool     { panic("As") }
func (badError) Timeout() bool   { panic("Timeout") }
func (badError) Temporary() bool { panic("Temporary") }

func TestAPanickingListenerChangesNothing(t *testing.T) {
	t.Parallel()
	provider := func(p sdktrace.SpanProcessor) trace.TracerProvider {
		return sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(p))
	}
	tests := map[string]tracing.Options{
		"OnStart":             {TracerProvider: provider(badProcessor{start: true})},
		"OnEnd":               {TracerProvider: provider(badProcessor{end: true})},
		"TracerProvider":      {TracerProvider: badTracerProvider{}},
		"Tracer of nothing":   {TracerProvider: emptyTracerProvider{}},
		"nil TracerProvider":  {TracerProvider: (*sdktrace.TracerProvider)(nil)},
		"MeterProvider":       {MeterProvider: badMeterProvider{}},
		"nil MeterProvider":   {MeterProvider: (*sdkmetric.MeterProvider)(nil)},
		"instruments":         {MeterProvider: badInstruments{}},
		"slog handler":        {Logger: slog.New(badHandler{})},
		"slog handler filter": {Logger: slog.New(badFilter{})},
		"Redact": {
			Content: true, Redact: func(string) string { panic("Redact") },
			TracerProvider: provider(badProcessor{}), Logger: slog.New(slog.DiscardHandler),
		},
	}
	for name, o := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, want := range []turn{answer(good), {err: badError{}}, {err: context.Canceled}} {
				for _, mw := range []middleware.Middleware{tracing.New(o), tracing.NewAttempt(o)} {
					resp, err := mw(script(want))(t.Context(), request())
					require.Same(t, want.resp, resp)
					require.True(t, err == want.err)
				}
			}
			resp, err := stack(o, script(answer(bad), answer(good)))(t.Context(), request())
			require.NoError(t, err)
			require.Len(t, resp.Report.Attempts, 2)
		})
	}
}

func TestAPanickingRedactHidesTheValue(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content, o.Redact = true, func(string) string { panic("secret") }
	_, err := stack(o, script(answer(bad), answer(good)))(t.Context(), request())
	require.NoError(t, err)
	for _, s := range l.spans.GetSpans() {
		require.NotContains(t, attrs(s.Attributes), "secret")
	}
	require.Contains(t, attrs(l.named("chat")[0].Attributes)["gen_ai.input.messages"], "[redaction failed]")
	require.Equal(t, "[redaction failed]", attrs(l.one("model_step").Events[0].Attributes)["toolmend.issue.message"])
}

func TestAHandlerThatStumblesOnceGetsTheStep(t *testing.T) {
	t.Parallel()
	h := &stumbling{}
	_, err := stack(tracing.Options{Logger: slog.New(h)}, script(answer(bad), answer(good)))(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, []string{"model call", "invalid tool call", "model asked again", "model step"}, h.seen[1:])
}

// stumbling panics at every record but the last.
type stumbling struct {
	badHandler
	seen []string
}

func (h *stumbling) Handle(_ context.Context, r slog.Record) error {
	h.seen = append(h.seen, r.Message)
	if r.Message != "model step" {
		panic("Handle")
	}
	return nil
}

func TestAPanicOfNextGoesOnAfterTheSpansEnded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	call := stack(l.options(), func(context.Context, *middleware.Request) (*middleware.Response, error) { panic("boom") })
	require.PanicsWithValue(t, "boom", func() { _, _ = call(t.Context(), request()) })
	requirePanicked(t, l)
	require.Equal(t, map[string]int64{
		"error.type=panic gen_ai.operation.name=chat gen_ai.provider.name=test gen_ai.request.model=m-1": 1,
	}, l.points("gen_ai.client.inference.duration"))
}

func TestAPanicOfNextGoesOnPastPanickingListeners(t *testing.T) {
	t.Parallel()
	o := tracing.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(badProcessor{end: true})),
		MeterProvider:  badInstruments{},
		Logger:         slog.New(badHandler{}),
	}
	call := stack(o, func(context.Context, *middleware.Request) (*middleware.Response, error) { panic("boom") })
	require.PanicsWithValue(t, "boom", func() { _, _ = call(t.Context(), request()) })
}

func TestAGoroutineThatEndsInNextEndsTheSpans(t *testing.T) {
	t.Parallel()
	l := listen(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = stack(l.options(), func(context.Context, *middleware.Request) (*middleware.Response, error) {
			runtime.Goexit()
			return nil, nil
		})(context.Background(), request())
	}()
	<-done
	requirePanicked(t, l)
}

func requirePanicked(t *testing.T, l *listener) {
	t.Helper()
	for _, name := range []string{"model_step", "chat"} {
		require.Equal(t, codes.Error, l.one(name).Status.Code)
		require.Equal(t, "panic", attrs(l.one(name).Attributes)["error.type"])
	}
}
