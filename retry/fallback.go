package retry

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Fallback returns a model call that calls models in order, each once. It goes
// on to the next model if when returns true for the error; a nil when means
// Transient. Fallback is a model, not a middleware, so every middleware around
// it covers all of its models. To retry each model before the next one is
// called:
//
//	retry.Fallback(nil, retry.New(o)(a), retry.New(o)(b))
//
// Every model gets the same request. For a model with another name, wrap it in
// a function that sets Model in a clone. There is no wait between models.
// Fallback panics if there are no models or if one is nil.
//
// An error for which when returns false ends the step and is returned
// unchanged. So is an error of the request's sink. If the context ends, the
// error is an *Error that wraps the context's error. If every model failed,
// the error is an *Error with ErrExhausted, in which errors.Is and errors.As
// find the failure of each model. ReportOf finds the attempts of all models. A
// panic in when counts as false; a panic in a model is passed on.
//
// Fallback applies to one model call, not to an agent run: tools that have run
// do not run again. It is safe for concurrent use if its models and when are.
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
		s := newRetryStep(req, when, false)
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
