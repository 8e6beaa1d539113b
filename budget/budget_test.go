package budget_test

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/retry"
)

var request = &middleware.Request{Model: "asked", Messages: []middleware.Message{middleware.User("hi")}}

var errDown = &middleware.ModelError{StatusCode: 503}

// answering is a model whose calls use 10 tokens each; the first failures
// of them fail.
func answering(failures int) (middleware.ModelCall, *atomic.Int64) {
	var calls atomic.Int64
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		if calls.Add(1) <= int64(failures) {
			return nil, errDown
		}
		return &middleware.Response{Model: "m", Usage: middleware.Usage{InputTokens: 7, OutputTokens: 3}}, nil
	}, &calls
}

func perToken(_ string, u middleware.Usage) float64 { return float64(u.InputTokens+u.OutputTokens) / 8 }

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		l     budget.Limits
		calls int64 // that go through, of ten
		text  string
	}{
		"none":                 {l: budget.Limits{}, calls: 10},
		"model calls":          {l: budget.Limits{ModelCalls: 3}, calls: 3, text: "budget: exceeded: model calls: 3 spent and 0 under way, 3 allowed"},
		"tokens, met":          {l: budget.Limits{Tokens: 20}, calls: 2, text: "budget: exceeded: tokens: 20 spent, 20 allowed"},
		"tokens, overshot":     {l: budget.Limits{Tokens: 21}, calls: 3, text: "budget: exceeded: tokens: 30 spent, 21 allowed"},
		"cost":                 {l: budget.Limits{Cost: 2.5, Price: perToken}, calls: 2, text: "budget: exceeded: cost: 2.5 spent, 2.5 allowed"},
		"a price alone":        {l: budget.Limits{Price: perToken}, calls: 10},
		"the tightest of them": {l: budget.Limits{ModelCalls: 9, Tokens: 1000, Cost: 1, Price: perToken}, calls: 1, text: "budget: exceeded: cost: 1.25 spent, 1 allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, calls := answering(0)
			call := budget.New()(model)
			ctx, b := budget.With(t.Context(), c.l)
			for i := range int64(10) {
				resp, err := call(ctx, request)
				require.Equal(t, err == nil, resp != nil)
				if i < c.calls {
					require.NoError(t, err)
					continue
				}
				require.ErrorIs(t, err, budget.ErrExceeded)
				require.EqualError(t, err, c.text)
				require.Empty(t, middleware.ReportOf(resp, err).Attempts)
			}
			require.Equal(t, c.calls, calls.Load())
			s := b.Spent()
			n, u, cost := s.ModelCalls, s.Usage, s.Cost
			require.Equal(t, int(c.calls), n)
			require.Equal(t, middleware.Usage{InputTokens: 7 * c.calls, OutputTokens: 3 * c.calls}, u)
			if c.l.Price != nil {
				require.InDelta(t, 1.25*float64(c.calls), cost, 1e-9)
			} else {
				require.Zero(t, cost)
			}
		})
	}
}

func TestWithoutABudget(t *testing.T) {
	t.Parallel()
	want := &middleware.Response{}
	resp, err := budget.New()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return want, errDown // whatever next returns
	})(t.Context(), request)
	require.Same(t, want, resp)
	require.Same(t, errDown, err)
}

func TestBadLimits(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]budget.Limits{
		"budget: Limits.ModelCalls: must not be negative, got -1":        {ModelCalls: -1},
		"budget: Limits.Tokens: must not be negative, got -2":            {Tokens: -2},
		"budget: Limits.Cost: must be finite and not negative, got -0.5": {Cost: -0.5, Price: perToken},
		"budget: Limits.Cost: must be finite and not negative, got NaN":  {Cost: math.NaN(), Price: perToken},
		"budget: Limits.Cost: must be finite and not negative, got +Inf": {Cost: math.Inf(1), Price: perToken},
		"budget: Limits.Price: required with Limits.Cost, got nil":       {Cost: 1},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			require.EqualError(t, l.Validate(), want)
			require.PanicsWithError(t, want, func() { budget.With(t.Context(), l) })
		})
	}
	require.Panics(t, func() { budget.New()(nil) })
}

// However many start at once, no more than allowed do.
func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]middleware.Middleware{
		"one layer":    budget.New(),
		"two layers":   middleware.Chain(budget.New(), budget.New()),
		"three layers": middleware.Chain(budget.New(), retry.New(retry.Options{}), budget.New(), budget.New()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model, calls := answering(0)
				call := chain(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
					time.Sleep(time.Minute) // so that all are under way at once
					return model(ctx, req)
				})
				ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 13})
				var refused atomic.Int64
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						if _, err := call(ctx, request); errors.Is(err, budget.ErrExceeded) {
							refused.Add(1)
						}
					})
				}
				wg.Wait()
				require.EqualValues(t, 13, calls.Load())
				require.EqualValues(t, 87, refused.Load())
				n := b.Spent().ModelCalls
				require.Equal(t, 13, n)
			})
		})
	}
}

