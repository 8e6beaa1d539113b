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

// recorder is what the spans, metrics and logs of one Options share. It is
// immutable.
type recorder struct {
	tracer  trace.Tracer
	meters  *meters
	logger  *slog.Logger
	fixed   []attribute.KeyValue // of spans about a model
	further []attribute.KeyValue // Options.Attributes
	content content
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
	fixed := append([]attribute.KeyValue{attribute.String(providerName, o.Provider)}, o.Attributes...)
	r := &recorder{
		meters:  newMeters(o.MeterProvider, fixed, fixed[1:]),
		logger:  o.Logger,
		fixed:   fixed[:1:1],
		further: fixed[1:],
		content: content{on: o.Content, redact: o.Redact},
	}
	guard("TracerProvider", func() { r.tracer = o.TracerProvider.Tracer(scope) })
	if r.tracer == nil {
		r.tracer = noop.Tracer{}
	}
	return r
}

// silent reports whether there are no spans, because the TracerProvider is that
// of the package noop.
func (r *recorder) silent() bool {
	_, ok := r.tracer.(noop.Tracer)
	return ok
}

// running is a span between its start and its end. Its methods never panic.
type running struct {
	*recorder
	ctx       context.Context // for next
	span      trace.Span
	recording bool
	begun     time.Time
}

// The kinds of spans, made once.
var (
	internalSpan = trace.WithSpanKind(trace.SpanKindInternal)
	clientSpan   = trace.WithSpanKind(trace.SpanKindClient)
)

type conversationKey struct{}

// WithConversation returns a context under which every span of this package has the
// attribute gen_ai.conversation.id, such as the id of a chat session.
func WithConversation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, conversationKey{}, bounded(id, maxLabel))
}

// begin starts a span under ctx. If the tracer fails, ctx stays as it is.
func (r *recorder) begin(ctx context.Context, name string, kind trace.SpanStartOption, kvs ...attribute.KeyValue) running {
	c := running{recorder: r, ctx: ctx, span: noop.Span{}, begun: time.Now()}
	if r.silent() {
		return c
	}
	guard("span start", func() {
		if id, _ := ctx.Value(conversationKey{}).(string); id != "" {
			kvs = append(kvs, attribute.String(conversationID, id))
		}
		child, span := r.tracer.Start(ctx, name, kind, trace.WithAttributes(kvs...), trace.WithAttributes(r.further...))
		if child == nil || span == nil {
			return
		}
		c.recording = span.IsRecording()
		c.ctx, c.span = child, span
	})
	return c
}

// beginModel starts a span that is about the model of a request. The conventions
// want these attributes at the start, where samplers see them.
func (r *recorder) beginModel(ctx context.Context, name string, kind trace.SpanStartOption, req *middleware.Request, kvs ...attribute.KeyValue) running {
	if r.silent() {
		return r.begin(ctx, name, kind)
	}
	all := append(make([]attribute.KeyValue, 0, 3), kvs...)
	all = append(all, r.fixed...)
	if m := bounded(model(req), maxLabel); m != "" {
		name += " " + m
		all = append(all, attribute.String(requestModel, m))
	}
	return r.begin(ctx, name, kind, all...)
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

// model returns the requested model, "" for a nil request: next decides whether
// that is an error.
func model(req *middleware.Request) string {
	if req == nil {
		return ""
	}
	return req.Model
}
