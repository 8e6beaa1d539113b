package answer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Why a step failed, or why Value has no value.
var (
	// ErrExhausted: the model did not send a valid answer in MaxAttempts, or sent
	// the same invalid one three times in a row.
	ErrExhausted = errors.New("answer: attempts exhausted")
	// ErrInvalid: the answer is invalid.
	ErrInvalid = errors.New("answer: invalid answer")
	// ErrCheck: Options.Check could not decide. It wraps the check's own error.
	ErrCheck = errors.New("answer: check failed")
)

// Error is why a step gave no valid answer. errors.Is finds ErrExhausted,
// ErrInvalid, ErrCheck and the cause in it. The ledger of the step is in
// middleware.ReportOf(nil, err).
type Error struct {
	Response *middleware.Response // the last one, as sent
	Issues   []middleware.Issue   // what is wrong with its text; nil with ErrCheck
	reasons  []error
	attempts int
}

// Error names the attempts and the codes of what is wrong, never the text of
// the answer. The text of a check's own error is as the check made it.
func (e *Error) Error() string {
	var codes []string
	for _, i := range e.Issues {
		if !slices.Contains(codes, i.Code) {
			codes = append(codes, i.Code)
		}
	}
	text := e.reasons[0].Error()
	if e.attempts > 0 {
		text += fmt.Sprintf(": still invalid after %d attempts", e.attempts)
	}
	if codes != nil {
		text += ": " + strings.Join(codes, ", ")
	}
	for _, r := range e.reasons[1:] {
		if r != ErrInvalid {
			text += ": " + r.Error()
		}
	}
	return text
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error { return e.reasons }

// ErrorType returns a word of low cardinality for labels and clients:
// rule_failed if the check could not decide, else invalid_answer.
func (e *Error) ErrorType() string {
	if slices.Contains(e.reasons, ErrCheck) {
		return "rule_failed"
	}
	return "invalid_answer"
}

// ClientMessage returns one sentence for the user of the agent, without any
// word of the model or of the check, so that a proxy may send it to any client.
func (e *Error) ClientMessage() string {
	switch {
	case slices.Contains(e.reasons, ErrCheck):
		return "the check of the answer could not decide"
	case e.attempts == 1:
		return "the model gave no valid answer (1 attempt)"
	case e.attempts > 1:
		return fmt.Sprintf("the model gave no valid answer (%d attempts)", e.attempts)
	}
	return "the model gave no valid answer"
}
