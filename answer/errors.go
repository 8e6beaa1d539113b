package answer

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Reasons why a step failed, or why Value returns no value.
var (
	// ErrExhausted: the model sent no valid answer in MaxAttempts attempts, or
	// the same invalid answer three times in a row.
	ErrExhausted = errors.New("answer: attempts exhausted")
	// ErrInvalid: the answer is invalid.
	ErrInvalid = errors.New("answer: invalid answer")
	// ErrCheck: Options.Check could not decide. The error also wraps the error
	// of Check.
	ErrCheck = errors.New("answer: check failed")
)

// Error reports why a step has no valid answer. errors.Is finds ErrExhausted,
// ErrInvalid, ErrCheck and the cause in it. middleware.ReportOf(nil, err)
// returns the report of the step.
type Error struct {
	Response *middleware.Response // the last response, as sent
	Issues   []middleware.Issue   // the issues of its text; nil with ErrCheck
	reasons  []error
	attempts int
}

// Error returns the number of attempts and the issue codes. It never contains
// the text of the answer. It contains the text of Check's error unchanged.
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

// ErrorType returns a word for metric labels and clients: rule_failed if Check
// could not decide, else invalid_answer.
func (e *Error) ErrorType() string {
	if slices.Contains(e.reasons, ErrCheck) {
		return "rule_failed"
	}
	return "invalid_answer"
}

// ClientMessage returns one sentence for the user of the agent. It contains no
// text of the model or of Check, so a proxy may send it to any client.
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
