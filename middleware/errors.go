package middleware

import (
	"errors"
	"strconv"
	"time"
)

// ErrInvalidToolCall marks a ModelError in which the provider itself refused
// the tool call that the model wrote (Groq's tool_use_failed, the parse errors of
// Ollama and llama.cpp), or could not read it (Gemini's MALFORMED_FUNCTION_CALL, also
// through routers in other formats; then ModelError.Response is the answer).
// argsvalidate re-asks on this error. Other middlewares must not retry it.
var ErrInvalidToolCall = errors.New("middleware: provider refused the model's tool call")

// ErrInvalidHistory marks a ModelError in which the provider refused the
// request because the arguments of a tool call in its history are not a JSON
// object. The same request would fail again: package retry does not retry it,
// and package transport sends it once more with those arguments replaced.
var ErrInvalidHistory = errors.New("middleware: provider refused a tool call in the history")

// ErrUnencodable means that a provider's format has no place for a change of a request or of an
// answer. Nothing was sent.
var ErrUnencodable = errors.New("wire: change has no place in this format")

// ErrNotSent means that a middleware did not make a model call, because a limit allows no more of
// them. package heal returns the provider's refusal then.
var ErrNotSent = errors.New("middleware: model call was not made")

// ErrBudget means that a budget of the program is exceeded. It ends a step with every
// OnExhausted: a program that sets a budget wants to know.
var ErrBudget = errors.New("middleware: budget exceeded")

// ErrNoResponse is the error that Tally.Call returns if a model call returned
// neither a response nor an error.
var ErrNoResponse = errors.New("middleware: model call returned neither a response nor an error")

// ModelError is a provider's error response in a neutral form. Adapters return
// it; package retry reads it.
type ModelError struct {
	StatusCode int           // HTTP status; 0 if there was none
	Code       string        // the provider's own code, such as rate_limit_exceeded
	RetryAfter time.Duration // how long the provider asked to wait; 0 if it did not say
	Output     string        // the output of the model that the provider refused, if the provider quotes it
	Err        error         // the adapter's own error
	// Response is the answer of a provider that could not read the tool call in it, and says so in
	// the finish reason; nil for any other error. Its Report.Status is Invalid.
	Response *Response
	Message  string // what the provider said, cut at 16 KiB; it may quote the request, so Error leaves it out
}

// Error returns the status, the code and the text of Err. It never contains
// Output or Message.
func (e *ModelError) Error() string {
	s := "middleware: model error"
	if e.StatusCode != 0 {
		s += ": status " + strconv.Itoa(e.StatusCode)
	}
	if e.Code != "" {
		s += ": " + e.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *ModelError) Unwrap() error { return e.Err }

// stepError carries the report of a failed step in its error. ReportOf finds
// it through any depth of wrapping.
type stepError struct {
	err    error
	report Report
}

func (e *stepError) Error() string { return e.err.Error() }
func (e *stepError) Unwrap() error { return e.err }
