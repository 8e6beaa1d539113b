// Package answer lets only valid text answers through, and asks the model again
// about the others. It is what package argsvalidate is for tool calls.
//
//	call := answer.For[Invoice](answer.Options{})(model)
//	resp, err := call(ctx, req)
//	invoice, err := answer.Value[Invoice](resp)
//
// [For] validates the text against a Go type. [New] validates it against a JSON
// Schema, against a function of yours, or both. Code fences around the JSON and
// other slips with only one possible repair are repaired. If the text is still
// invalid, the model gets its own answer back with a user message that lists
// everything that is wrong with it, and is asked again. Failed turns stay
// inside the step, and its report has all of them.
//
// # What is an answer
//
// A message with tool calls is not an answer. It passes unchanged, because the
// answer comes in a later step. A message that the provider's filter stopped
// passes, and so does a refusal that the provider marks as one: asking again
// does not help. So does a message that a layer inside, such as textcall, has
// passed on as invalid: it stays invalid, whatever its text looks like. The
// report has a note then, and [Value] returns an error. An answer that was cut
// off at its length limit is a fault, and the model is asked for a shorter one.
//
// # What the model knows
//
// The first request is sent as it is: the caller has told the model about the
// form, in words or with the provider's own setting for structured output
// (Request.Params). Options.Instruct adds a system message with the schema.
//
// # Issue codes
//
// A fault found by a JSON Schema keyword has the keyword for a code. The codes
// syntax, trailing_data, utf8, size, depth, number, duplicate_key, truncated,
// decode and unchecked mean what they mean in package argsvalidate. The others:
//
//	empty    there is no text
//	check    Options.Check refused, unless it gave a code of its own
//
// # Tool calls as answers
//
// agentloop.Extract asks for the same value as the arguments of a tool call,
// which argsvalidate validates; it does not ask again about a text. It is a
// question of its own. This package is a layer of any chain: for models and
// servers that structure text but not calls, for the last message of an agent
// that has tools, and for text that is no JSON.
package answer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/toolmend/toolmend/internal/schema"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
)

// Options say what a valid answer is. Schema or Check has to be set.
type Options struct {
	Schema json.RawMessage // JSON Schema of the answer; nil: the text need not be JSON
	// Check is a check of your own. It gets text that satisfies Schema; issues
	// without a code get the code check. An error means that Check could not
	// decide: it ends the step with ErrCheck and is never shown to the model. So
	// do a panic and a timeout. Check is called from any number of goroutines.
	Check        func(ctx context.Context, text string) ([]middleware.Issue, error)
	CheckTimeout time.Duration // for each call of Check and of Feedback; 0 means 10 s
	MaxAttempts  int           // model calls of a step, the first one included; 0 means 3, 1 never asks again
	OnExhausted  OnExhausted
	Mend         []mend.Rule // local repairs of JSON; nil means mend.Default(), mend.None() turns them off
	Formats      bool        // assert "format", which JSON Schema leaves open
	Instruct     bool        // add a system message with Schema to each request
	// Feedback returns what the model is told about an invalid answer; nil means
	// the built-in text, which has at most 8 KiB.
	Feedback func(text string, issues []middleware.Issue) string
}

// OnExhausted says what happens to an answer that is still invalid when no
// attempt is left.
type OnExhausted uint8

// What may happen.
const (
	Pass  OnExhausted = iota // the answer as it was sent, Report.Status == middleware.Invalid
	Raise                    // an *Error
)

const (
	defaultMaxAttempts  = 3
	maxAttempts         = 1000
	defaultCheckTimeout = 10 * time.Second
)

func (o Options) withDefaults() Options {
	o.Schema = slices.Clone(o.Schema)
	o.MaxAttempts = cmp.Or(o.MaxAttempts, defaultMaxAttempts)
	o.CheckTimeout = cmp.Or(o.CheckTimeout, defaultCheckTimeout)
	o.Mend = slices.Clone(o.Mend)
	if o.Mend == nil {
		o.Mend = mend.Default()
	}
	return o
}

// Validate returns what is wrong with o, nil if nothing is: for options read
// from a file or a flag. New panics with it. A schema that cannot be used is
// an error here.
func (o Options) Validate() error {
	switch {
	case o.Schema == nil && o.Check == nil:
		return errors.New("answer: Schema or Check: one of them must be set")
	case o.Schema == nil && o.Instruct:
		return errors.New("answer: Instruct: needs a Schema")
	case o.MaxAttempts < 0 || o.MaxAttempts > maxAttempts:
		return fmt.Errorf("answer: MaxAttempts: must be 0 to %d, got %d", maxAttempts, o.MaxAttempts)
	case o.CheckTimeout < 0:
		return fmt.Errorf("answer: CheckTimeout: must not be negative, got %v", o.CheckTimeout)
	case o.OnExhausted > Raise:
		return fmt.Errorf("answer: OnExhausted: not one of the constants, got %d", o.OnExhausted)
	case slices.ContainsFunc(o.Mend, func(r mend.Rule) bool { return !r.Known() }):
		return fmt.Errorf("answer: Mend: not one of the rules: %v", o.Mend)
	}
	if o.Schema == nil {
		return nil
	}
	if _, err := schema.Compile(o.Schema, schema.Options{Formats: o.Formats}); err != nil {
		return fmt.Errorf("answer: Schema: %w", err)
	}
	return nil
}

// New returns the middleware that validates the text of each answer and asks
// again. It panics if o.Validate fails. It is safe for concurrent use.
//
// The outcome is a response whose text is valid and whose Report.Status is
// middleware.Valid; or a message that is no answer (see the package comment);
// or, when no attempt is left, what OnExhausted says; or an *Error; or the error
// of the model call. The third identical answer in a row ends the step, too.
//
// What a request's Sink gets of the text is the valid one, once the step has
// accepted it. Reasoning is shown as it comes, and voided if the model is asked
// again.
//
// Position: outside argsvalidate, textcall and retry, inside tracing:
//
//	middleware.Chain(trace, answer, validate, retry)(model)
//
// Then the layer sees only messages that the step would return, a tool call
// that the model makes instead of correcting its answer is validated like any
// other, and a failure in transit costs no attempt. Inside of argsvalidate it
// would see answers that argsvalidate or textcall do not accept.
func New(o Options) middleware.Middleware {
	if err := o.Validate(); err != nil {
		panic(err)
	}
	c := newChecker(o.withDefaults())
	return func(next middleware.ModelCall) middleware.ModelCall {
		if next == nil {
			panic("answer: New: the model call is nil")
		}
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			return newStep(c, next, req).run(ctx)
		}
	}
}
