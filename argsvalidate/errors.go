package argsvalidate

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Why a step or a validation failed.
var (
	// ErrExhausted: the model did not send a valid message in MaxAttempts.
	ErrExhausted = errors.New("argsvalidate: attempts exhausted")
	// ErrRepeated: three invalid answers in a row brought nothing that had not
	// failed before, so no further attempt was made. The answers of earlier steps
	// of an agent loop count. It comes with ErrExhausted.
	ErrRepeated = errors.New("argsvalidate: the same invalid calls again")
	// ErrNoCall: the request demands a tool call, and the model sent none. It comes
	// with ErrExhausted.
	ErrNoCall = errors.New("argsvalidate: the request demands a tool call, and the model sent none")
	// ErrInvalid: a call is invalid.
	ErrInvalid = errors.New("argsvalidate: invalid tool call")
	// ErrRule: a rule could not decide. It wraps the rule's own error.
	ErrRule = errors.New("argsvalidate: rule failed")
)

// Error is why a step gave no valid response, or why calls are not valid.
// errors.Is finds ErrExhausted, ErrRepeated, ErrNoCall, ErrInvalid, ErrRule and the cause
// in it. The ledger of a step is in middleware.ReportOf(nil, err).
type Error struct {
	// Response is the last one, as sent; nil if there is none. Under
	// batch.KeepValid it is the held batch, with the calls that were corrected.
	Response *middleware.Response
	Verdicts []middleware.Verdict // on its calls, in order
	Replies  []middleware.Message // what the model would be told next, one for each call within Limits.Calls
	reasons  []error
	attempts int
	plans    []plan // of the tool of each verdict: the name of one that is not declared is the model's own words
}

// failure returns the Error with the verdicts of j.
func (j *judgement) failure(reasons ...error) *Error {
	return &Error{Verdicts: j.verdicts, reasons: reasons, plans: slices.Clone(j.tools)}
}

// maxNamed is how many calls an error text names.
const maxNamed = 10

// Error names the attempts, the tools and the codes of what is wrong; never
// arguments, and of the name of a tool that nobody declared only that. The text
// of a rule's own error is as the rule made it.
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

// ErrorType returns a word of low cardinality for labels and clients:
// rule_failed if a rule could not decide, else invalid_tool_call.
func (e *Error) ErrorType() string {
	if slices.Contains(e.reasons, ErrRule) {
		return "rule_failed"
	}
	return "invalid_tool_call"
}

// ForCall returns the error for the n-th of its calls alone.
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
