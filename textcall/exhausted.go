package textcall

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// Reasons why a step failed.
var (
	// ErrExhausted: the model wrote no usable text in MaxAttempts attempts.
	ErrExhausted = errors.New("textcall: attempts exhausted")
	// ErrRepeated: three texts in a row repeated earlier failures, so no further
	// attempt was made. Failures of earlier steps of an agent's run count. It
	// comes with ErrExhausted.
	ErrRepeated = errors.New("textcall: the same text again")
)

// Error reports why a step has no response. errors.Is finds ErrExhausted and
// ErrRepeated in it. middleware.ReportOf(nil, err) returns the report of the step.
type Error struct {
	Response *middleware.Response // the last response, as sent
	Replies  []middleware.Message // the reply that a re-ask would send: one message
	problem  string
	attempts int
	repeated bool
}

// Error returns the reason why the last text could not be used. It does not quote the text.
func (e *Error) Error() string {
	text := fmt.Sprintf("%v after %d: the last text could not be used: %s", ErrExhausted, e.attempts, e.problem)
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

// UnreadResponse returns Response: its text could not be used. Package agentloop looks for it.
func (e *Error) UnreadResponse() *middleware.Response { return e.Response }

// ErrorType returns a word for metric labels and clients: invalid_tool_call.
func (e *Error) ErrorType() string { return "invalid_tool_call" }

// ClientMessage returns one sentence for the user of the agent.
func (e *Error) ClientMessage() string {
	return fmt.Sprintf("the model wrote neither a tool call that can be read nor an answer, in %d attempts", e.attempts)
}

// exhausted does what OnExhausted selects.
func (s *textStep) exhausted(ctx context.Context, h *eventBuffer, resp *middleware.Response, r reading, problem string, attempt int, repeated bool) (*middleware.Response, error) {
	s.tally.SetIssues(issue(r, problem), nil, nil)
	if s.onExhausted.Raises(s.req) {
		return s.tally.Finish(nil, &Error{Response: resp, Replies: []middleware.Message{s.reply(problem)}, problem: problem, attempts: attempt, repeated: repeated})
	}
	again := ""
	if repeated {
		again = ", because the model repeated itself"
	}
	if r.kind == isCall {
		s.tally.Note(fmt.Sprintf("textcall: passed on after attempt %d%s, although %s", attempt, again, problem))
		return s.finish(h, resp, r)
	}
	s.tally.Note(fmt.Sprintf("textcall: marked invalid after attempt %d%s: %s", attempt, again, problem))
	out := *resp
	out.Report.Status = middleware.Invalid
	if r.kind == isAnswer { // it can be read, and it is not the call that the request demands
		return s.finish(h, &out, r)
	}
	return s.tally.Finish(&out, nil)
}
