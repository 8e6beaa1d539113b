package tracing

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/toolmend/toolmend/middleware"
)

// attempt is NewAttempt.
func (r *recorder) attempt(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		c := r.beginAttempt(ctx, req)
		return watch(c.ctx, next, c.timed(req), c.end)
	}
}

// timed returns req with a Sink that notes when the first text arrives. Without a Sink, or if
// nothing is recorded, it returns req itself.
func (c *attemptCall) timed(req *middleware.Request) *middleware.Request {
	if req == nil || req.Sink == nil || !c.recording && !c.meters.enabled(c.ctx) {
		return req
	}
	own, sink := *req, req.Sink
	own.Sink = func(e middleware.Event) error {
		if c.first == 0 {
			c.first = time.Since(c.begun)
		}
		return sink(e)
	}
	return &own
}

// watch calls next, and then end, also if next panics. The deferred end sees the outcome
// in the named results and never assigns to them: what next returned is what goes up.
func watch(ctx context.Context, next middleware.ModelCall, req *middleware.Request,
	end func(*middleware.Request, *middleware.Response, error, bool)) (resp *middleware.Response, err error) {
	returned := false
	defer func() { end(req, resp, err, returned) }()
	resp, err = next(ctx, req)
	returned = true
	return resp, err
}

// attemptCall is one model call under way.
type attemptCall struct {
	running
	number int64         // in its step, from 1; 0: in no step
	first  time.Duration // until the first text of a stream; 0: none
}

// beginAttempt starts the span and tells the step around it, if there is one,
// that its attempts are measured here.
func (r *recorder) beginAttempt(ctx context.Context, req *middleware.Request) attemptCall {
	c := attemptCall{running: r.beginModel(ctx, chat, clientSpan, req, attribute.String(operationName, chat))}
	guard("context", func() {
		if s, ok := ctx.Value(stepKey{}).(*stepState); ok {
			s.measured.Store(true)
			c.number = s.attempts.Add(1)
		}
	})
	if c.recording && req != nil {
		guard("span", func() { c.span.SetAttributes(c.requestAttributes(req)...) })
	}
	return c
}

// requestAttributes returns what was asked, as far as it was set: zero means
// the provider's default and is left out.
func (c *attemptCall) requestAttributes(req *middleware.Request) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, 0, 8)
	if c.number > 0 {
		kvs = append(kvs, attribute.Int64(attemptKey, c.number))
	}
	if req.MaxTokens > 0 {
		kvs = append(kvs, attribute.Int(requestTokens, req.MaxTokens))
	}
	if req.Temperature != nil {
		kvs = append(kvs, attribute.Float64(requestTemp, *req.Temperature))
	}
	if len(req.Stop) > 0 {
		stop := make([]string, 0, min(len(req.Stop), maxList))
		for _, s := range req.Stop[:cap(stop)] {
			stop = append(stop, bounded(s, maxLabel))
		}
		kvs = append(kvs, attribute.StringSlice(requestStop, stop))
	}
	if req.Sink != nil {
		kvs = append(kvs, attribute.Bool(requestStream, true))
	}
	if c.content.on {
		text, dropped := c.content.messages(req.Loaded().Messages)
		kvs = append(kvs, attribute.String(inputMessages, text))
		kvs = appendCount(kvs, inputDropped, int64(dropped))
	}
	return kvs
}

// end reports the outcome. The duration is taken first, so that redaction and
// exporters do not count.
func (c *attemptCall) end(req *middleware.Request, resp *middleware.Response, err error, returned bool) {
	took := time.Since(c.begun)
	o := outcomeOf(c.ctx, resp, err, returned)
	if c.recording && resp != nil {
		guard("span", func() { c.span.SetAttributes(c.responseAttributes(resp)...) })
	}
	c.finish(o)
	var answered string
	var used middleware.Usage
	if resp != nil {
		answered, used = resp.Model, resp.Usage
	}
	guard("metrics", func() { c.meters.operation(c.ctx, model(req), answered, o.kind, took, c.first, used) })
	if c.logger != nil {
		guard("slog", func() { c.log(model(req), used, took, o) })
	}
}

// responseAttributes returns what came back. Usage follows the conventions:
// input_tokens holds the cached ones, output_tokens the reasoning.
func (c *attemptCall) responseAttributes(resp *middleware.Response) []attribute.KeyValue {
	kvs := make([]attribute.KeyValue, 0, 8)
	kvs = appendSet(appendSet(kvs, responseModel, resp.Model), responseID, resp.ID)
	if resp.FinishReason != "" {
		kvs = append(kvs, attribute.StringSlice(responseFinish, []string{bounded(string(resp.FinishReason), maxLabel)}))
	}
	if c.first > 0 {
		kvs = append(kvs, attribute.Float64(responseFirst, c.first.Seconds()))
	}
	kvs = appendUsage(kvs, attemptUsage, resp.Usage)
	if c.content.on {
		text, dropped := c.content.answer(resp)
		kvs = append(kvs, attribute.String(outputMessages, text))
		kvs = appendCount(kvs, outputDropped, int64(dropped))
	}
	return kvs
}

// appendUsage appends the numbers of tokens that are not zero. names are attemptUsage
// or stepUsage.
func appendUsage(kvs []attribute.KeyValue, names [5]string, u middleware.Usage) []attribute.KeyValue {
	for i, n := range tokensOf(u) {
		kvs = appendCount(kvs, names[i], n)
	}
	return kvs
}

// appendCount appends a number that is not zero.
func appendCount(kvs []attribute.KeyValue, name string, n int64) []attribute.KeyValue {
	if n == 0 {
		return kvs
	}
	return append(kvs, attribute.Int64(name, n))
}

// log writes the record of one model call.
func (c *attemptCall) log(requested string, u middleware.Usage, took time.Duration, o outcome) {
	if !c.logger.Enabled(c.ctx, slog.LevelDebug) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 8),
		slog.String("model", bounded(requested, maxLabel)),
		slog.Int64("attempt", c.number),
		slog.Int64("input_tokens", u.InputTokens),
		slog.Int64("output_tokens", u.OutputTokens),
		slog.Duration("duration", took))
	c.logger.LogAttrs(c.ctx, slog.LevelDebug, "model call", c.appendError(attrs, o)...)
}
