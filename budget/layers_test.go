package budget_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

var often = retry.New(retry.Options{MaxAttempts: 5})

// Innermost, a budget stops a step between attempts. Outermost, it charges all
// attempts after the step. If it is in a chain twice, the inner one counts.
func TestPositions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		chain middleware.Middleware
		calls int
		is    error
	}{
		"innermost":         {middleware.Chain(often, budget.New()), 2, budget.ErrExceeded},
		"outermost":         {middleware.Chain(budget.New(), often), 5, retry.ErrExhausted},
		"both":              {middleware.Chain(budget.New(), often, budget.New()), 2, budget.ErrExceeded},
		"outermost, twice":  {middleware.Chain(budget.New(), budget.New(), often), 5, retry.ErrExhausted},
		"around each retry": {middleware.Chain(often, budget.New(), retry.New(retry.Options{MaxAttempts: 2})), 4, budget.ErrExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model, calls := answering(99)
				ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 2})
				if name == "around each retry" {
					ctx, b = budget.With(t.Context(), budget.Limits{ModelCalls: 3})
				}
				resp, err := c.chain(model)(ctx, request)
				require.ErrorIs(t, err, c.is)
				require.EqualValues(t, c.calls, calls.Load())
				require.Len(t, middleware.ReportOf(resp, err).Attempts, c.calls)
				n := b.Spent().ModelCalls
				require.Equal(t, c.calls, n)
				_, err = c.chain(model)(ctx, request)
				require.ErrorIs(t, err, budget.ErrExceeded)
				require.EqualValues(t, c.calls, calls.Load())
			})
		})
	}
}

func TestNestedBudgets(t *testing.T) {
	t.Parallel()
	model, calls := answering(0)
	call := budget.New()(model)
	outer, total := budget.With(t.Context(), budget.Limits{ModelCalls: 5})
	first, a := budget.With(outer, budget.Limits{ModelCalls: 2})
	second, b := budget.With(outer, budget.Limits{Tokens: 1000})
	for range 9 {
		_, _ = call(first, request)
	}
	for range 9 {
		_, _ = call(second, request)
	}
	for want, b := range map[int]*budget.Budget{5: total, 2: a, 3: b} {
		n, u := b.Spent().ModelCalls, b.Spent().Usage
		require.Equal(t, want, n)
		require.EqualValues(t, 7*want, u.InputTokens)
	}
	require.EqualValues(t, 5, calls.Load())

	// What the outer one refused was given back to the inner one.
	third, c := budget.With(outer, budget.Limits{ModelCalls: 1})
	for range 3 {
		_, err := call(third, request)
		require.EqualError(t, err, "budget: exceeded: model calls: 5 spent and 0 under way, 5 allowed")
	}
	n := c.Spent().ModelCalls
	require.Zero(t, n)
}

// A middleware puts a budget between two layers: the inner one charges that, and
// not the outer budget again.
func TestBudgetBetweenTwoLayers(t *testing.T) {
	t.Parallel()
	var inner *budget.Budget
	narrow := func(l budget.Limits) middleware.Middleware {
		return func(next middleware.ModelCall) middleware.ModelCall {
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				ctx, inner = budget.With(ctx, l)
				return next(ctx, req)
			}
		}
	}
	model, calls := answering(0)
	ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 2})
	call := middleware.Chain(budget.New(), narrow(budget.Limits{}), budget.New())(model)
	_, err := call(ctx, request)
	require.NoError(t, err)
	n := b.Spent().ModelCalls
	m := inner.Spent().ModelCalls
	require.Equal(t, []int{1, 1}, []int{n, m})
	require.EqualValues(t, 1, calls.Load())

	call = middleware.Chain(budget.New(), narrow(budget.Limits{ModelCalls: 1}), often, budget.New())(model)
	_, err = call(ctx, request)
	require.NoError(t, err)
	require.Equal(t, 2, b.Spent().ModelCalls)
	_, err = call(ctx, request)
	require.EqualError(t, err, "budget: exceeded: model calls: 2 spent and 0 under way, 2 allowed")
}

