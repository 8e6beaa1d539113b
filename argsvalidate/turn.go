package argsvalidate

import (
	"context"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// Turn is the calls of one message, and what rules see beside them.
type Turn struct {
	Request *middleware.Request   // what the model was asked; its tools are those of the calls. Nil: an empty one
	Calls   []middleware.ToolCall // to be validated
	// Beside are the other calls of the message, such as those that have run:
	// siblings to rules, and not validated.
	Beside    []middleware.ToolCall
	Truncated bool // the model was cut off while it wrote the last of Calls
}

// ValidateTurn validates calls as a step does, without asking a model: after a
// person has edited them, before they run in another process, or over recorded
// logs. There is one verdict for each of t.Calls, in order; ids are left alone.
//
// The error is nil exactly when every call is valid or Verdict.Unchecked. Else
// it is an *Error with the same verdicts: ErrInvalid, or ErrRule where a rule
// could not decide, without replies then. The end of ctx is its error, with the
// *Error beside it. Calls that were not validated to the end have an issue of
// code undecided.
func (v *Validator) ValidateTurn(ctx context.Context, t Turn) ([]middleware.Verdict, error) {
	req := t.Request
	if req == nil {
		req = &middleware.Request{}
	}
	j := v.newJudgement(req, v.newToolbox(req.Tools), t.Calls)
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
		e.Replies = v.replies(ctx, j, 1, false)
		return j.verdicts, e
	}
	return j.verdicts, nil
}

// Validate is ValidateTurn for calls of one message without a conversation: the
// request that rules see holds the tools, and nothing else.
func (v *Validator) Validate(ctx context.Context, tools []middleware.Tool, calls ...middleware.ToolCall) ([]middleware.Verdict, error) {
	return v.ValidateTurn(ctx, Turn{Request: &middleware.Request{Tools: tools}, Calls: calls})
}

// Inspect says how calls to tool will be validated: whether against a schema,
// and what an operator should know about it, such as why it cannot be used,
// that it was read leniently, which keyword is not checked, or that a FieldRule
// for this tool has a path that the schema does not declare.
func (v *Validator) Inspect(tool middleware.Tool) (validated bool, notes []string) {
	p := v.plan(&tool)
	return p.compiled.schema != nil, append(p.notes(), v.undeclaredPaths(p)...)
}
