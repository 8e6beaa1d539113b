package toolmend

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/answer"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/budget"
	"github.com/toolmend/toolmend/heal"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/rescue"
	"github.com/toolmend/toolmend/retry"
	"github.com/toolmend/toolmend/textcall"
	"github.com/toolmend/toolmend/tracing"
)

// Options configure Stack. The zero value validates, repairs and re-asks, returns an error
// for a message that stays invalid, retries provider failures, charges the budgets of the
// context, and reports to the global OpenTelemetry providers.
type Options struct {
	// Validator validates tool calls and re-asks. nil means
	// argsvalidate.NewValidator(argsvalidate.Options{}). An agent of package agentloop
	// that asks people for approval needs the same Validator.
	Validator *argsvalidate.Validator
	// Retry repeats model calls that failed in transit. MaxAttempts 1 turns it off.
	Retry retry.Options
	// Tracing reports each step and each model call.
	Tracing tracing.Options

	// Answer validates the text of answers; nil means that it is not validated.
	Answer *answer.Options
	// Rescue reads tool calls that a server left in the text, in the model's own
	// markup; nil means that they stay text.
	Rescue *rescue.Options
	// TextCall makes tool calls out of text, for models that only write text; nil
	// means that requests have native tools.
	TextCall *textcall.Options
	// Heal sends a request that the provider refused once more, with the smallest
	// change; nil means that a refusal is an error.
	Heal *heal.Options
}

// Validate returns the first error of the options of a part, with the name of its field.
func (o Options) Validate() error {
	type options interface{ Validate() error }
	check := func(field string, set bool, part options) error {
		if !set {
			return nil
		}
		if err := part.Validate(); err != nil {
			return fmt.Errorf("toolmend: Options.%s: %w", field, err)
		}
		return nil
	}
	for _, err := range []error{
		check("Retry", true, o.Retry),
		check("Tracing", true, o.Tracing),
		check("Answer", o.Answer != nil, o.Answer),
		check("Rescue", o.Rescue != nil, o.Rescue),
		check("TextCall", o.TextCall != nil, o.TextCall),
		check("Heal", o.Heal != nil, o.Heal),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// Stack returns the middlewares of this module as one, in the order that they need:
//
//	tracing.New          one span for the step
//	answer.New           if Options.Answer is set
//	argsvalidate         validates tool calls, repairs them, re-asks
//	rescue.New           if Options.Rescue is set
//	retry.New            429, 5xx, timeouts
//	textcall.New         if Options.TextCall is set
//	budget.New           refuses a model call once a limit of the context is reached
//	tracing.NewAttempt   one span for each model call
//	heal.New             if Options.Heal is set
//
// A message that stays invalid after the last attempt is an error that wraps
// argsvalidate.ErrExhausted, unless the Validator was made with another OnExhausted.
//
// Stack panics with the error of o.Validate.
//
// Concurrency: the middleware is safe for concurrent use.
//
// Position: outermost, around the model. A middleware of your own goes outside of it to
// see each step once (a cache, a rate limit for users), and inside of it to see each
// attempt: middleware.Chain(outer, toolmend.Stack(o), inner)(model).
func Stack(o Options) middleware.Middleware {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	v := o.Validator
	if v == nil {
		v = argsvalidate.NewValidator(argsvalidate.Options{})
	}
	// Chain skips what is nil.
	var texts, rescued, textcalls, step, healed middleware.Middleware
	if o.Answer != nil {
		texts = answer.New(*o.Answer)
	}
	if o.Rescue != nil {
		rescued = rescue.New(*o.Rescue)
	}
	if o.TextCall != nil {
		textcalls = textcall.New(*o.TextCall)
	}
	if o.Heal != nil {
		step, healed = healStep, heal.New(*o.Heal)
	}
	return middleware.Chain(
		tracing.New(o.Tracing),
		step,
		texts,
		v.Middleware(),
		rescued,
		retry.New(o.Retry),
		textcalls,
		budget.New(),
		tracing.NewAttempt(o.Tracing),
		healed,
	)
}

// healStep lets the re-asks of a step start from the history that its first attempt healed.
func healStep(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		return next(heal.Step(ctx), req)
	}
}
