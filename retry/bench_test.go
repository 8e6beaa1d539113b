package retry_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

// BenchmarkNew measures a call that succeeds at once, beside the bare model.
// The ratio is large because that model does nothing.
func BenchmarkNew(b *testing.B) { besideBare(b, retry.New(retry.Options{})) }

// BenchmarkFallback is the same for the first of two models.
func BenchmarkFallback(b *testing.B) {
	besideBare(b, func(m middleware.ModelCall) middleware.ModelCall { return retry.Fallback(nil, m, m) })
}

func besideBare(b *testing.B, mw middleware.Middleware) {
	model := func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("hello"), Model: req.Model}, nil
	}
	measure := func(call middleware.ModelCall, n int) time.Duration {
		start := time.Now()
		for range n {
			if _, err := call(b.Context(), request); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	b.ReportAllocs()
	wrapped := mw(model)
	for b.Loop() {
		_, _ = wrapped(b.Context(), request)
	}
	n := max(b.N, 1000)
	b.ReportMetric(float64(measure(wrapped, n))/float64(measure(model, n)), "x-bare")
}
