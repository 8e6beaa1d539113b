package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/tracing"
)

// printSpans runs the scenarios under tracing and prints the spans that an
// exporter would get. Content is off, as it is by default: codes and pointers
// show, values do not.
func printSpans(ctx context.Context, out io.Writer, colour bool) error {
	p := printer{out: out, colour: colour}
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	for i, s := range scenarios {
		if _, err := traced(s, tracing.Options{TracerProvider: provider, Provider: "scripted"})(ctx, s.request()); err != nil {
			return fmt.Errorf("%s: %w", s.title, err)
		}
		p.line("%s  %s", p.bold(fmt.Sprint(i+1)), p.bold(s.title))
		p.spans(exporter.GetSpans())
		exporter.Reset()
		p.line("")
	}
	return provider.Shutdown(ctx)
}

// spans prints the children of the one root span below it. Ids and times
// differ from run to run and are left out.
func (p *printer) spans(spans tracetest.SpanStubs) {
	var show func(parent tracetest.SpanStub, indent string)
	show = func(span tracetest.SpanStub, indent string) {
		p.line("   %s%s %s", indent, p.bold(span.Name), p.paint("2", strings.ToLower(span.SpanKind.String())))
		for _, a := range span.Attributes {
			p.line("   %s  %s", indent, p.paint("2", fmt.Sprintf("%s = %s", a.Key, a.Value.Emit())))
		}
		for _, e := range span.Events {
			words := []string{e.Name}
			for _, a := range e.Attributes {
				words = append(words, fmt.Sprintf("%s=%s", a.Key, a.Value.Emit()))
			}
			p.line("   %s  %s", indent, p.paint("31", "• "+strings.Join(words, " ")))
		}
		for _, child := range spans {
			if child.Parent.SpanID() == span.SpanContext.SpanID() {
				show(child, indent+"  ")
			}
		}
	}
	for _, span := range spans {
		if !span.Parent.IsValid() {
			show(span, "")
		}
	}
}
