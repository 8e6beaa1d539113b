package gateway

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/transport"
	"github.com/toolmend/toolmend/wire"
)

// metrics counts exchanges. Its labels have few values, and a client cannot add one, except for
// the clients with invalid steps, of which maxClients are told apart. Package tracing counts
// steps, attempts and tokens.
type metrics struct {
	requests metric.Int64Counter     // by upstream, mode, format, HTTP status, status of the calls, error and client key
	duration metric.Float64Histogram // seconds, until the last byte
	overhead metric.Float64Histogram // seconds that were not spent on model calls
	repairs  metric.Int64Counter     // by rule
	invalid  metric.Int64Counter     // calls, by the code of their first issue
	panics   metric.Int64Counter
	dropped  metric.Int64Counter // copies, records and log lines
	outcomes metric.Int64Counter // of the mode Observe, by enforcedOutcome
	healed   metric.Int64Counter // requests, by the rule of package heal
	texts    metric.Int64Counter // answers with calls in their text: rescued or unread
	unlisted metric.Int64Counter // calls of tools that requests announce and do not list
	faulty   metric.Int64Counter // steps that ended invalid, by client
	longest  metric.Int64Gauge   // the most of them in a row, by client
	calls    metric.Int64Counter // model calls of clients with a name
	tokens   metric.Int64Counter // of those calls
	hook     metric.Int64Counter // failures of the Hook, by reason
	refused  metric.Int64Counter // requests that no upstream got, by the code of the refusal and the client key

	memory *transport.Memory // of the gateway

	mu   sync.RWMutex
	sets map[labels]*labelSet

	rowsMu sync.Mutex
	rows   map[clientLabels]*invalidRow
	inRow  atomic.Int32 // clients whose last step ended invalid
}

// clientLabels are the label and the key of a client with invalid steps.
type clientLabels struct{ client, key string }

// invalidRow counts the consecutive invalid steps of a client.
type invalidRow struct{ now, longest int64 }

// maxClients bounds the clients whose invalid steps are counted apart, because a client chooses
// its label. All further ones are one client.
const maxClients = 64

// labels are the labels of an exchange.
type labels struct {
	upstream, mode, format, status, err, key string
	code                                     int
}

// labelSet holds labels as the instruments take them. Making it takes longer than
// recording a value with it, so it is kept.
type labelSet struct {
	request []metric.AddOption    // all of them
	where   []metric.RecordOption // upstream, mode and format
}

