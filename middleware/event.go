package middleware

import "encoding/json"

// Event is one thing that a step lets its caller see early. Its JSON form is
// stable.
type Event struct {
	Kind EventKind `json:"kind"`
	Step int       `json:"step"` // from 1 in an agent run, 0 outside
	Text string    `json:"text,omitempty"`
	Call *ToolCall `json:"call,omitempty"`
}

type eventJSON struct {
	Kind EventKind `json:"kind"`
	Step int       `json:"step"`
	Text text      `json:"text,omitempty"`
	Call *ToolCall `json:"call,omitempty"`
}

// MarshalJSON keeps text that is not UTF-8: a piece may end inside a letter.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(eventJSON{e.Kind, e.Step, text(e.Text), e.Call})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (e *Event) UnmarshalJSON(b []byte) error {
	var v eventJSON
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	*e = Event{v.Kind, v.Step, string(v.Text), v.Call}
	return nil
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
