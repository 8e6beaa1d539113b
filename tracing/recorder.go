package tracing

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/toolmend/toolmend/middleware"
)

// recorder is Options put to work. It is immutable but for its caches.
type recorder struct {
	tracer   trace.Tracer
	meters   *meters
	logger   *slog.Logger
	provider string
	content  content
	starts   cache[start] // by request model
}

// start is what the spans of one request model begin with.
type start struct {
	name string
	opts []trace.SpanStartOption
}

// newRecorder fills in the defaults. The global providers delegate to what is
// set later, so it does not matter whether New or the SDK comes first.
func newRecorder(o Options) *recorder {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.Provider == "" {
		o.Provider = other
	}
	r := &recorder{
		meters:   newMeters(o.MeterProvider, o.Provider),
		logger:   o.Logger,
		provider: o.Provider,
		content:  content{on: o.Content, redact: o.Redact},
	}
	guard("TracerProvider", func() { r.tracer = o.TracerProvider.Tracer(scope) })
	if r.tracer == nil {
		r.tracer = noop.Tracer{}
	}
	return r
}

// running is a span between its start and its end. Its methods never panic.
type running struct {
	*recorder
	ctx       context.Context // for next
	span      trace.Span
	recording bool
	begun     time.Time
}

// begin starts a span under ctx. Where it cannot, ctx stays as it is.
func (r *recorder) begin(ctx context.Context, req *middleware.Request, build func(key) start) running {
	c := running{recorder: r, ctx: ctx, span: noop.Span{}, begun: time.Now()}
	guard("span start", func() {
		s := r.starts.get(labels(model(req), "", ""), build)
		child, span := r.tracer.Start(ctx, s.name, s.opts...)
		if child == nil || span == nil {
			return
		}
		c.recording = span.IsRecording()
		c.ctx, c.span = child, span
	})
	return c
}

// finish sets the status and ends the span, whatever happened before.
func (c *running) finish(o outcome) {
	if c.recording && o.err != nil {
		guard("span", func() {
			c.span.SetAttributes(attribute.String(errorTypeKey, o.kind))
			if o.code != "" {
				c.span.SetAttributes(attribute.String(errorCodeKey, o.code))
			}
			if o.failed() {
				c.span.SetStatus(codes.Error, o.text(c.content))
			}
		})
	}
	guard("span end", func() { c.span.End() })
}

// model returns the requested model. Whether a nil request is an error is for
// next to say.
func model(req *middleware.Request) string {
	if req == nil {
		return ""
	}
	return req.Model
}

// named returns what a span of the given name begins with, after conventions
// that ask for these attributes at the start, where samplers see them.
func (r *recorder) named(name string, kind trace.SpanKind, k key, kvs ...attribute.KeyValue) start {
	kvs = append(kvs, attribute.String(providerName, r.provider))
	if k[0] != "" {
		name += " " + k[0]
	}
	kvs = appendSet(kvs, requestModel, k[0])
	return start{name, []trace.SpanStartOption{trace.WithSpanKind(kind), trace.WithAttributes(kvs...)}}
}
