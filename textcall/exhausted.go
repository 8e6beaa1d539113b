package textcall

import (
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/internal/repeat"
	"github.com/toolmend/toolmend/middleware"
)

// OnExhausted says what happens to a text that cannot be used when no attempt
// is left.
type OnExhausted uint8

// What may happen.
const (
	// Pass returns the message as it was sent, with a note. If the text could
	// not be read, Report.Status is middleware.Invalid and the sink does not get
	// the text: it is not an answer. A text that can be read, but uses no tool or
	// another one where Request demanded a tool, passes as what it says.
	Pass OnExhausted = iota
	// Raise returns an *Error.
	Raise
)

// Why a step has failed.
var (
	// ErrExhausted: the model wrote no text that can be used in MaxAttempts.
	ErrExhausted = errors.New("textcall: attempts exhausted")
	// ErrRepeated: three texts in a row brought nothing that had not failed
	// before. Failures of earlier steps of an agent's run count. It comes with
	// ErrExhausted.
	ErrRepeated = errors.New("textcall: the same text again")
)

// Error is why a step gave no response under Raise. errors.Is finds
// ErrExhausted and ErrRepeated in it. The ledger of the step is in
// middleware.ReportOf(nil, err).
type Error struct {
	Response *middleware.Response // the last one, as sent
	Replies  []middleware.Message // what the model would be told next: one message
	wrong    string
	attempts int
	repeated bool
}

// Error says what is wrong with the last text, without quoting it.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v after %d: the last text could not be used: %s", ErrExhausted, e.attempts, e.wrong)
	if e.repeated {
		text += ": " + ErrRepeated.Error()
	}
	return text
}

// Unwrap returns the reasons.
func (e *Error) Unwrap() []error {
	if e.repeated {
		return []error{ErrExhausted, ErrRepeated}
	}
	return []error{ErrExhausted}
}

// ErrorType returns a word of low cardinality for labels and clients:
// invalid_tool_call.
func (e *Error) ErrorType() string { return "invalid_tool_call" }

// ClientMessage returns a sentence for the user of a client.
func (e *Error) ClientMessage() string {
	return fmt.Sprintf("the model wrote neither a tool call that can be read nor an answer, in %d attempts", e.attempts)
}

// over reports whether the model is not asked again, and whether that is because
// it makes no progress: its texts, those of earlier steps of an agent's run
// included, bring nothing that did not fail before. White space makes no
// difference.
func (s *step) over(text string, attempt int) (over, repeated bool) {
	repeated = s.failures.Failed(repeat.Text(text)) >= repeat.Hopeless && attempt < s.most
	return repeated || attempt >= s.most, repeated
}

// exhausted does what OnExhausted says.
func (s *step) exhausted(h *held, resp *middleware.Response, r reading, wrong string, attempt int, repeated bool) (*middleware.Response, error) {
	s.tally.SetIssues(issue(r, wrong), nil, nil)
	if s.onExhausted == Raise {
		return s.tally.Finish(nil, &Error{Response: resp, Replies: []middleware.Message{s.reply(wrong)}, wrong: wrong, attempts: attempt, repeated: repeated})
	}
	again := ""
	if repeated {
		again = ", because the model repeated itself"
	}
	if r.kind != isFault {
		s.tally.Note(fmt.Sprintf("textcall: passed on after attempt %d%s, although %s", attempt, again, wrong))
		return s.finish(h, resp, r)
	}
	s.tally.Note(fmt.Sprintf("textcall: marked invalid after attempt %d%s: %s", attempt, again, wrong))
	out := *resp
	out.Report.Status = middleware.Invalid
	return s.tally.Finish(&out, nil)
}
