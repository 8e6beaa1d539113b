package agentloop

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Pending is a valid call that waits.
type Pending struct {
	Call    middleware.ToolCall // what runs if it is approved, byte for byte
	Reason  string              // "approval", or what the tool said when it suspended itself
	Problem string              // why the decision before could not be carried out; "": there was none
}

const (
	reasonApproval = "approval" // Pending.Reason of a call whose tool needs approval
	byEdit         = "edit"     // Change.By of an edit by a person
)

// Pending returns the calls that wait for a decision, in call order.
func (s *State) Pending() []Pending {
	var waiting []Pending
	for _, c := range s.Turn {
		if c.Status == Waiting {
			waiting = append(waiting, Pending{c.Call, c.Reason, c.Problem})
		}
	}
	return waiting
}

// decide returns the call of that id, marked as decided.
func (s *State) decide(callID string, to CallStatus) (*TurnCall, error) {
	i := slices.IndexFunc(s.Turn, func(c TurnCall) bool { return c.Call.ID == callID })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%w: %q", ErrUnknownCall, callID)
	case s.Turn[i].Status != Waiting:
		return nil, fmt.Errorf("%w: %q", ErrDecided, callID)
	}
	c := &s.Turn[i]
	c.Status, c.Reason, c.Problem, c.Decided = to, "", "", true
	return c, nil
}

// Approve lets a pending call run; one that its tool has suspended runs again.
// Where the tools have changed since and the call is not valid any more, the
// model is told so instead. The errors are ErrUnknownCall and ErrDecided, of
// this method and of the others that decide.
func (s *State) Approve(callID string) error {
	_, err := s.decide(callID, Ready)
	return err
}

// Edit lets a pending call run with other arguments. They are validated when
// the run goes on. Invalid ones are taken back: the call waits again as it was,
// Pending.Problem says why, and the run returns ErrPending with an
// *argsvalidate.Error beside it. What runs stands in the history.
func (s *State) Edit(callID, arguments string) error {
	c, err := s.decide(callID, Ready)
	if err != nil {
		return err
	}
	c.Changes = append(slices.Clone(c.Changes), middleware.Change{By: byEdit, Before: c.Call.Arguments, After: arguments})
	c.Call.Arguments = arguments
	c.Edited, c.judged = true, false
	return nil
}

// Reject answers a pending call with a reason, which may be empty. To the
// model that is a result, not an error.
func (s *State) Reject(callID, reason string) error {
	c, err := s.decide(callID, Done)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("Tool call '%s' was rejected by a human reviewer.", c.Call.Name)
	if reason != "" {
		text += " Reason: " + reason
	}
	c.Rejected, c.Result = true, Result{Text: valid(text)}
	return nil
}

// Resolve answers a pending call with a result made elsewhere.
func (s *State) Resolve(callID string, r Result) error {
	c, err := s.decide(callID, Done)
	if err != nil {
		return err
	}
	r.Text = valid(r.Text)
	c.Result = r
	return nil
}
