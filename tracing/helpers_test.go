package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
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

// listener is an OpenTelemetry SDK in memory.
type listener struct {
	t      testing.TB
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
	tp     *sdktrace.TracerProvider
	mp     *sdkmetric.MeterProvider
}

func listen(t testing.TB) *listener {
	l := &listener{t: t, spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	l.tp = sdktrace.NewTracerProvider(sdktrace.WithSyncer(l.spans))
	l.mp = sdkmetric.NewMeterProvider(sdkmetric.WithReader(l.reader))
	return l
}

func (l *listener) options() tracing.Options {
	return tracing.Options{TracerProvider: l.tp, MeterProvider: l.mp, Provider: "test"}
}

// named returns the spans whose name begins with name, in the order they ended.
func (l *listener) named(name string) []tracetest.SpanStub {
	var out []tracetest.SpanStub
	for _, s := range l.spans.GetSpans() {
		if strings.HasPrefix(s.Name, name) {
			out = append(out, s)
		}
	}
	return out
}

// one returns the only span whose name begins with name.
func (l *listener) one(name string) tracetest.SpanStub {
	l.t.Helper()
	s := l.named(name)
	require.Len(l.t, s, 1)
	return s[0]
}

// points returns the metric's values by attributes: the sum of a counter, the
// count of a histogram.
func (l *listener) points(name string) map[string]int64 {
	l.t.Helper()
	out := map[string]int64{}
	for _, m := range l.metrics() {
		if m.Name != name {
			continue
		}
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			for _, p := range data.DataPoints {
				out[render(p.Attributes)] = p.Value
			}
		case metricdata.Histogram[int64]:
			for _, p := range data.DataPoints {
				out[render(p.Attributes)] = int64(p.Count)
			}
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				out[render(p.Attributes)] = int64(p.Count)
			}
		}
	}
	return out
}

func (l *listener) metrics() []metricdata.Metrics {
	l.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(l.t, l.reader.Collect(context.Background(), &rm))
	var out []metricdata.Metrics
	for _, sm := range rm.ScopeMetrics {
		out = append(out, sm.Metrics...)
	}
	return out
}

func render(s attribute.Set) string {
	var kvs []string
	for _, kv := range s.ToSlice() {
		kvs = append(kvs, string(kv.Key)+"="+kv.Value.Emit())
	}
	return strings.Join(kvs, " ")
}

func attrs(kvs []attribute.KeyValue) map[string]any {
	out := map[string]any{}
	for _, kv := range kvs {
		out[string(kv.Key)] = kv.Value.AsInterface()
	}
	return out
}

// turn is one outcome of a scripted model.
type turn struct {
	resp *middleware.Response
	err  error
}

// script plays turns in order, and the last one for ever.
func script(turns ...turn) middleware.ModelCall {
	var mu sync.Mutex
	n := 0
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		t := turns[min(n, len(turns)-1)]
		n++
		return t.resp, t.err
	}
}

func answer(calls ...middleware.ToolCall) turn {
	r := &middleware.Response{
		Model:        "m-2026",
		FinishReason: middleware.FinishStop,
		Message:      middleware.Assistant("the answer"),
		Usage:        middleware.Usage{InputTokens: 100, Cached: 40, CacheWrite: 5, OutputTokens: 20, Reasoning: 7},
	}
	if len(calls) > 0 {
		r.Message, r.FinishReason = middleware.Assistant("", calls...), middleware.FinishToolCalls
	}
	return turn{resp: r}
}

func toolCall(name, arguments string) middleware.ToolCall {
	return middleware.ToolCall{ID: "call_" + name, Name: name, Arguments: arguments}
}

// reask is a small validator: arguments with "secret-bad" are invalid. It asks
// at most n times and passes on what it has then; errors are asked again too.
func reask(n int) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			var tally middleware.Tally
			for i := 1; ; i++ {
				resp, err := tally.Call(ctx, next, req)
				if err != nil {
					if i == n || ctx.Err() != nil {
						return tally.Finish(nil, err)
					}
					continue
				}
				verdicts, replies := verdictsOn(resp.Message)
				if replies == nil || i == n {
					tally.SetVerdicts(verdicts, nil)
					tally.Note("schema of refund does not compile")
					out, err := tally.Finish(resp, nil)
					if len(verdicts) > 0 { // the status is this layer's to say
						out.Report.Status = middleware.Valid
					}
					if replies != nil {
						out.Report.Status = middleware.Invalid
					}
					return out, err
				}
				tally.SetVerdicts(verdicts, replies)
				req = req.With(resp.Message).With(replies...)
			}
		}
	}
}

func verdictsOn(m middleware.Message) (verdicts []middleware.Verdict, replies []middleware.Message) {
	for _, call := range m.ToolCalls {
		v := middleware.Verdict{Call: call}
		if strings.Contains(call.Arguments, "secret-bad") {
			v.Issues = []middleware.Issue{
				{Code: "type", Pointer: "/amount", Message: "must be number, got secret-bad"},
				{Code: "required", Pointer: "", Message: "currency is missing"},
			}
			replies = append(replies, middleware.ToolReply(call, "Error: secret-bad is not a number"))
		} else {
			v.Changes = []middleware.Change{{By: "strip", Pointer: "/note", Before: `"secret-empty"`}}
		}
		verdicts = append(verdicts, v)
	}
	return verdicts, replies
}

func request() *middleware.Request {
	temperature := 0.5
	return &middleware.Request{
		Model:       "m-1",
		Messages:    []middleware.Message{middleware.System("be secret-brief"), middleware.User("pay secret-iban")},
		Tools:       []middleware.Tool{{Name: "refund"}},
		Temperature: &temperature,
		MaxTokens:   1000,
		Stop:        []string{"END"},
	}
}

// stack is New and NewAttempt around reask(3).
func stack(o tracing.Options, model middleware.ModelCall) middleware.ModelCall {
	return middleware.Chain(tracing.New(o), reask(3), tracing.NewAttempt(o))(model)
}

// logged returns the records that a JSON handler wrote.
func logged(t testing.TB, b *bytes.Buffer) []map[string]any {
	t.Helper()
	var out []map[string]any
	d := json.NewDecoder(b)
	for d.More() {
		var r map[string]any
		require.NoError(t, d.Decode(&r))
		delete(r, "time")
		delete(r, "duration")
		out = append(out, r)
	}
	return out
}

func logger(b *bytes.Buffer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level}))
}

var (
	bad  = toolCall("refund", `{"amount":"secret-bad"}`)
	good = toolCall("refund", `{"amount":5,"note":""}`)
)
