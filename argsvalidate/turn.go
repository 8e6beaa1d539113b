package argsvalidate

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// Turn is the calls of one message, with their context for rules.
type Turn struct {
	Request *middleware.Request   // the request that the model received, with the tools of the calls; nil means an empty request
	Calls   []middleware.ToolCall // the calls to validate
	// Beside holds the other calls of the message, such as those that have
	// run. Rules see them as siblings. They are not validated.
	Beside    []middleware.ToolCall
	Truncated bool // the model was cut off while it wrote the last of Calls
	// NoReplies leaves Error.Replies nil. Set it if you do not read them: writing
	// the replies takes longer than validating the calls.
	NoReplies bool
}

// ValidateTurn validates calls as a step does, without calling a model: after
// a person has edited them, before they run in another process, or for
// recorded logs. There is one verdict for each of t.Calls, in order. Ids are
// not changed.
//
// The error is nil exactly when every call is valid or Verdict.Unchecked.
// Otherwise it is an *Error with the same verdicts, and with ErrInvalid, or
// with ErrRule and without replies if a rule could not decide. If ctx ends,
// the error wraps both the context's error and an *Error, and the calls that
// were not validated to the end have an issue with the code undecided.
func (v *Validator) ValidateTurn(ctx context.Context, t Turn) ([]middleware.Verdict, error) {
	req := t.Request
	if req == nil {
		req = &middleware.Request{}
	}
	known := v.newToolbox(req)
	j := v.newValidation(req, &known, t.Calls)
	j.held = t.Beside
	err := j.validate(ctx, t.Truncated)
	if err == nil {
		err = j.rules(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return j.verdicts, fmt.Errorf("argsvalidate: %w: %w", err, j.failure(ErrInvalid))
	case err != nil:
		return j.verdicts, j.failure(ErrRule, err)
	case j.invalid():
		e := j.failure(ErrInvalid)
		if !t.NoReplies {
			e.Replies = v.replies(ctx, &j, 1, false)
		}
		return j.verdicts, e
	}
	return j.verdicts, nil
}

// Validate is ValidateTurn for the calls of one message without a
// conversation: the request that rules see holds only the tools.
func (v *Validator) Validate(ctx context.Context, tools []middleware.Tool, calls ...middleware.ToolCall) ([]middleware.Verdict, error) {
	return v.ValidateTurn(ctx, Turn{Request: &middleware.Request{Tools: tools}, Calls: calls})
}

// Inspect reports how calls to tool will be validated: whether against a
// schema (without one every JSON object is valid), and remarks for an operator. A remark says, for example, why the
// schema cannot be used, that it was read leniently, which keyword is not
// checked, or that the path of a FieldRule for this tool is not declared.
func (v *Validator) Inspect(tool middleware.Tool) (validated bool, notes []string) {
	p := v.plan(&tool)
	return p.compiled.schema != nil, append(p.notes(), v.undeclaredPaths(p)...)
}
