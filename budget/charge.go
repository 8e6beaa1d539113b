package budget

import (
	"fmt"
	"math"

	"github.com/toolmend/toolmend/middleware"
)

// within reports whether b is o or inside it.
func (b *Budget) within(o *Budget) bool {
	for ; b != nil; b = b.outer {
		if b == o {
			return true
		}
	}
	return false
}

// admit refuses a model call if a limit is reached, else reserves it if asked
// to. A call that is reserved already does not count against itself.
func (b *Budget) admit(reserve bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	l, tokens := b.limits, sum(b.usage)
	switch {
	case reserve && l.ModelCalls > 0 && b.calls+b.underway >= l.ModelCalls:
		return fmt.Errorf("%w: model calls: %d spent and %d under way, %d allowed", ErrExceeded, b.calls, b.underway, l.ModelCalls)
	case l.Tokens > 0 && tokens >= l.Tokens:
		return fmt.Errorf("%w: tokens: %d spent, %d allowed", ErrExceeded, tokens, l.Tokens)
	case l.Cost > 0 && b.cost >= l.Cost:
		return fmt.Errorf("%w: cost: %g spent, %g allowed", ErrExceeded, b.cost, l.Cost)
	case l.Cost > 0 && b.unpriced > 0:
		return fmt.Errorf("%w: cost: unknown, as Limits.Price gave no usable price for %d of %d model calls; %g allowed",
			ErrExceeded, b.unpriced, b.calls, l.Cost)
	}
	if reserve {
		b.underway++
	}
	return nil
}

// charge adds attempts to what is spent, and lets go of a reservation. Price
// runs outside the lock: it may ask for Spent.
func (b *Budget) charge(attempts []middleware.Attempt, model string, release bool) {
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
	if release {
		b.underway--
	}
}

// price is false where the caller's function gives no price.
func (b *Budget) price(model string, u middleware.Usage) (p float64, ok bool) {
	defer func() {
		if recover() != nil {
			p, ok = 0, false
		}
	}()
	p = b.limits.Price(model, u)
	return p, p >= 0 && !math.IsInf(p, 1)
}

// sum is the tokens of u, whose counts are not negative: at most the largest
// number.
func sum(u middleware.Usage) int64 {
	return u.Input + min(u.Output, math.MaxInt64-u.Input)
}
