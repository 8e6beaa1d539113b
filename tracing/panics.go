package tracing

import (
	"errors"
	"fmt"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/toolmend/toolmend/middleware"
)

// maxStack is how much of a stack is recorded, in bytes.
const maxStack = 16 << 10

// panicIn returns the panic of a function of the program that err tells of.
func panicIn(err error) (p *middleware.PanicError) {
	guard("error", func() { p, _ = errors.AsType[*middleware.PanicError](err) })
	return p
}

// panicked returns what is recorded of a panic. The value is recorded without
// Options.Content too: it is the program's own word on a bug, and the only one.
func (c content) panicked(p *middleware.PanicError) (kind, value, stack string) {
	value = "[unprintable]"
	guard("panic value", func() { value = c.value(fmt.Sprint(p.Value)) })
	return bounded(fmt.Sprintf("%T", p.Value), maxLabel), value, bounded(string(p.Stack), maxStack)
}

// tellPanic puts a panic on the span and into the log. what names the function.
func (c *running) tellPanic(what string, p *middleware.PanicError) {
	if p == nil {
		return
	}
	kind, value, stack := c.content.panicked(p)
	if c.recording {
		guard("span", func() {
			c.span.AddEvent("exception", trace.WithAttributes( // as in the semantic conventions 1.41.0
				attribute.String("exception.type", kind), attribute.String("exception.message", value), attribute.String("exception.stacktrace", stack)))
		})
	}
	if c.logger != nil {
		guard("slog", func() {
			c.logger.LogAttrs(c.ctx, slog.LevelError, "panic", slog.String("function", bounded(what, maxLabel)),
				slog.String("error_type", kind), slog.String("panic", value), slog.String("stack", stack))
		})
	}
}

// tellFailures tells of the functions of the program that failed in a step,
// whether that ended the step or not.
func (c *stepCall) tellFailures(s *summary) {
	if s.outcome.err != nil {
		c.tellPanic("step", panicIn(s.outcome.err))
	}
	for n, err := range s.report.Failures {
		if n == maxEvents {
			return
		}
		if p := panicIn(err); p != nil {
			c.tellPanic("step", p)
			continue
		}
		if c.logger != nil {
			guard("slog", func() {
				attrs := []slog.Attr{slog.String("error_type", outcomeOf(c.ctx, nil, err, true).kind)}
				if c.content.on {
					attrs = append(attrs, slog.String("error", c.content.value(err.Error())))
				}
				c.logger.LogAttrs(c.ctx, slog.LevelWarn, "function failed", attrs...)
			})
		}
	}
}

// guard runs f and recovers its panic, because a provider, exporter or handler
// must not change a call. It reports whether f returned. It may be used while
// another panic unwinds the stack; that panic goes on.
func guard(what string, f func()) (ok bool) {
	defer func() {
		if v := recover(); v != nil {
			complain(what, v)
		}
	}()
	f()
	return true
}

// complain tells the global error handler, which may panic too. The
// text of a panic may hold content, its type does not.
func complain(what string, v any) {
	defer func() { _ = recover() }()
	otel.Handle(fmt.Errorf("tracing: %s panicked with a %T", what, v))
}
