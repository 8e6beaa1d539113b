package budget

import (
	"context"
	"slices"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// layer is one call through one New. What is inside it may hold further
// layers; they find it in the context.
type layer struct {
	budget *Budget
	outer  *layer // nil: none that charges the same budgets

	mu sync.Mutex
	// slot: one model call is reserved in budget and those outside it, and no
	// layer inside has taken it over.
	slot bool
	seen []figures // what layers inside have charged
}

type layerKey struct{}

// figures tell attempts apart well enough: those with equal ones cost the same.
type figures struct {
	model string
	usage middleware.Usage
}

func figuresOf(a middleware.Attempt) figures { return figures{a.Model, a.Usage} }

// enter reserves a model call in b and every budget outside it. Where an outer
// layer has done so already, the first layer inside takes that reservation
// over, so that a stack of layers needs one for one model call.
func enter(ctx context.Context, b *Budget) (*layer, error) {
	outer, _ := ctx.Value(layerKey{}).(*layer)
	if outer != nil && !b.within(outer.budget) { // a context put together from two others
		outer = nil
	}
	var reserved *Budget // it and those outside it have the reservation
	if outer.take() {
		reserved = outer.budget
	}
	has := false
	for r := b; r != nil; r = r.outer {
		has = has || r == reserved
		if err := r.admit(!has); err != nil {
			for u := b; u != r && u != reserved; u = u.outer {
				u.charge(nil, "", true)
			}
			if reserved != nil {
				outer.giveBack()
			}
			return nil, err
		}
	}
	return &layer{budget: b, outer: outer, slot: true}, nil
}

// leave charges the attempts that no layer inside has charged, and lets go of
// the reservation if it is still here.
func (l *layer) leave(attempts []middleware.Attempt, model string) {
	rest, held := l.unseen(attempts), l.take()
	for o := l.outer; o != nil; o = o.outer {
		o.see(rest)
	}
	if len(rest) == 0 && !held {
		return
	}
	for b := l.budget; b != nil; b = b.outer {
		b.charge(rest, model, held)
	}
}

// take says whether the reservation was here. A nil layer has none.
func (l *layer) take() bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.slot
	l.slot = false
	return had
}

func (l *layer) giveBack() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slot = true
}

func (l *layer) see(attempts []middleware.Attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range attempts {
		l.seen = append(l.seen, figuresOf(a))
	}
}

// unseen returns the attempts that no layer inside has charged. Those whose
// figures something in between has changed are told by their number.
func (l *layer) unseen(attempts []middleware.Attempt) []middleware.Attempt {
	l.mu.Lock()
	seen := slices.Clone(l.seen)
	l.mu.Unlock()
	if len(seen) == 0 {
		return attempts
	}
	var rest []middleware.Attempt
	for _, a := range attempts {
		if i := slices.Index(seen, figuresOf(a)); i >= 0 {
			seen = slices.Delete(seen, i, i+1)
		} else {
			rest = append(rest, a)
		}
	}
	return rest[min(len(seen), len(rest)):]
}