// newMetrics returns the instruments of a provider; nil means none. The counts of requests are read from it.
func newMetrics(p metric.MeterProvider, requests *wire.Requests) (*metrics, error) {
	if p == nil {
		p = noop.NewMeterProvider()
	}
	meter := p.Meter("github.com/toolmend/toolmend/gateway")
	m := metrics{sets: map[labels]*labelSet{}, rows: map[clientLabels]*invalidRow{}, memory: &transport.Memory{}}
	var errs [21]error
	m.requests, errs[0] = meter.Int64Counter("toolmend.gateway.requests", metric.WithDescription("Requests on the path of a model call"))
	m.duration, errs[1] = meter.Float64Histogram("toolmend.gateway.duration", metric.WithUnit("s"),
		metric.WithDescription("Time until the last byte of the response"), metric.WithExplicitBucketBoundaries(.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600))
	m.overhead, errs[2] = meter.Float64Histogram("toolmend.gateway.overhead", metric.WithUnit("s"),
		metric.WithDescription("Time that was not spent on model calls"), metric.WithExplicitBucketBoundaries(.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .5, 1, 5))
	m.repairs, errs[3] = meter.Int64Counter("toolmend.gateway.repairs", metric.WithDescription("Repairs of calls that clients got, by rule"))
	m.invalid, errs[4] = meter.Int64Counter("toolmend.gateway.invalid_calls", metric.WithDescription("Invalid calls of upstreams, by the code of the first issue"))
	m.panics, errs[5] = meter.Int64Counter("toolmend.gateway.panics", metric.WithDescription("Panics; the log has their stacks"))
	m.dropped, errs[6] = meter.Int64Counter("toolmend.gateway.dropped", metric.WithDescription("Records, observed copies and lines of the log that were dropped because there was no room for them"))
	m.outcomes, errs[7] = meter.Int64Counter("toolmend.gateway.observed", metric.WithDescription("Exchanges that were observed, by what the mode enforce would have done"))
	m.texts, errs[8] = meter.Int64Counter("toolmend.gateway.calls_in_text", metric.WithDescription("Steps with calls that a model wrote as text: rescued, or in markup that was not read"))
	m.healed, errs[9] = meter.Int64Counter("toolmend.gateway.healed", metric.WithDescription("Requests that an upstream refused, or had refused before, and that were sent with a change, by rule"))
	m.unlisted, errs[10] = meter.Int64Counter("toolmend.gateway.announced_calls", metric.WithDescription("Calls of tools that requests announce and do not list; they are not validated"))
	m.faulty, errs[11] = meter.Int64Counter("toolmend.gateway.invalid_steps", metric.WithDescription("Steps that ended invalid, by client"))
	m.longest, errs[12] = meter.Int64Gauge("toolmend.gateway.longest_invalid_row", metric.WithDescription("The most steps of a client in a row that ended invalid"))
	m.refused, errs[13] = meter.Int64Counter("toolmend.gateway.refused", metric.WithDescription("Requests that were refused before they had an upstream, by code and client key"))
	_, errs[14] = meter.Int64ObservableGauge("toolmend.gateway.memory", metric.WithUnit("By"), metric.WithDescription("Memory of the messages that are read at this time, as max_memory counts it"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(m.memory.Used()); return nil }))
	_, errs[15] = meter.Int64ObservableCounter("toolmend.gateway.memory_refused", metric.WithDescription("Requests and answers for which max_memory left no room"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error { o.Observe(m.memory.Refused()); return nil }))
	_, errs[16] = meter.Int64ObservableCounter("toolmend.gateway.request_lists", metric.WithDescription("Lists of tools and of messages in requests, by whether they began as an earlier one and were read from there on"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			hits, misses, _ := requests.Counts()
			o.Observe(hits, metric.WithAttributes(attribute.Bool("known", true)))
			o.Observe(misses, metric.WithAttributes(attribute.Bool("known", false)))
			return nil
		}))
	_, errs[17] = meter.Int64ObservableGauge("toolmend.gateway.request_sums", metric.WithDescription("Sums of the texts of lists that are kept; their number is bounded"),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			_, _, sums := requests.Counts()
			o.Observe(int64(sums))
			return nil
		}))
	m.calls, errs[18] = meter.Int64Counter("toolmend.gateway.client_model_calls", metric.WithDescription("Model calls for clients with a name, by client"))
	m.tokens, errs[19] = meter.Int64Counter("toolmend.gateway.client_tokens", metric.WithUnit("{token}"), metric.WithDescription("Tokens of the model calls for clients with a name, by client"))
	m.hook, errs[20] = meter.Int64Counter("toolmend.gateway.hook_failures", metric.WithDescription("Calls about which the hook did not decide, by reason: timeout or error"))
	for _, code := range refusals {
		m.refuse(code, "", 0)
	}
	m.countHook(hookTimeout, 0)
	m.countHook(hookError, 0)
	return &m, errors.Join(errs[:]...)
}

// where returns the labels that all counters of an exchange have, and more.
func (x *exchange) where(more ...attribute.KeyValue) metric.MeasurementOption {
	all := append(make([]attribute.KeyValue, 0, 7), attribute.String("upstream", x.upstream), attribute.String("mode", string(x.mode)), attribute.String("format", x.dialect))
	return metric.WithAttributeSet(attribute.NewSet(append(all, more...)...))
}

// setOf returns the labels of x.
func (m *metrics) setOf(x *exchange) *labelSet {
	key := labels{x.upstream, string(x.mode), x.dialect, x.status, x.errorWord(), x.key, x.code}
	m.mu.RLock()
	s := m.sets[key]
	m.mu.RUnlock()
	if s != nil {
		return s
	}
	s = &labelSet{
		[]metric.AddOption{x.where(attribute.Int("http_status", x.code), attribute.String("status", x.status), attribute.String("error", key.err), attribute.String("client_key", x.key))},
		[]metric.RecordOption{x.where()},
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.sets) < maxLabelSets {
		m.sets[key] = s
	}
	return s
}

// maxLabelSets bounds the sets that are kept: an upstream chooses its statuses.
const maxLabelSets = 256

// begin makes the counters of a pipeline at 0. Otherwise a counter would begin with its
// first event, and increase() over it would miss that one.
func (m *metrics) begin(upstream string, s Settings) {
	ctx := context.Background()
	for _, what := range []string{"record", "copy", "log"} {
		m.drop(what, 0)
	}
	repairs, _ := rules(s.Repairs)
	if repairs == nil {
		repairs = mend.Default()
	}
	for _, c := range codecs {
		x := &exchange{upstream: upstream, mode: s.Mode, dialect: c.Dialect(), code: http.StatusOK}
		m.requests.Add(ctx, 0, m.setOf(x).request...)
		m.panics.Add(ctx, 0, x.where())
		m.unlisted.Add(ctx, 0, x.where())
		for _, r := range repairs {
			m.repairs.Add(ctx, 0, x.where(attribute.String("rule", "mend."+r.String())))
		}
		if s.Mode == Observe {
			for _, outcome := range []enforcedOutcome{outcomeReasked, outcomeRefused, outcomeDropped, outcomeRescued, outcomeRepaired, outcomePassed} {
				m.outcomes.Add(ctx, 0, x.where(attribute.String("would", string(outcome)), attribute.Bool("unread", false)))
			}
		}
	}
}

