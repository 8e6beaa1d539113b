package budget

import (
	"context"
	"fmt"
	"math"

	"github.com/toolmend/toolmend/middleware"
)

// uncharged returns the budgets of a context, the innermost first, without those
// that an outer New charges.
func uncharged(ctx context.Context) (budgets []*Budget) {
	charged, _ := ctx.Value(chargedKey{}).(*Budget)
	for b := from(ctx); b != nil && b != charged; b = b.outer {
		budgets = append(budgets, b)
	}
	return budgets
}

// reserve reserves a model call in each budget, or in none of them.
func reserve(budgets []*Budget) error {
	for i, b := range budgets {
		if err := b.admit(); err != nil {
			for _, reserved := range budgets[:i] {
				reserved.charge(nil, "")
			}
			return err
		}
	}
	return nil
}

// admit reserves a model call, or refuses it if a limit is reached.
func (b *Budget) admit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, tokens := b.limits, sum(b.usage)
	switch {
	case l.ModelCalls > 0 && b.calls+b.underway >= l.ModelCalls:
		return fmt.Errorf("%w: model calls: %d spent and %d under way, %d allowed", ErrExceeded, b.calls, b.underway, l.ModelCalls)
	case l.Tokens > 0 && tokens >= l.Tokens:
		return fmt.Errorf("%w: tokens: %d spent, %d allowed", ErrExceeded, tokens, l.Tokens)
	case l.Cost > 0 && b.cost >= l.Cost:
		return fmt.Errorf("%w: cost: %g spent, %g allowed", ErrExceeded, b.cost, l.Cost)
	case l.Cost > 0 && b.unpriced > 0:
		return fmt.Errorf("%w: cost: unknown, as Limits.Price gave no usable price for %d of %d model calls; %g allowed",
			ErrExceeded, b.unpriced, b.calls, l.Cost)
	}
	b.underway++
	return nil
}

// charge adds attempts to what is spent, and releases the reservation. Price
// runs outside the lock, because it may call Spent.
func (b *Budget) charge(attempts []middleware.Attempt, model string) {
	var u middleware.Usage
	var cost float64
	unpriced := 0
	for _, a := range attempts {
		used := middleware.Usage{}.Add(a.Usage)
		u = u.Add(used)
		if b.limits.Price == nil || used == (middleware.Usage{}) {
			continue
		}
		name := a.Model
		if name == "" {
			name = model
		}
		if p, ok := b.price(name, used); ok {
			cost += p
		} else {
			unpriced++
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls += len(attempts)
	b.usage = b.usage.Add(u)
	b.cost += cost
	b.unpriced += unpriced
	b.underway--
}

// price calls Limits.Price. ok is false if that panics or returns no usable
// price.
func (b *Budget) price(model string, u middleware.Usage) (p float64, ok bool) {
	defer func() {
		if recover() != nil {
			p, ok = 0, false
		}
	}()
	p = b.limits.Price(model, u)
	return p, p >= 0 && !math.IsInf(p, 1)
}

// sum returns the tokens of u, whose counts are not negative, or the largest
// int64 if they are more.
func sum(u middleware.Usage) int64 {
	return u.Input + min(u.Output, math.MaxInt64-u.Input)
}
