// Package answer validates the text of a model's answer and re-asks the model
// if the text is invalid. It does for texts what package argsvalidate does for
// tool calls.
//
//	call := answer.For[Invoice](answer.Options{})(model)
//	resp, err := call(ctx, req)
//	invoice, err := answer.Value[Invoice](resp)
//
// [For] validates the text against a Go type. [New] validates it against a
// JSON Schema, against a function of yours, or both. Mistakes with only one
// possible fix, such as code fences around the JSON, are repaired. If the text
// is still invalid, the model is called again. It gets its own answer and a
// user message that lists all issues of the answer. The failed turns are not
// returned; the step's report holds them.
//
// # Which messages are validated
//
// Some messages are returned without validation:
//
//   - A message with tool calls, because the answer comes in a later step.
//   - A message that the provider's filter stopped, and one that the provider
//     marks as a refusal, because a re-ask does not help.
//   - A message that an inner middleware such as textcall returned as invalid. Its
//     status stays middleware.Invalid.
//
// In the last two cases the report has a note, and [Value] returns an error.
// An answer that was cut off at its length limit is invalid, and the model is
// asked for a shorter one.
//
// # What the model knows
//
// The first request is sent unchanged, so the caller describes the format to
// the model: in words, or with the provider's own setting for structured
// output (Request.Params). Options.Instruct adds a system message with the
// schema.
//
// # Issue codes
//
// An issue found by a JSON Schema keyword has the keyword as its code. The
// codes syntax, trailing_data, utf8, size, depth, number, duplicate_key,
// truncated, decode and unchecked have the same meaning as in package
// argsvalidate. This package adds:
//
//	empty    there is no text
//	check    Options.Check rejected the answer with an issue that has no code
//
// # Tool calls as answers
//
// agentloop.Extract asks for a value as the arguments of a tool call, in a
// request of its own, and argsvalidate validates the call. This package is a
// middleware for any chain. Use it for models and servers that support
// structured text but not tool calls, for the last message of an agent with
// tools, and for text that is not JSON.
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

// Options say what a valid answer is. Schema or Check must be set.
type Options struct {
	Schema json.RawMessage // JSON Schema of the answer; nil means that the text need not be JSON
	// Check validates a text that satisfies Schema. An issue without a code
	// gets the code check. An error means that Check could not decide: the
	// step ends with ErrCheck, and the model does not see the error. The same
	// holds for a panic and a timeout. Check must be safe for concurrent use.
	Check        func(ctx context.Context, text string) ([]middleware.Issue, error)
	CheckTimeout time.Duration          // for each call of Check and of Feedback; 0 means 10 s
	MaxAttempts  int                    // model calls of a step, the first one included; 0 means 3, 1 turns re-asks off
	OnExhausted  middleware.OnExhausted // 0 returns an *Error; middleware.Pass the invalid answer, with Report.Status middleware.Invalid
	Mend         []mend.Rule            // local repairs of JSON; nil means mend.Default(), mend.Off() turns them off
	Formats      bool                   // validate "format", which JSON Schema leaves optional
	Instruct     bool                   // add a system message with Schema to each request
	// Feedback returns the text that the model gets about an invalid answer.
	// nil means the built-in text of at most 8 KiB.
	Feedback func(text string, issues []middleware.Issue) string
}

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

// Validate returns the first invalid field as an error, or nil. Use it for
// options read from a file or a flag: New panics with the same error. A Schema
// that cannot be used is an error too.
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
	case slices.ContainsFunc(o.Mend, func(r mend.Rule) bool { return !r.Known() }):
		return fmt.Errorf("answer: Mend: not one of the rules: %v", o.Mend)
	}
	if err := o.OnExhausted.Validate("answer: OnExhausted"); err != nil || o.Schema == nil {
		return err
	}
	if _, err := schema.Compile(o.Schema, schema.Options{Formats: o.Formats}); err != nil {
		return fmt.Errorf("answer: Schema: %w", err)
	}
	return nil
}

// New returns the middleware that validates the text of each answer and
// re-asks the model if it is invalid. It panics if o.Validate fails. It is
// safe for concurrent use.
//
// A step returns one of these: a response whose text is valid and whose
// Report.Status is middleware.Valid; a message that is not validated (see the
// package comment); after the last attempt, an *Error or what
// Options.OnExhausted selects; or the error of the model call. The step also ends after the third identical
// answer in a row.
//
// A request's Sink gets only the valid text, once the step has accepted it.
// Reasoning is streamed as it arrives, and EventReset follows if the model is
// called again.
//
// Position: outside argsvalidate, textcall and retry, inside tracing:
//
//	middleware.Chain(trace, answer, validate, retry)(model)
//
// There the middleware sees only messages that the step would return. A tool
// call that the model sends instead of a correction is validated as usual, and
// a network error does not use up an attempt. Inside argsvalidate it would
// also see messages that argsvalidate or textcall reject.
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
