package tracing_test

import (
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
	"github.com/toolmend/toolmend/tracing"
)

func TestLaws(t *testing.T) {
	t.Parallel()
	o := tracing.Options{TracerProvider: sdktrace.NewTracerProvider(), Content: true}
	for name, mw := range map[string]middleware.Middleware{
		"step":    tracing.New(o),
		"attempt": tracing.NewAttempt(o),
		"both":    middleware.Chain(tracing.New(o), tracing.NewAttempt(o)),
	} {
		t.Run(name, func(t *testing.T) { middlewaretest.Run(t, mw) })
	}
}
