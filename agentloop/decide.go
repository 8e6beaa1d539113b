package agentloop

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Pending is a valid call that waits.
type Pending struct {
	Call   middleware.ToolCall // what runs if it is approved, byte for byte
	Reason string              // "approval", or what the tool said when it suspended itself
}

const reasonApproval = "approval"

// Pending returns the calls that wait for a decision, in call order.
func (s *State) Pending() []Pending {
	var waiting []Pending
	for _, c := range s.Turn {
		if c.Status == Waiting {
			waiting = append(waiting, Pending{c.Call, c.Reason})
		}
	}
	return waiting
}

func (s *State) waiting(callID string) (*TurnCall, error) {
	i := slices.IndexFunc(s.Turn, func(c TurnCall) bool { return c.Call.ID == callID })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%w: %q", ErrUnknownCall, callID)
	case s.Turn[i].Status != Waiting:
		return nil, fmt.Errorf("%w: %q", ErrDecided, callID)
	}
	return &s.Turn[i], nil
}

// Approve lets a pending call run. The errors are ErrUnknownCall and
// ErrDecided, of this method and of the others that decide.
func (s *State) Approve(callID string) error {
	c, err := s.waiting(callID)
	if err != nil {
		return err
	}
	c.Status, c.Reason, c.Decided = Ready, "", true
	return nil
}

// Edit lets a pending call run with other arguments. They are validated when
// the run goes on; invalid ones make the call wait again, and the run returns
// the reason beside ErrPending. What runs stands in the history.
func (s *State) Edit(callID, arguments string) error {
	c, err := s.waiting(callID)
	if err != nil {
		return err
	}
	c.Changes = append(c.Changes, middleware.Change{By: "edit", Before: c.Call.Arguments, After: arguments})
	c.Call.Arguments = arguments
	c.Status, c.Reason, c.Decided = Ready, "", true
	return nil
}

// Reject answers a pending call with a reason, which may be empty. To the
// model that is a result, not an error.
func (s *State) Reject(callID, reason string) error {
	c, err := s.waiting(callID)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Tool call '%s' was rejected by a human reviewer.", c.Call.Name)
	if reason != "" {
		text += " Reason: " + reason
	}
	c.Status, c.Reason, c.Decided, c.Result = Done, "", true, Result{Text: text}
	return nil
}

// Resolve answers a pending call with a result made elsewhere.
func (s *State) Resolve(callID string, r Result) error {
	c, err := s.waiting(callID)
	if err != nil {
		return err
	}
	c.Status, c.Reason, c.Decided, c.Result = Done, "", true, r
	return nil
}
