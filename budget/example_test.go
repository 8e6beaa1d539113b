package budget_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/middleware"
)

func model(context.Context, *middleware.Request) (*middleware.Response, error) {
	return &middleware.Response{Model: "small", Usage: middleware.Usage{InputTokens: 900, OutputTokens: 100}}, nil
}

func ExampleNew() {
	call := budget.New()(model)
	ctx, _ := budget.With(context.Background(), budget.Limits{ModelCalls: 2})
	for range 3 {
		_, err := call(ctx, &middleware.Request{})
		fmt.Println(err)
	}
	// Output:
	// <nil>
	// <nil>
	// budget: exceeded: model calls: 2 spent and 0 under way, 2 allowed
}

func ExampleWith() {
	call := budget.New()(model)
	day, total := budget.With(context.Background(), budget.Limits{
		Cost: 0.005,
		Price: func(_ string, u middleware.Usage) float64 {
			return float64(u.InputTokens)*1e-6 + float64(u.OutputTokens)*5e-6
		},
	})
	for user := range 3 {
		ctx, _ := budget.With(day, budget.Limits{Tokens: 1500})
		answers := 0
		for {
			_, err := call(ctx, &middleware.Request{})
			if errors.Is(err, budget.ErrExceeded) {
				fmt.Printf("user %d, %d answers: %v\n", user, answers, err)
				break
			}
			answers++
		}
	}
	s := total.Spent()
	fmt.Printf("%d model calls, %d tokens, $%.4f\n", s.ModelCalls, s.Usage.InputTokens+s.Usage.OutputTokens, s.Cost)
	// Output:
	// user 0, 2 answers: budget: exceeded: tokens: 2000 spent, 1500 allowed
	// user 1, 2 answers: budget: exceeded: tokens: 2000 spent, 1500 allowed
	// user 2, 0 answers: budget: exceeded: cost: 0.0056 spent, 0.005 allowed
	// 4 model calls, 4000 tokens, $0.0056
}
