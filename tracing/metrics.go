package tracing

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/toolmend/toolmend/middleware"
)

// meters holds the instruments.
type meters struct {
	fixed  []attribute.KeyValue // of every metric
	ofCall labels[*callSets]
	ofStep labels[[]metric.AddOption]

	duration  metric.Float64Histogram
	tokens    metric.Int64Histogram
	steps     metric.Int64Counter
	attempts  metric.Int64Counter
	invalid   metric.Int64Counter
	exhausted metric.Int64Counter
}

// newMeters makes the instruments. If the provider panics they do nothing, so
// that a broken provider does not keep a stack from being built.
func newMeters(mp metric.MeterProvider, fixed []attribute.KeyValue) *meters {
	m := &meters{fixed: fixed}
	if !guard("MeterProvider", func() { m.open(mp.Meter(scope)) }) {
		m.open(noop.Meter{})
	}
	return m
}

// open makes the instruments. An instrument that meter fails to make does
// nothing.
func (m *meters) open(meter metric.Meter) {
	counter := func(name, unit, text string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(text))
		if err != nil || c == nil {
			return noop.Int64Counter{}
		}
		return c
	}
	var err error
	m.duration, err = meter.Float64Histogram(operationDuration, metric.WithUnit("s"),
		metric.WithDescription("GenAI operation duration."),
		metric.WithExplicitBucketBoundaries(durationBuckets...))
	if err != nil || m.duration == nil {
		m.duration = noop.Float64Histogram{}
	}
	m.tokens, err = meter.Int64Histogram(tokenUsage, metric.WithUnit("{token}"),
		metric.WithDescription("Number of input and output tokens used."),
		metric.WithExplicitBucketBoundaries(tokenBuckets...))
	if err != nil || m.tokens == nil {
		m.tokens = noop.Int64Histogram{}
	}
	m.steps = counter(counterSteps, "{step}", "Model steps.")
	m.attempts = counter(counterAttempts, "{attempt}", "Model calls inside the steps.")
	m.invalid = counter(counterInvalid, "{call}", "Tool calls found invalid, in all attempts.")
	m.exhausted = counter(counterExhausted, "{step}", "Model steps that ended with invalid tool calls.")
}

// enabled reports whether any instrument is recorded.
func (m *meters) enabled(ctx context.Context) bool {
	return m.duration.Enabled(ctx) || m.tokens.Enabled(ctx) ||
		m.steps.Enabled(ctx) || m.attempts.Enabled(ctx) || m.invalid.Enabled(ctx) || m.exhausted.Enabled(ctx)
}

// operation records one model call. A negative duration was not measured. The
// error is an attribute of the duration only: failed calls use tokens, too.
func (m *meters) operation(ctx context.Context, request, response, kind string, took time.Duration, u middleware.Usage) {
	if !m.enabled(ctx) {
		return
	}
	sets := m.ofCall.of(labelKey{request, response, kind}, m.callLabels)
	if took >= 0 {
		m.duration.Record(ctx, took.Seconds(), sets.duration...)
	}
	if u.InputTokens > 0 {
		m.tokens.Record(ctx, u.InputTokens, sets.input...)
	}
	if u.OutputTokens > 0 {
		m.tokens.Record(ctx, u.OutputTokens, sets.output...)
	}
}

// callSets are the attributes of a model call, as the instruments take them.
type callSets struct{ duration, input, output []metric.RecordOption }

// callLabels returns the attributes of a model call, by its two models.
func (m *meters) callLabels(k labelKey) *callSets {
	with := func(name, value string) []metric.RecordOption {
		kvs := append([]attribute.KeyValue{attribute.String(operationName, chat)}, m.fixed...)
		return []metric.RecordOption{set(appendSet(appendSet(appendSet(kvs, requestModel, k.first), responseModel, k.second), name, value))}
	}
	return &callSets{with(errorTypeKey, k.kind), with(tokenType, tokenInput), with(tokenType, tokenOutput)}
}

// stepLabels returns the attributes of a step, by its status and its model.
func (m *meters) stepLabels(k labelKey) []metric.AddOption {
	kvs := append([]attribute.KeyValue{attribute.String(statusKey, k.first)}, m.fixed...)
	return []metric.AddOption{set(appendSet(appendSet(kvs, requestModel, k.second), errorTypeKey, k.kind))}
}

// step counts one step. declared reports whether the request declares a tool:
// other names are the model's to invent, and each would be a time series. A call
// is counted once, under its first issue, so that the sum over the codes is the
// number of invalid calls.
func (m *meters) step(ctx context.Context, request string, s *summary, declared func(string) bool) {
	if !m.enabled(ctx) {
		return
	}
	of := m.ofStep.of(labelKey{s.status, request, s.outcome.kind}, m.stepLabels)
	m.steps.Add(ctx, 1, of...)
	m.attempts.Add(ctx, int64(len(s.report.Attempts)), of...)
	if s.report.Status == middleware.Invalid {
		m.exhausted.Add(ctx, 1, of...)
	}
	for _, a := range s.report.Attempts {
		for _, v := range a.Verdicts {
			if v.OK() {
				continue
			}
			name := other
			if declared(v.Call.Name) {
				name = bounded(v.Call.Name, maxLabel)
			}
			kvs := append([]attribute.KeyValue{attribute.String(toolName, name),
				attribute.String(issueCodeKey, bounded(v.Issues[0].Code, maxLabel))}, m.fixed...)
			m.invalid.Add(ctx, 1, set(appendSet(kvs, requestModel, request)))
		}
	}
}

// set makes the option that attributes are recorded with.
func set(kvs []attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(kvs...))
}

// appendSet appends a string that is not empty, cut to the length of a label.
func appendSet(kvs []attribute.KeyValue, name, value string) []attribute.KeyValue {
	if value == "" {
		return kvs
	}
	return append(kvs, attribute.String(name, bounded(value, maxLabel)))
}