func (m *metrics) observed(x *exchange) {
	ctx := context.Background()
	set := m.setOf(x)
	m.requests.Add(ctx, 1, set.request...)
	m.duration.Record(ctx, x.duration.Seconds(), set.where...)
	m.overhead.Record(ctx, x.overhead().Seconds(), set.where...)
	for rule, n := range x.repairs() {
		m.repairs.Add(ctx, int64(n), x.where(attribute.String("rule", rule)))
	}
	for code, n := range x.issues() {
		m.invalid.Add(ctx, int64(n), x.where(attribute.String("code", code)))
	}
	for _, rule := range x.report.Healed() {
		m.healed.Add(ctx, 1, x.where(attribute.String("rule", rule)))
	}
	if n := x.announced(); n > 0 {
		m.unlisted.Add(ctx, int64(n), x.where())
	}
	if x.report.Rescued() > 0 {
		m.texts.Add(ctx, 1, x.where(attribute.String("outcome", "rescued")))
	}
	if rescue.Unread(x.report) {
		m.texts.Add(ctx, 1, x.where(attribute.String("outcome", "unread")))
	}
	if x.enforced != "" {
		m.outcomes.Add(ctx, 1, x.where(attribute.String("would", string(x.enforced)), attribute.Bool("unread", x.unread)))
	}
	if x.key != "" {
		m.countClient(ctx, x)
	}
	m.countInvalid(ctx, x)
	if _, broken := errors.AsType[*transport.Panic](x.err); broken {
		m.panics.Add(ctx, 1, x.where())
	}
}

// countClient counts the model calls and tokens of a client with a name.
func (m *metrics) countClient(ctx context.Context, x *exchange) {
	upstream, key, usage := attribute.String("upstream", x.upstream), attribute.String("client_key", x.key), x.report.Usage()
	m.calls.Add(ctx, int64(len(x.report.Attempts)), metric.WithAttributes(upstream, key))
	m.tokens.Add(ctx, max(usage.InputTokens, 0), metric.WithAttributes(upstream, key, attribute.String("type", "input")))
	m.tokens.Add(ctx, max(usage.OutputTokens, 0), metric.WithAttributes(upstream, key, attribute.String("type", "output")))
}

// countInvalid counts a step that ended invalid. A valid step ends the row of its client; one
// without a call does not.
func (m *metrics) countInvalid(ctx context.Context, x *exchange) {
	isInvalid := x.status == string(middleware.Invalid) || x.report.Status == middleware.Invalid
	if !isInvalid && (x.status != string(middleware.Valid) || m.inRow.Load() == 0) {
		return
	}
	m.rowsMu.Lock()
	defer m.rowsMu.Unlock()
	name := clientLabels{x.client, x.key}
	row := m.rows[name]
	if row == nil && len(m.rows) >= maxClients {
		name = clientLabels{client: "other"}
		row = m.rows[name]
	}
	if !isInvalid {
		if row != nil && row.now > 0 {
			row.now = 0
			m.inRow.Add(-1)
		}
		return
	}
	if row == nil {
		row = &invalidRow{}
		m.rows[name] = row
	}
	if row.now++; row.now == 1 {
		m.inRow.Add(1)
	}
	row.longest = max(row.longest, row.now)
	client, key := attribute.String("client", name.client), attribute.String("client_key", name.key)
	m.faulty.Add(ctx, 1, x.where(client, key))
	m.longest.Record(ctx, row.longest, metric.WithAttributes(client, key))
}

// refuse counts n requests of a client that were refused before they had an upstream.
func (m *metrics) refuse(code, client string, n int64) {
	m.refused.Add(context.Background(), n, metric.WithAttributes(attribute.String("code", code), attribute.String("client_key", client)))
}

// countHook counts n failures of the Hook.
func (m *metrics) countHook(reason string, n int64) {
	m.hook.Add(context.Background(), n, metric.WithAttributes(attribute.String("reason", reason)))
}

// drop counts n things that were dropped.
func (m *metrics) drop(what string, n int) {
	m.dropped.Add(context.Background(), int64(n), metric.WithAttributes(attribute.String("what", what)))
}