// merged is a context with the values of two.
type merged struct {
	context.Context
	other context.Context
}

func (m merged) Value(key any) any {
	if v := m.other.Value(key); v != nil {
		return v
	}
	return m.Context.Value(key)
}

// A context put together from two others: an outer layer that charges another
// budget does not keep the inner one from its work.
func TestForeignLayer(t *testing.T) {
	t.Parallel()
	model, _ := answering(0)
	ctx, a := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
	foreign, b := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
	swap := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return next(merged{ctx, foreign}, req)
		}
	}
	_, err := middleware.Chain(budget.New(), swap, budget.New())(model)(ctx, request)
	require.NoError(t, err)
	n := a.Spent().ModelCalls
	m := b.Spent().ModelCalls
	require.Equal(t, []int{1, 1}, []int{n, m})
}

// In any stack with a budget outermost, each model call is charged once to each
// budget, with its usage and its price.
func TestEveryModelCallIsChargedOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var calls int
		var used middleware.Usage
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			u := middleware.Usage{InputTokens: rapid.Int64Range(0, 2).Draw(rt, "input"), OutputTokens: rapid.Int64Range(0, 2).Draw(rt, "output")}
			calls++
			used = used.Add(u)
			resp := &middleware.Response{Usage: u, Model: rapid.SampledFrom([]string{"", "a", "b"}).Draw(rt, "model")}
			switch rapid.IntRange(0, 3).Draw(rt, "outcome") {
			case 0:
				return resp, errDown // usage that comes with an error
			case 1:
				return resp, &middleware.ModelError{StatusCode: 400}
			}
			return resp, nil
		}
		var stack func(depth int) middleware.ModelCall
		stack = func(depth int) middleware.ModelCall {
			if depth == 0 {
				return model
			}
			switch rapid.IntRange(0, 4).Draw(rt, "layer") {
			case 0, 1:
				return budget.New()(stack(depth - 1))
			case 2:
				return retry.New(retry.Options{MaxAttempts: 3})(stack(depth - 1))
			case 3:
				return retry.Fallback(nil, stack(depth-1), stack(depth-1))
			}
			next := stack(depth - 1)
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				ctx, _ = budget.With(ctx, budget.Limits{})
				return next(ctx, req)
			}
		}
		call := budget.New()(stack(rapid.IntRange(0, 5).Draw(rt, "depth")))
		synctest.Test(t, func(t *testing.T) {
			ctx, outer := budget.With(t.Context(), budget.Limits{Price: perToken})
			ctx, inner := budget.With(ctx, budget.Limits{Tokens: 1 << 40})
			for range 3 {
				_, _ = call(ctx, request)
			}
			for _, b := range []*budget.Budget{outer, inner} {
				spent := b.Spent()
				n, u, cost := spent.ModelCalls, spent.Usage, spent.Cost
				if n != calls || u != used {
					rt.Fatalf("charged %d %+v, made %d %+v", n, u, calls, used)
				}
				if want := perToken("", used); b == outer && cost != want {
					rt.Fatalf("charged %v, costs %v", cost, want)
				}
			}
		})
	})
}

// Innermost and alone, the number of model calls is a hard limit in any stack.
func TestModelCallsIsAHardLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 6).Draw(rt, "limit")
		model, calls := answering(rapid.IntRange(0, 9).Draw(rt, "failures"))
		var layers []middleware.Middleware
		for range rapid.IntRange(0, 4).Draw(rt, "layers") {
			layers = append(layers, often)
		}
		call := middleware.Chain(append(layers, budget.New())...)(model)
		synctest.Test(t, func(t *testing.T) {
			ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: limit})
			for range 10 {
				_, _ = call(ctx, request)
			}
			if n := b.Spent().ModelCalls; n != limit || calls.Load() != int64(limit) {
				rt.Fatalf("%d charged and %d made, %d allowed", n, calls.Load(), limit)
			}
		})
	})
}
