package budget

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// layer is a call of a middleware that New returned.
type layer struct {
	outer   *layer
	budgets []*Budget // of the context, the innermost first

	mu       sync.Mutex
	reserved map[*Budget]bool // a model call, which an inner layer has not taken over
	inside   map[*Budget]bill // what inner layers have charged
}

// newLayer returns nil if the context has no budget.
func newLayer(ctx context.Context) *layer {
	l := &layer{reserved: map[*Budget]bool{}, inside: map[*Budget]bill{}}
	l.outer, _ = ctx.Value(layerKey{}).(*layer)
	for b := from(ctx); b != nil; b = b.outer {
		l.budgets = append(l.budgets, b)
	}
	if len(l.budgets) == 0 {
		return nil
	}
	return l
}

// reserve reserves a model call in each budget, or in none of them. It takes over
// the reservation of the outer layer, unless an earlier call has done so.
func (l *layer) reserve() error {
	for _, b := range l.budgets {
		if !l.outer.take(b) {
			if err := b.admit(); err != nil {
				l.charge(nil, "")
				return err
			}
		}
		l.reserved[b] = true
	}
	return nil
}

// take reports whether l had reserved a model call in b, which is now the caller's.
func (l *layer) take(b *Budget) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.reserved[b]
	delete(l.reserved, b)
	return had
}

// charge charges each budget what inner layers have not charged of the attempts,
// and gives back what is left of the reservation.
func (l *layer) charge(attempts []middleware.Attempt, model string) {
	for _, b := range l.budgets {
		all := b.bill(attempts, model)
		l.mu.Lock()
		inside := l.inside[b]
		l.mu.Unlock()
		rest := all.less(inside)
		b.add(rest, l.take(b))
		if o := l.outer; o != nil {
			o.mu.Lock()
			o.inside[b] = o.inside[b].plus(inside).plus(rest)
			o.mu.Unlock()
		}
	}
}

// bill is what attempts cost.
type bill struct {
	calls    int
	usage    middleware.Usage
	cost     float64
	unpriced int // attempts whose cost is unknown
}

func (b bill) plus(c bill) bill {
	return bill{b.calls + c.calls, b.usage.Add(c.usage), b.cost + c.cost, b.unpriced + c.unpriced}
}

// less returns what b has more than paid. It is nothing if b has no more calls.
func (b bill) less(paid bill) bill {
	if b.calls <= paid.calls {
		return bill{}
	}
	u, p := b.usage, paid.usage
	return bill{b.calls - paid.calls, middleware.Usage{InputTokens: max(0, u.InputTokens-p.InputTokens), Cached: max(0, u.Cached-p.Cached), CacheWrite: max(0, u.CacheWrite-p.CacheWrite),
		OutputTokens: max(0, u.OutputTokens-p.OutputTokens), Reasoning: max(0, u.Reasoning-p.Reasoning)}, max(0, b.cost-paid.cost), max(0, b.unpriced-paid.unpriced)}
}

// admit reserves a model call, or refuses it if a limit is reached.
func (b *Budget) admit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, spent, tokens := b.limits, b.spent, sum(b.spent.usage)
	switch {
	case l.ModelCalls > 0 && spent.calls+b.underway >= l.ModelCalls:
		return fmt.Errorf("%w: model calls: %d spent and %d under way, %d allowed", ErrExceeded, spent.calls, b.underway, l.ModelCalls)
	case l.Tokens > 0 && tokens >= l.Tokens:
		return fmt.Errorf("%w: tokens: %d spent, %d allowed", ErrExceeded, tokens, l.Tokens)
	case l.Cost > 0 && spent.cost >= l.Cost:
		return fmt.Errorf("%w: cost: %g spent, %g allowed", ErrExceeded, spent.cost, l.Cost)
	case l.Cost > 0 && spent.unpriced > 0:
		return fmt.Errorf("%w: cost: unknown, as Limits.Price gave no usable price for %d of %d model calls; %g allowed",
			ErrExceeded, spent.unpriced, spent.calls, l.Cost)
	}
	b.underway++
	return nil
}

// bill returns what attempts cost under b. Price runs outside the lock, because it
// may call Spent.
func (b *Budget) bill(attempts []middleware.Attempt, model string) bill {
	all := bill{calls: len(attempts)}
	for _, a := range attempts {
		used := middleware.Usage{}.Add(a.Usage)
		all.usage = all.usage.Add(used)
		if b.limits.Price == nil || used == (middleware.Usage{}) {
			continue
		}
		if p, ok := b.price(cmp.Or(a.Model, model), used); ok {
			all.cost += p
		} else {
			all.unpriced++
		}
	}
	return all
}

// add adds to what is spent, and gives a reservation back.
func (b *Budget) add(c bill, reserved bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = b.spent.plus(c)
	if reserved {
		b.underway--
	}
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
	return u.InputTokens + min(u.OutputTokens, math.MaxInt64-u.InputTokens)
}
