// Package budget limits the model calls, tokens and cost of all model calls under
// one context: a request with its sub-agents and parallel branches.
//
// [With] puts a budget into a context. [New] is the middleware that charges it
// and refuses the next model call once a limit is reached. It must be in each
// chain whose calls count; a budget has no effect on other chains. A call that is
// under way is never cancelled.
package budget

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/middleware"
)

// ErrExceeded is wrapped by the error of a model call that was refused because
// a limit is reached. The error names the limit, what is spent and what is
// allowed. Its ErrorType is budget.
var ErrExceeded error = exceeded{}

type exceeded struct{}

func (exceeded) Error() string { return "budget: exceeded" }

// Is reports that the model call was not made, because of a budget.
func (exceeded) Is(target error) bool {
	return target == middleware.ErrNotSent || target == middleware.ErrBudget
}

// ErrorType returns the word for labels and clients.
func (exceeded) ErrorType() string { return "budget" }

// ClientMessage returns the text for the client of a proxy, without figures.
func (exceeded) ClientMessage() string { return "the budget for model calls is used up" }

// Limits say what may be spent. Zero fields do not limit.
type Limits struct {
	// ModelCalls is the number of model calls, failed ones included. The limit is
	// exact, even with concurrent calls, if New is the innermost middleware.
	ModelCalls int
	// Tokens is the sum of input and output tokens. The usage of a call is known
	// only after it, so the calls under way may exceed the limit.
	Tokens int64
	// Cost is in the unit of Price. Calls under way may exceed it, as with Tokens.
	Cost float64
	// Price returns the cost of one model call. It is required with Cost; without
	// Cost it fills Spent.Cost only. model is the model that answered, or the
	// request's if the response names none. Price is not called for a model call
	// that used no tokens. It is called concurrently, and once for each budget.
	//
	// If Price panics, or returns a number that is negative or not finite, the
	// cost of that model call is unknown. Its tokens are charged, and a budget
	// with a Cost refuses the next model call.
	Price func(model string, u middleware.Usage) float64
}

// Validate returns what is wrong with l, nil if nothing is: for limits read
// from a file or a flag. With panics with it.
func (l Limits) Validate() error {
	switch {
	case l.ModelCalls < 0:
		return fmt.Errorf("budget: Limits.ModelCalls: must not be negative, got %d", l.ModelCalls)
	case l.Tokens < 0:
		return fmt.Errorf("budget: Limits.Tokens: must not be negative, got %d", l.Tokens)
	case l.Cost < 0 || math.IsNaN(l.Cost) || math.IsInf(l.Cost, 0):
		return fmt.Errorf("budget: Limits.Cost: must be finite and not negative, got %v", l.Cost)
	case l.Cost > 0 && l.Price == nil:
		return errors.New("budget: Limits.Price: required with Limits.Cost, got nil")
	}
	return nil
}

// Budget counts what was spent under one context. It is made by With, and is
// safe for concurrent use.
type Budget struct {
	limits Limits
	outer  *Budget // charged as well; nil: none

	mu       sync.Mutex
	spent    bill // charged
	underway int  // reserved, not yet charged
}

type (
	budgetKey struct{} // of the *Budget of a context
	layerKey  struct{} // of the *layer of the next New outside
)

// With returns a context whose model calls share one budget. If ctx already has
// a budget, model calls are charged to both and obey both, so an inner budget can
// only narrow.
// It panics if l.Validate fails.
func With(ctx context.Context, l Limits) (context.Context, *Budget) {
	if err := l.Validate(); err != nil {
		panic(err)
	}
	b := &Budget{limits: l, outer: from(ctx)}
	return loopstate.WithTokens(context.WithValue(ctx, budgetKey{}, b), b.left), b
}

// left returns how many tokens may still be spent: 0 if no model call is left.
func (b *Budget) left() int64 {
	left := int64(math.MaxInt64)
	for ; b != nil; b = b.outer {
		b.mu.Lock()
		if b.limits.Tokens > 0 {
			left = min(left, b.limits.Tokens-b.spent.usage.InputTokens-b.spent.usage.OutputTokens)
		}
		if b.limits.ModelCalls > 0 && b.spent.calls+b.underway >= b.limits.ModelCalls {
			left = 0
		}
		b.mu.Unlock()
	}
	return left
}

func from(ctx context.Context) *Budget {
	b, _ := ctx.Value(budgetKey{}).(*Budget)
	return b
}

// Spent is what has been charged to a budget.
type Spent struct {
	ModelCalls int // failed ones included, those under way not
	Usage      middleware.Usage
	Cost       float64 // in the unit of Limits.Price; calls without a price are not in it
}

// Spent returns what has been charged so far.
func (b *Budget) Spent() Spent {
	b.mu.Lock()
	defer b.mu.Unlock()
	return Spent{ModelCalls: b.spent.calls, Usage: b.spent.usage, Cost: b.spent.cost}
}

// New returns the middleware that charges the budgets of the context. It refuses
// a model call once a limit of any of them is reached, with an error that wraps
// ErrExceeded and an empty ledger. Without a budget in the context it passes the
// call on.
//
// It charges what middleware.ReportOf says: every attempt of a response or an
// error, with its usage. An error without a report is one model call. A call
// that panics is not charged. A model call is reserved before it starts, so a
// call may be refused because of others that are under way.
//
// It is safe for concurrent use. Package retry does not repeat a refusal.
//
// Position: innermost, once in a chain. There it sees each attempt and can stop
// a step between two. Further out it reserves one model call for the step and
// charges all attempts afterwards, so a step may overshoot by its hidden
// attempts. If a chain has it twice, the inner one does that work, and the outer
// one charges only the attempts that did not pass the inner one.
func New() middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("budget: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			l := newLayer(ctx)
			if l == nil {
				return next(ctx, req)
			}
			if err := l.reserve(); err != nil {
				var nothing middleware.Tally // no attempt was made
				return nothing.Finish(nil, err)
			}
			var attempts []middleware.Attempt
			defer func() { l.charge(attempts, req.Model) }() // a panic too gives the reservation back
			resp, err := keepContract(next(context.WithValue(ctx, layerKey{}, l), req))
			attempts = middleware.ReportOf(resp, err).Attempts
			return resp, err
		}
	}
}

// keepContract returns a response exactly when there is no error, as Tally.Call
// does, so that usage that comes with an error is charged too.
func keepContract(resp *middleware.Response, err error) (*middleware.Response, error) {
	switch {
	case resp == nil && err == nil:
		return nil, middleware.ErrNoResponse
	case resp != nil && err != nil:
		var t middleware.Tally
		t.Add(resp, err)
		return t.Finish(nil, err)
	}
	return resp, err
}
