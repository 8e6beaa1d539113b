package argsvalidate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Reasons why a step or a validation failed.
var (
	// ErrExhausted: the model sent no valid message in MaxAttempts attempts.
	ErrExhausted = errors.New("argsvalidate: attempts exhausted")
	// ErrRepeated: three invalid responses in a row repeated earlier failures,
	// so no further attempt was made. Responses of earlier steps of an agent
	// loop count. It comes with ErrExhausted.
	ErrRepeated = errors.New("argsvalidate: the same invalid calls again")
	// ErrNoCall: the request demands a tool call, and the model sent none. It
	// comes with ErrExhausted.
	ErrNoCall = errors.New("argsvalidate: the request demands a tool call, and the model sent none")
	// ErrInvalid: a call is invalid.
	ErrInvalid = errors.New("argsvalidate: invalid tool call")
	// ErrRule: a rule could not decide. The error also wraps the rule's own
	// error.
	ErrRule = errors.New("argsvalidate: rule failed")
)

// Error reports why a step has no valid response, or which calls are invalid.
// errors.Is finds ErrExhausted, ErrRepeated, ErrNoCall, ErrInvalid, ErrRule
// and the cause in it. middleware.ReportOf(nil, err) returns the report of the
// step.
type Error struct {
	// Response is the last response, as sent; nil if there is none. With
	// batch.KeepValid it is the held batch, with the corrected calls.
	Response *middleware.Response
	Verdicts []middleware.Verdict // on the calls of Response, in order
	Replies  []middleware.Message // the replies that a re-ask would send, one for each call within Limits.Calls; nil with Turn.NoReplies
	reasons  []error
	attempts int
	plans    []plan // of the tool of each verdict; an undeclared name is the model's own text
}

// failure returns an Error with the verdicts of j.
func (j *validation) failure(reasons ...error) *Error {
	return &Error{Verdicts: j.verdicts, reasons: reasons, plans: slices.Clone(j.tools)}
}

// maxNamed is the number of calls that an error text names.
const maxNamed = 10

// Error returns the number of attempts, the tool names and the issue codes. It
// contains no arguments and no names of undeclared tools. It contains the text
// of a rule's own error unchanged.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.reasons[0].Error())
	if e.attempts > 0 {
		fmt.Fprintf(&b, ": arguments still invalid after %d attempts", e.attempts)
	}
	named := 0
	for n, v := range e.Verdicts {
		if v.OK() || e.reasons[0] == ErrRule {
			continue
		}
		if named++; named > maxNamed {
			b.WriteString("; and more")
			break
		}
		var codes []string
		for _, i := range v.Issues {
			if !slices.Contains(codes, i.Code) {
				codes = append(codes, i.Code)
			}
		}
		fmt.Fprintf(&b, "; %s: %s", e.toolName(n), strings.Join(codes, ", "))
	}
	for _, r := range e.reasons[1:] {
		if r != ErrInvalid && r != ErrExhausted {
			b.WriteString(": " + r.Error())
		}
	}
	return b.String()
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error { return e.reasons }

// ErrorType returns a word for metric labels and clients: rule_failed if a
// rule could not decide, else invalid_tool_call.
func (e *Error) ErrorType() string {
	if slices.Contains(e.reasons, ErrRule) {
		return "rule_failed"
	}
	return "invalid_tool_call"
}

// ForCall returns the error for the n-th call alone.
func (e *Error) ForCall(n int) *Error {
	one := &Error{Response: e.Response, Verdicts: e.Verdicts[n : n+1 : n+1], reasons: e.reasons, attempts: e.attempts}
	if n < len(e.Replies) {
		one.Replies = e.Replies[n : n+1 : n+1]
	}
	if n < len(e.plans) {
		one.plans = e.plans[n : n+1 : n+1]
	}
	return one
}
