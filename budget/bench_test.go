package budget_test

import (
	"context"
	"testing"
	"time"

	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
)

// BenchmarkNew measures a call within its budget beside the bare model. The
// ratio is large because that model does nothing.
func BenchmarkNew(b *testing.B) {
	ctx, _ := budget.With(b.Context(), budget.Limits{ModelCalls: 1 << 40, Tokens: 1 << 60, Cost: 1e300, Price: perToken})
	besideBare(b, ctx, budget.New())
}

// BenchmarkNewTwice is the same for a chain that has it twice.
func BenchmarkNewTwice(b *testing.B) {
	ctx, _ := budget.With(b.Context(), budget.Limits{ModelCalls: 1 << 40})
	besideBare(b, ctx, middleware.Chain(budget.New(), budget.New()))
}

// BenchmarkWithoutBudget is a call whose context has none.
func BenchmarkWithoutBudget(b *testing.B) { besideBare(b, b.Context(), budget.New()) }

func besideBare(b *testing.B, ctx context.Context, mw middleware.Middleware) {
	measure := func(call middleware.ModelCall, n int) time.Duration {
		start := time.Now()
		for range n {
			if _, err := call(ctx, request); err != nil {
				b.Fatal(err)
			}
		}
		return time.Since(start)
	}
	b.ReportAllocs()
	wrapped := mw(model)
	for b.Loop() {
		_, _ = wrapped(ctx, request)
	}
	n := max(b.N, 1000)
	b.ReportMetric(float64(measure(wrapped, n))/float64(measure(model, n)), "x-bare")
}
