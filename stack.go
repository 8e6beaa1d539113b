package toolmend

import (
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
// for a message that stays invalid, retries provider failures, heals refused requests,
// charges the budgets of the context, and reports to the global OpenTelemetry providers.
type Options struct {
	// Validator validates tool calls and re-asks. nil means
	// argsvalidate.NewValidator(argsvalidate.Options{}). An agent of package agentloop
	// that asks people for approval needs the same Validator.
	Validator *argsvalidate.Validator
	// Retry repeats model calls that failed in transit. MaxAttempts 1 turns it off.
	Retry retry.Options
	// Tracing reports each step and each model call.
	Tracing tracing.Options
	// Heal sends a request that the provider refused once more, with the smallest
	// change. nil means heal.Options{}; &heal.Options{Rules: heal.Off()} turns it off.
	Heal *heal.Options

	// Answer validates the text of answers; nil means that it is not validated.
	Answer *answer.Options
	// Rescue reads tool calls that a server left in the text, in the model's own
	// markup; nil means that they stay text.
	Rescue *rescue.Options
	// TextCall makes tool calls out of text, for models that only write text; nil
	// means that requests have native tools.
	TextCall *textcall.Options
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

// Stack returns the middlewares of this module as one, in the order of the constants of
// middleware.Layer. A message that stays invalid after the last attempt is an error that
// wraps argsvalidate.ErrExhausted, unless the Validator was made with another OnExhausted.
//
// Stack panics with the error of o.Validate.
//
// Concurrency: the middleware is safe for concurrent use.
//
// Position: outermost, around the model. A middleware of your own goes outside of it to
// see each step once (a cache, a rate limit for users). To see each attempt, put it
// between two layers with NewLayers. A Stack inside of another Stack does not multiply
// attempts: the outer one does not repeat what the inner one gave up.
func Stack(o Options) middleware.Middleware { return NewLayers(o).Chain() }

// NewLayers returns the layers of Stack(o), to put middlewares between them. It panics with
// the error of o.Validate.
//
//	stack := toolmend.NewLayers(o).Outside(middleware.LayerAttempt, perModelCall).Chain()
func NewLayers(o Options) middleware.Layers {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	if o.Validator == nil {
		o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	}
	if o.Heal == nil {
		o.Heal = &heal.Options{}
	}
	l := middleware.Layers{
		middleware.LayerStep:     tracing.New(o.Tracing),
		middleware.LayerHistory:  heal.Step,
		middleware.LayerValidate: o.Validator.Middleware(),
		middleware.LayerRetry:    retry.New(once(o.Retry)),
		middleware.LayerHeal:     heal.New(*o.Heal),
		middleware.LayerBudget:   budget.New(),
		middleware.LayerAttempt:  tracing.NewAttempt(o.Tracing),
	}
	if o.Answer != nil {
		l[middleware.LayerAnswer] = answer.New(*o.Answer)
	}
	if o.Rescue != nil {
		l[middleware.LayerRescue] = rescue.New(*o.Rescue)
	}
	if o.TextCall != nil {
		l[middleware.LayerTextCall] = textcall.New(*o.TextCall)
	}
	return l
}

// once returns options that do not repeat a call on which a stack inside gave up.
func once(o retry.Options) retry.Options {
	repeats := o.If
	if repeats == nil {
		repeats = retry.Transient
	}
	o.If = func(err error) bool { return !retry.GaveUp(err) && repeats(err) }
	return o
}
