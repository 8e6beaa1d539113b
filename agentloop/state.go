package agentloop

import (
	"crypto/rand"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// The versions of State's JSON form. Version 1 stored every result twice, in
// Messages and in Results; version 2 refers to the message.
const (
	firstVersion = 1
	stateVersion = 2
)

// State is a run: the conversation, the calls that wait for results, and the
// usage. Its JSON form contains all of that, so a run can continue in
// another process. It does not contain Sink and the side values of results.
// A State belongs to one run at a time.
//
// The JSON form is opaque: store it and read it back through this type, and
// do not read or edit its members. It has a version. If a newer version of
// this package wrote it, reading it fails with ErrVersion.
type State struct {
	Version  int                  `json:"version"`
	RunID    string               `json:"run_id"` // part of every idempotency key; with "" the keys are unique only within the run
	Messages []middleware.Message `json:"messages"`
	Steps    []StepRecord         `json:"steps,omitzero"`
	Results  []ToolResult         `json:"results,omitzero"`  // of every call that has one, in order
	Failures int                  `json:"failures,omitzero"` // failed turns in a row
	Failed   []string             `json:"failed,omitzero"`   // hashes of their invalid calls, to detect a model that makes no progress
	Usage    middleware.Usage     `json:"usage,omitzero"`    // of every model call, hidden ones included
	// Sink gets the events of every model step, with the number of the step from
	// 1. If a model step is repeated after an error, EventReset comes first. nil
	// means that nothing is streamed.
	Sink middleware.Sink `json:"-"`

	turn    []turnCall // the calls of the last message, until all have a result
	made    int        // model steps of the run in hand
	shown   int        // the model step of the last event
	journal *journal   // where SaveFile has saved it
	live    *live      // nil: a program may have changed the State
}

// live is a State that only the loop changes at the moment: it appends messages,
// steps and results. So neither a request nor a save has to look at all of them.
type live struct {
	state  *State               // a copy of the State is not live
	sent   []middleware.Message // the messages of the template, and the messages of the State that were in a request
	sound  int                  // so many messages need no repair
	ids    map[string]bool      // of the calls in the messages that were seen
	seen   int                  // so many messages
	saving bool                 // Options.Checkpoint runs
}

// enter makes s live, and leave ends that. The array of its messages is then its
// own, because a program may have copied the State.
func (s *State) enter() {
	s.live = &live{state: s}
	s.Messages = slices.Clip(s.Messages)
	s.changed()
}

func (s *State) leave() { s.live = nil }

// changed notes that messages may have changed, other than by further ones.
func (s *State) changed() {
	if s.journal != nil {
		s.journal.known = extent{}
	}
	if s.live != nil {
		*s.live = live{state: s.live.state}
	}
}

// StepRecord describes one model step. A step that ended the run with an error has
// no record; its usage is in State.Usage.
type StepRecord struct {
	Model    string            `json:"model,omitzero"`
	Attempts int               `json:"attempts"` // model calls, hidden ones included
	Status   middleware.Status `json:"status,omitzero"`
	Usage    middleware.Usage  `json:"usage,omitzero"`
}

// turnCall is a call of the turn in hand.
type turnCall struct {
	Call     middleware.ToolCall `json:"call"` // as it will run, or ran
	Raw      raw                 `json:"raw"`  // the arguments as the model wrote them
	Changes  []middleware.Change `json:"changes,omitzero"`
	Notes    []string            `json:"notes,omitzero"` // what rules remarked, for who approves it
	Status   callStatus          `json:"status"`
	Reason   string              `json:"reason,omitzero"`   // why it waits
	Problem  string              `json:"problem,omitzero"`  // why it waits again, or could not run
	Decided  bool                `json:"decided,omitzero"`  // a person has seen these very arguments, or answered the call
	Edited   bool                `json:"edited,omitzero"`   // by a person, and not validated since
	Rejected bool                `json:"rejected,omitzero"` // by a person
	Result   Result              `json:"result,omitzero"`   // where Status is callDone

	// What the call's tool was marked with when the call was validated, so that the
	// loop does not depend on the tools of the process in which it continues.
	Serial bool   `json:"serial,omitzero"`
	Direct bool   `json:"direct,omitzero"`
	Once   bool   `json:"once,omitzero"`
	Pure   bool   `json:"pure,omitzero"`
	Schema string `json:"schema,omitzero"` // hash

	Started bool `json:"started,omitzero"` // of a Once call: its tool may have begun
	Checked bool `json:"checked,omitzero"` // in this run
}

// mark notes the marks of the call's tool.
func (c *turnCall) mark(t Tool) {
	c.Serial, c.Direct, c.Once, c.Pure, c.Schema = t.Serial, t.ReturnDirect, t.AtMostOnce, t.Pure, t.schemaHash()
}

// callStatus is the progress of a call of the turn.
type callStatus string

// The statuses of a call.
const (
	callReady   callStatus = "ready"   // it may run
	callWaiting callStatus = "waiting" // for a decision
	callDone    callStatus = "done"    // it has its result
)

// ToolResult is a Result and its call.
type ToolResult struct {
	Call    middleware.ToolCall `json:"call"` // as it ran
	Raw     string              `json:"raw"`  // the arguments as the model wrote them
	Changes []middleware.Change `json:"changes,omitzero"`
	Turn    int                 `json:"turn"` // the model step with the call, from 1; 0 for a call in the messages that the run started with
	// Rejected means that a person rejected the call. The result is then not an
	// error.
	Rejected bool `json:"rejected,omitzero"`
	Result
}

// NewState returns a State with these messages and a random RunID.
func NewState(msgs ...middleware.Message) *State {
	return &State{Version: stateVersion, RunID: rand.Text(), Messages: slices.Clone(msgs)}
}

// Append adds messages, such as the next question of a person. If calls wait
// for results, it changes nothing and returns ErrPending.
func (s *State) Append(msgs ...middleware.Message) error {
	if n := len(s.Messages); len(s.turn) > 0 || n > 0 && len(s.Messages[n-1].ToolCalls) > 0 {
		return ErrPending
	}
	s.Messages = append(s.Messages, msgs...)
	return nil
}

// Answer returns the text of the last assistant message, or "" if there is
// none. It skips the texts of failed turns, which a middleware such as
// textcall could not read.
func (s *State) Answer() string {
	failed := s.Failures
	for i, m := range slices.Backward(s.Messages) {
		if m.Role != middleware.RoleAssistant {
			continue
		}
		told := i+1 < len(s.Messages) && s.Messages[i+1].Role == middleware.RoleUser
		if failed == 0 || len(m.ToolCalls) > 0 || !told {
			return m.Text()
		}
		failed--
	}
	return ""
}

// Value returns the last side value of type T in the results of s.
func Value[T any](s *State) (T, bool) {
	for _, r := range slices.Backward(s.Results) {
		if v, ok := r.Value.(T); ok {
			return v, true
		}
	}
	var zero T
	return zero, false
}

// check returns an error that wraps ErrState if s cannot have been written by
// this package, because a stored state may be damaged or forged. The calls
// themselves are validated when they run.
func (s *State) check() error {
	if s.Failures < 0 {
		return fmt.Errorf("%w: failures is %d", ErrState, s.Failures)
	}
	if len(s.turn) == 0 {
		return nil
	}
	last := s.Messages[len(s.Messages)-1]
	if last.Role != middleware.RoleAssistant || len(last.ToolCalls) != len(s.turn) {
		return fmt.Errorf("%w: the turn has %d calls, which are not those of the last message", ErrState, len(s.turn))
	}
	ids := make(map[string]bool, len(s.turn))
	for i, c := range s.turn {
		id := c.Call.ID
		switch {
		case id == "" || ids[id] || last.ToolCalls[i].ID != id:
			return fmt.Errorf("%w: the id of call %d is missing, repeated or not that of the last message", ErrState, i)
		case c.Status != callReady && c.Status != callWaiting && c.Status != callDone:
			return fmt.Errorf("%w: the status of call %q is unknown", ErrState, id)
		case c.Edited && !c.endsInEdit():
			return fmt.Errorf("%w: call %q is edited, but its last change is not an edit that leads to its arguments", ErrState, id)
		}
		ids[id] = true
	}
	return nil
}

// endsInEdit reports whether the arguments of the call are what State.Edit made
// of them.
func (c *turnCall) endsInEdit() bool {
	if len(c.Changes) == 0 {
		return false
	}
	last := c.Changes[len(c.Changes)-1]
	return last.By == byEdit && last.Pointer == "" && last.After == c.Call.Arguments
}
