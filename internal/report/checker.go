package report

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/mend"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/strip"
)

// Checker gives each call its two verdicts: as sent, and final, after the
// repairs. It is safe for concurrent use. It keeps compiled schemas, so one
// Checker serves a whole program.
type Checker struct {
	sent, final *argsvalidate.Validator
}

// NewChecker returns a Checker. o are the options for the final verdict. The
// verdict as sent is given by the same options without any repair, so that a
// difference between the two always comes from a repair. NewChecker panics if
// o.Validate fails.
func NewChecker(o argsvalidate.Options) *Checker {
	final := argsvalidate.NewValidator(o)
	o.Strip, o.Mend, o.Fixers, o.Placeholders = strip.Off, mend.Off(), nil, nil
	return &Checker{sent: argsvalidate.NewValidator(o), final: final}
}

// Check is CheckTurn for calls of which only the tools that the model had are known.
func (j *Checker) Check(ctx context.Context, tools []middleware.Tool, finish middleware.FinishReason, calls ...middleware.ToolCall) ([]Call, error) {
	return j.CheckTurn(ctx, &middleware.Request{Tools: tools}, finish, calls...)
}

// CheckTurn validates the calls of one assistant message, the answer to req. finish is
// the message's finish reason: a message that was cut off has a truncated last call.
// The error is the error of ctx, or of a rule that could not decide.
func (j *Checker) CheckTurn(ctx context.Context, req *middleware.Request, finish middleware.FinishReason, calls ...middleware.ToolCall) ([]Call, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	final, err := validate(ctx, j.final, req, finish, calls)
	if err != nil {
		return nil, err
	}
	sent := final
	if slices.ContainsFunc(final, func(v middleware.Verdict) bool { return !v.OK() || len(v.Changes) > 0 }) {
		if sent, err = validate(ctx, j.sent, req, finish, calls); err != nil {
			return nil, err
		}
	}
	out := make([]Call, len(calls))
	for i, c := range calls {
		out[i] = j.call(req.Tools, i, c, sent[i], final[i])
	}
	return out, nil
}

// call joins the two verdicts of a call.
func (j *Checker) call(tools []middleware.Tool, i int, c middleware.ToolCall, sent, final middleware.Verdict) Call {
	reason, note := j.unchecked(tools, c)
	finalReason, ran := reason, final.Call
	if ran.Name != c.Name || ran.Kind != c.Kind { // a repaired name has a tool
		finalReason, _ = j.unchecked(tools, ran)
	}
	switch {
	case final.Announced:
		reason, finalReason = Announced, Announced
	case final.Unchecked && reason == "" && several(tools, c.Name):
		reason, finalReason, note = BadSchema, BadSchema, "several tools have this name, with different schemas"
	}
	c.Native, ran.Native = nil, nil
	return Call{
		Index: i, Sent: c, Ran: ran, Note: note,
		AsSent: verdictOf(sent, reason), Issues: sent.Issues,
		Final: verdictOf(final, finalReason), FinalIssues: final.Issues, Changes: final.Changes,
	}
}

// validate calls a Validator. The Validator does not see the response: if the
// response was cut off, validate marks its last call as truncated. That call may be
// valid JSON by chance, but it is not known to be what the model wanted to write. A call
// in a form of its own is text, and cannot be told from a whole one.
func validate(ctx context.Context, v *argsvalidate.Validator, req *middleware.Request, finish middleware.FinishReason, calls []middleware.ToolCall) ([]middleware.Verdict, error) {
	got, err := v.ValidateTurn(ctx, argsvalidate.Turn{Request: req, Calls: calls, NoReplies: true})
	if err != nil && !errors.Is(err, argsvalidate.ErrInvalid) {
		return nil, err
	}
	if last := len(got) - 1; finish == middleware.FinishLength && calls[last].Kind == middleware.KindFunction {
		got[last] = middleware.Verdict{Call: calls[last], Issues: []middleware.Issue{{
			Code: string(Truncated), Message: "the answer reached its length limit in this call",
		}}}
	}
	return got, nil
}

// unchecked returns why calls like c are not validated: NoSchema, or BadSchema
// and a note. It returns "" if they are.
func (j *Checker) unchecked(tools []middleware.Tool, c middleware.ToolCall) (Verdict, string) {
	for _, t := range tools {
		if t.Name != c.Name || t.Kind == middleware.KindHosted || c.Namespace != "" && t.Namespace != "" && t.Namespace != c.Namespace {
			continue
		}
		if len(t.Parameters) == 0 || c.Kind != middleware.KindFunction {
			return NoSchema, ""
		}
		if validated, notes := j.final.Inspect(t); !validated {
			return BadSchema, strings.Join(notes, "; ")
		}
		return "", ""
	}
	return NoSchema, "" // an unknown tool, with argsvalidate.PassUnknown
}

// Exact reports whether calls of a tool are validated by its schema exactly as it is
// written: it was not read leniently, and nothing in it is left out.
func (j *Checker) Exact(tool middleware.Tool) bool {
	validated, notes := j.final.Inspect(tool)
	return validated && len(notes) == 0
}

// several reports whether the model had more than one tool of that name.
func several(tools []middleware.Tool, name string) bool {
	n := 0
	for _, t := range tools {
		if t.Name == name && t.Kind != middleware.KindHosted {
			n++
		}
	}
	return n > 1
}
