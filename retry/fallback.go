package retry

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Fallback returns a model call that asks models in order, each once, and goes
// on to the next when the error satisfies when (nil: Transient). It is a model,
// not a middleware, so every layer around it covers all of its models. To
// retry one model before the next is asked:
//
//	retry.Fallback(nil, retry.New(o)(a), retry.New(o)(b))
//
// Every model gets the same request: one that serves another model name sets it
// in a clone. There is no wait between models. Fallback panics without models,
// and on a nil one.
//
// An error that does not satisfy when is returned as it is, and ends the step;
// so do the end of the context (an *Error with its error) and an error of the
// request's sink. When every model has failed, the error is an *Error with
// ErrExhausted in which errors.Is and errors.As find the failure of each model.
// ReportOf finds the attempts of all of them. A panic of when says no; a panic
// of a model is passed on.
//
// It falls back for one model call, not for a run: tools that have run do not
// run again. It is safe for concurrent use if its models and when are.
//
// Position: innermost, in place of the model.
func Fallback(when func(error) bool, models ...middleware.ModelCall) middleware.ModelCall {
	if len(models) == 0 {
		panic("retry: Fallback: models: must not be empty")
	}
	if i := slices.IndexFunc(models, func(m middleware.ModelCall) bool { return m == nil }); i >= 0 {
		panic(fmt.Sprintf("retry: Fallback: models: must not be nil, got nil at %d", i))
	}
	models = slices.Clone(models)
	if when == nil {
		when = Transient
	}
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		s := newStep(req, when)
		var failed failures
		for _, model := range models {
			resp, done, err := s.ask(ctx, model)
			if done {
				return s.tally.Finish(resp, err)
			}
			failed = append(failed, s.last)
			if len(failed) > 1 {
				s.last = failed
			}
		}
		return s.end(ErrExhausted)
	}
}
