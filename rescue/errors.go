package rescue

import (
	"errors"

	"github.com/toolmend/toolmend/middleware"
)

// ErrExhausted means that the text of the last attempt holds a call that is not certain.
var ErrExhausted = errors.New("rescue: attempts exhausted: the text holds a tool call that is not certain")

// Error reports why a step has no response. errors.Is finds ErrExhausted in it.
// middleware.ReportOf(nil, err) returns the report of the step.
type Error struct {
	Response *middleware.Response // the last response, as sent
	Issue    middleware.Issue     // why the call in its text is not certain
}

// Error returns the code of the issue. It contains no text of the model.
func (e *Error) Error() string { return ErrExhausted.Error() + ": " + e.Issue.Code }

// Unwrap returns ErrExhausted.
func (e *Error) Unwrap() error { return ErrExhausted }

// UnreadResponse returns Response: its text could not be used. Package agentloop looks for it.
func (e *Error) UnreadResponse() *middleware.Response { return e.Response }

// ErrorType returns a word for metric labels and clients: invalid_tool_call.
func (e *Error) ErrorType() string { return "invalid_tool_call" }

// ClientMessage returns one sentence for the user of the agent.
func (e *Error) ClientMessage() string {
	return "the model wrote a tool call as text that cannot be read with certainty (" + e.Issue.Code + ")"
}