func TestFailedCallsCount(t *testing.T) {
	t.Parallel()
	model, calls := answering(9)
	call := budget.New()(model)
	ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 2})
	for range 2 {
		_, err := call(ctx, request)
		require.Same(t, errDown, err)
	}
	_, err := call(ctx, request)
	require.ErrorIs(t, err, budget.ErrExceeded)
	require.EqualValues(t, 2, calls.Load())
	n, u := b.Spent().ModelCalls, b.Spent().Usage
	require.Equal(t, 2, n)
	require.Zero(t, u)
}

// A model that breaks its contract is charged all the same.
func TestBrokenContract(t *testing.T) {
	t.Parallel()
	ctx, b := budget.With(t.Context(), budget.Limits{})
	resp, err := budget.New()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return nil, nil
	})(ctx, request)
	require.Nil(t, resp)
	require.ErrorIs(t, err, middleware.ErrNoResponse)
	resp, err = budget.New()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Usage: middleware.Usage{InputTokens: 5}}, errDown
	})(ctx, request)
	require.Nil(t, resp)
	require.ErrorIs(t, err, errDown)
	n, u := b.Spent().ModelCalls, b.Spent().Usage
	require.Equal(t, 2, n)
	require.EqualValues(t, 5, u.InputTokens)
}

func TestPanicGivesTheReservationBack(t *testing.T) {
	t.Parallel()
	for name, chain := range map[string]middleware.Middleware{
		"one layer":  budget.New(),
		"two layers": middleware.Chain(budget.New(), budget.New()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, b := budget.With(t.Context(), budget.Limits{ModelCalls: 1})
			broken := chain(func(context.Context, *middleware.Request) (*middleware.Response, error) { panic("model") })
			for range 3 {
				require.PanicsWithValue(t, "model", func() { _, _ = broken(ctx, request) })
			}
			model, _ := answering(0)
			_, err := chain(model)(ctx, request)
			require.NoError(t, err)
			n := b.Spent().ModelCalls
			require.Equal(t, 1, n)
		})
	}
}

func TestNoUsablePrice(t *testing.T) {
	t.Parallel()
	for name, price := range map[string]func(string, middleware.Usage) float64{
		"panic":    func(string, middleware.Usage) float64 { panic("no such model") },
		"NaN":      func(string, middleware.Usage) float64 { return math.NaN() },
		"infinite": func(string, middleware.Usage) float64 { return math.Inf(1) },
		"negative": func(string, middleware.Usage) float64 { return -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model, _ := answering(1)
			call := budget.New()(model)
			ctx, b := budget.With(t.Context(), budget.Limits{Cost: 100, Price: price})
			_, err := call(ctx, request)
			require.Same(t, errDown, err, "a failure without tokens has no price to ask for")
			_, err = call(ctx, request)
			require.NoError(t, err, "the call itself goes on")
			_, err = call(ctx, request)
			require.ErrorIs(t, err, budget.ErrExceeded)
			require.EqualError(t, err, "budget: exceeded: cost: unknown, as Limits.Price gave no usable price for 1 of 2 model calls; 100 allowed")
			s := b.Spent()
			n, u, cost := s.ModelCalls, s.Usage, s.Cost
			require.Equal(t, 2, n)
			require.EqualValues(t, 7, u.InputTokens)
			require.Zero(t, cost)

			model, _ = answering(0)
			ctx, b = budget.With(t.Context(), budget.Limits{ModelCalls: 2, Price: price}) // the cost is not limited
			for range 2 {
				_, err = budget.New()(model)(ctx, request)
				require.NoError(t, err)
			}
			cost = b.Spent().Cost
			require.Zero(t, cost)
		})
	}
}

// Price is told a model's name even where the response has none, may look at
// the budget, and gets no figures that cannot be.
func TestPriceInput(t *testing.T) {
	t.Parallel()
	var b *budget.Budget
	var models []string
	ctx, b := budget.With(t.Context(), budget.Limits{Cost: 1, Price: func(model string, u middleware.Usage) float64 {
		b.Spent()
		models = append(models, model)
		require.Equal(t, middleware.Usage{OutputTokens: math.MaxInt64}, u)
		return 0
	}})
	for _, name := range []string{"", "answered"} {
		_, err := budget.New()(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			return &middleware.Response{Model: name, Usage: middleware.Usage{InputTokens: -5, OutputTokens: math.MaxInt64}}, nil
		})(ctx, request)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"asked", "answered"}, models)
	u := b.Spent().Usage
	require.Equal(t, middleware.Usage{OutputTokens: math.MaxInt64}, u)
}
