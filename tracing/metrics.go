package tracing

import (
	"context"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/toolmend/toolmend/middleware"
)

// meters holds the instruments.
type meters struct {
	fixed   []attribute.KeyValue // of every metric about a model
	further []attribute.KeyValue // of every other metric
	ofCall  labels[*callSets]
	ofStep  labels[[]metric.AddOption]

	duration  metric.Float64Histogram
	first     metric.Float64Histogram
	agents    metric.Float64Histogram
	tools     metric.Float64Histogram
	tokens    [2]metric.Int64Histogram // input and output of a model call
	usage     [5]metric.Int64Counter   // in the order of tokensOf
	steps     metric.Int64Counter
	attempts  metric.Int64Counter
	invalid   metric.Int64Counter
	exhausted metric.Int64Counter
}

// newMeters makes the instruments. If the provider panics they do nothing, so
// that a broken provider does not keep a stack from being built.
func newMeters(mp metric.MeterProvider, fixed, further []attribute.KeyValue) *meters {
	m := &meters{fixed: fixed, further: further}
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
		return made[metric.Int64Counter](c, err, noop.Int64Counter{})
	}
	duration := func(name, text string, buckets []float64) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(buckets...))
		return made[metric.Float64Histogram](h, err, noop.Float64Histogram{})
	}
	m.duration = duration(inferencePrefix+"duration", "Duration of a model call.", durationBuckets)
	m.first = duration(inferencePrefix+"time_to_first_chunk", "Time until the first text of a streamed answer.", durationBuckets)
	m.agents = duration(agentDuration, "Duration of the run of an agent.", agentBuckets)
	m.tools = duration(toolDuration, "Duration of a tool call.", durationBuckets)
	for i, name := range []string{"input_tokens", "output_tokens"} {
		h, err := meter.Int64Histogram(inferencePrefix+"operation."+name, metric.WithUnit("{token}"),
			metric.WithDescription("Tokens of a model call."), metric.WithExplicitBucketBoundaries(tokenBuckets...))
		m.tokens[i] = made[metric.Int64Histogram](h, err, noop.Int64Histogram{})
	}
	for i, name := range usageCounters {
		m.usage[i] = counter(name, "{token}", "Tokens used by model calls. Input tokens include cached ones, output tokens the reasoning.")
	}
	m.steps = counter(counterSteps, "{step}", "Model steps.")
	m.attempts = counter(counterAttempts, "{attempt}", "Model calls inside the steps.")
	m.invalid = counter(counterInvalid, "{call}", "Tool calls found invalid, in all attempts.")
	m.exhausted = counter(counterExhausted, "{step}", "Model steps that ended with invalid tool calls.")
}

// made returns an instrument, or none if there is an error or no instrument.
func made[I comparable](i I, err error, none I) I {
	if err != nil || i == *new(I) {
		return none
	}
	return i
}

// enabled reports whether any instrument is recorded.
func (m *meters) enabled(ctx context.Context) bool {
	return m.duration.Enabled(ctx) || m.first.Enabled(ctx) || m.tokens[0].Enabled(ctx) || m.tokens[1].Enabled(ctx) || m.usage[0].Enabled(ctx) || m.usage[1].Enabled(ctx) ||
		m.steps.Enabled(ctx) || m.attempts.Enabled(ctx) || m.invalid.Enabled(ctx) || m.exhausted.Enabled(ctx)
}

// operation records one model call. A negative duration was not measured, nor was a first of 0.
func (m *meters) operation(ctx context.Context, request, response, kind string, took, first time.Duration, u middleware.Usage) {
	if !m.enabled(ctx) {
		return
	}
	sets := m.ofCall.of(labelKey{request, response, kind}, m.callLabels)
	if took >= 0 {
		m.duration.Record(ctx, took.Seconds(), sets.ended...)
	}
	if first > 0 {
		m.first.Record(ctx, first.Seconds(), sets.plain...)
	}
	for i, n := range tokensOf(u) {
		if i < len(m.tokens) { // also for a call that failed: 0
			m.tokens[i].Record(ctx, n, sets.ended...)
		} else if n == 0 {
			continue
		}
		m.usage[i].Add(ctx, n, sets.usage...)
	}
}

// callSets are the attributes of a model call, as the instruments take them. The error is one of
// ended only.
type callSets struct {
	ended, plain []metric.RecordOption
	usage        []metric.AddOption
}

// callLabels returns the attributes of a model call, by its two models.
func (m *meters) callLabels(k labelKey) *callSets {
	with := func(name, value string) metric.MeasurementOption {
		kvs := append([]attribute.KeyValue{attribute.String(operationName, chat)}, m.fixed...)
		return set(appendSet(appendSet(appendSet(kvs, requestModel, k.first), responseModel, k.second), name, value))
	}
	return &callSets{[]metric.RecordOption{with(errorTypeKey, k.kind)}, []metric.RecordOption{with("", "")}, []metric.AddOption{with(tokenModality, unknown)}}
}

// record records the duration of a tool call or an agent's run.
func (m *meters) record(ctx context.Context, h metric.Float64Histogram, took time.Duration, kind string, kvs []attribute.KeyValue) {
	h.Record(ctx, took.Seconds(), set(appendSet(append(slices.Clip(kvs), m.further...), errorTypeKey, kind)))
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
