package tracing

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/toolmend/toolmend/middleware"
)

// meters holds the instruments, and the attribute sets that were used before:
// making one anew costs more than recording with it.
type meters struct {
	provider string

	duration  metric.Float64Histogram
	tokens    metric.Int64Histogram
	steps     metric.Int64Counter
	attempts  metric.Int64Counter
	invalid   metric.Int64Counter
	exhausted metric.Int64Counter

	operations cache[operation]          // by request model, response model, error.type
	stepSets   cache[[]metric.AddOption] // by request model, status, error.type
	callSets   cache[[]metric.AddOption] // by request model, tool, code
}

// operation is what one model call is recorded with.
type operation struct{ duration, input, output []metric.RecordOption }

// newMeters falls back to instruments that do nothing: a broken provider must
// not keep a stack from being built.
func newMeters(mp metric.MeterProvider, provider string) *meters {
	m := &meters{provider: provider}
	if !guard("MeterProvider", func() { m.open(mp.Meter(scope)) }) {
		m.open(noop.Meter{})
	}
	return m
}

// open makes the instruments. Beside an error there is a usable instrument.
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

// operation records one model call. took < 0: nobody measured.
func (m *meters) operation(ctx context.Context, request, response, kind string, took time.Duration, u middleware.Usage) {
	if !m.duration.Enabled(ctx) && !m.tokens.Enabled(ctx) {
		return
	}
	o := m.operations.get(labels(request, response, kind), m.newOperation)
	if took >= 0 {
		m.duration.Record(ctx, took.Seconds(), o.duration...)
	}
	if u.Input > 0 {
		m.tokens.Record(ctx, u.Input, o.input...)
	}
	if u.Output > 0 {
		m.tokens.Record(ctx, u.Output, o.output...)
	}
}

// newOperation builds the sets of one key. The error goes on the duration only:
// tokens that were used were used. The slice is clipped so that the three sets
// do not write into one array.
func (m *meters) newOperation(k key) operation {
	kvs := []attribute.KeyValue{attribute.String(operationName, chat), attribute.String(providerName, m.provider)}
	kvs = appendSet(kvs, requestModel, k[0])
	kvs = appendSet(kvs, responseModel, k[1])
	kvs = slices.Clip(kvs)
	return operation{
		duration: recordOption(appendSet(kvs, errorTypeKey, k[2])),
		input:    recordOption(append(kvs, attribute.String(tokenType, tokenInput))),
		output:   recordOption(append(kvs, attribute.String(tokenType, tokenOutput))),
	}
}

// step counts one step. declared tells the request's tools: the name of any
// other was invented by the model, and each invention would be a time series.
// A call is counted once, under its first issue, so that the sum over the codes
// is the number of invalid calls.
func (m *meters) step(ctx context.Context, request string, s *summary, declared func(string) bool) {
	if !m.steps.Enabled(ctx) && !m.attempts.Enabled(ctx) && !m.invalid.Enabled(ctx) && !m.exhausted.Enabled(ctx) {
		return
	}
	opts := m.stepSets.get(labels(request, s.status, s.outcome.kind), m.newStepSet)
	m.steps.Add(ctx, 1, opts...)
	m.attempts.Add(ctx, int64(len(s.report.Attempts)), opts...)
	if s.report.Status == middleware.Invalid {
		m.exhausted.Add(ctx, 1, opts...)
	}
	for _, a := range s.report.Attempts {
		for _, v := range a.Verdicts {
			if v.OK() {
				continue
			}
			name := other
			if declared(v.Call.Name) {
				name = v.Call.Name
			}
			m.invalid.Add(ctx, 1, m.callSets.get(labels(request, name, v.Issues[0].Code), m.newCallSet)...)
		}
	}
}

func (m *meters) newStepSet(k key) []metric.AddOption {
	kvs := []attribute.KeyValue{attribute.String(providerName, m.provider), attribute.String(statusKey, k[1])}
	return addOption(appendSet(appendSet(kvs, requestModel, k[0]), errorTypeKey, k[2]))
}

func (m *meters) newCallSet(k key) []metric.AddOption {
	kvs := []attribute.KeyValue{
		attribute.String(providerName, m.provider), attribute.String(toolName, k[1]), attribute.String(issueCodeKey, k[2]),
	}
	return addOption(appendSet(kvs, requestModel, k[0]))
}

// appendSet appends a string that is not empty.
func appendSet(kvs []attribute.KeyValue, name, value string) []attribute.KeyValue {
	if value == "" {
		return kvs
	}
	return append(kvs, attribute.String(name, value))
}

func recordOption(kvs []attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(kvs...))}
}

func addOption(kvs []attribute.KeyValue) []metric.AddOption {
	return []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(kvs...))}
}

// key is what a cached value was made from.
type key [3]string

func labels(a, b, c string) key {
	return key{bounded(a, maxLabel), bounded(b, maxLabel), bounded(c, maxLabel)}
}

// cache keeps the first maxSets values and makes the others each time. It is
// safe for concurrent use.
type cache[V any] struct {
	mu sync.RWMutex
	m  map[key]V
}

// get returns the value for k. Two callers may build the same one at once.
func (c *cache[V]) get(k key, build func(key) V) V {
	c.mu.RLock()
	v, ok := c.m[k]
	full := len(c.m) >= maxSets
	c.mu.RUnlock()
	if ok {
		return v
	}
	for i := range k {
		k[i] = strings.Clone(k[i]) // a slice of a request must not keep the whole
	}
	v = build(k)
	if full {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.m == nil {
		c.m = make(map[key]V)
	}
	if len(c.m) < maxSets {
		c.m[k] = v
	}
	return v
}
