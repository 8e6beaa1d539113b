package middleware

// Event is a part of a step's output that is streamed to the caller before the
// step ends. Its JSON form is stable.
type Event struct {
	Kind EventKind `json:"kind"`
	Step int       `json:"step"` // from 1 in an agent run, 0 outside
	Text string    `json:"text,omitempty"`
	Call *ToolCall `json:"call,omitempty"`
}

// EventKind says what an Event holds.
type EventKind string

// The kinds of events.
const (
	EventText      EventKind = "text"      // a piece of the answer
	EventReasoning EventKind = "reasoning" // a piece of the model's reasoning
	EventReset     EventKind = "reset"     // discard all output that was streamed in this step so far
	EventToolCall  EventKind = "tool_call" // a complete, valid call
)

// Sink receives a stream in order, on one goroutine at a time. If it returns
// an error, the step ends with that error.
type Sink func(Event) error
