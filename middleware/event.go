package middleware

// Event is one thing that a step lets its caller see early. Its JSON form is
// stable.
type Event struct {
	Kind EventKind `json:"kind"`
	Step int       `json:"step"` // from 1 in an agent run, 0 outside
	Text string    `json:"text,omitempty"`
	Call *ToolCall `json:"call,omitempty"`
}

// EventKind says what happened.
type EventKind string

// The kinds of events.
const (
	EventText      EventKind = "text"      // a piece of the answer
	EventReasoning EventKind = "reasoning" // a piece of the model's reasoning
	EventReset     EventKind = "reset"     // discard all output that was streamed in this step so far
	EventToolCall  EventKind = "tool_call" // whole and valid
)

// Sink receives a stream in order, on one goroutine at a time. An error from
// it ends the step with that error.
type Sink func(Event) error
