package agentloop

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// Pending is a valid call that waits.
type Pending struct {
	Call    middleware.ToolCall // what runs if it is approved, byte for byte
	Reason  string              // "approval", or what the tool said when it suspended itself
	Problem string              // why the decision before could not be carried out; "": there was none
	Notes   []string            // what rules remarked on the call, such as "only 5 left"
}

const (
	reasonApproval = "approval" // Pending.Reason of a call whose tool needs approval
	byEdit         = "edit"     // Change.By of an edit by a person
)

// Pending returns the calls that wait for a decision, in call order.
func (s *State) Pending() []Pending {
	var waiting []Pending
	for _, c := range s.turn {
		if c.Status == callWaiting {
			waiting = append(waiting, Pending{c.Call, c.Reason, c.Problem, c.Notes})
		}
	}
	return waiting
}

// stuck reports whether the call could not run though it is ready: a rule could
// not decide, or the process ended. Then a person may decide on it, again too.
func (c *turnCall) stuck() bool { return c.Status == callReady && (!c.Decided || c.Problem != "") }

// decide returns the call of that id, marked as decided.
func (s *State) decide(callID string, to callStatus) (*turnCall, error) {
	i := slices.IndexFunc(s.turn, func(c turnCall) bool { return c.Call.ID == callID })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%w: %q", ErrUnknownCall, callID)
	case s.turn[i].Status != callWaiting && !s.turn[i].stuck():
		return nil, fmt.Errorf("%w: %q", ErrDecided, callID)
	}
	c := &s.turn[i]
	c.Status, c.Reason, c.Problem, c.Decided = to, "", "", true
	return c, nil
}

// Approve lets a pending call run; one that its tool has suspended runs again.
// Where the tools have changed since and the call is not valid any more, the
// model is told so instead. The errors are ErrUnknownCall and ErrDecided, of
// this method and of the others that decide. A call that could not run, because
// a rule could not decide or the process ended, may be decided again.
func (s *State) Approve(callID string) error {
	_, err := s.decide(callID, callReady)
	return err
}

// Edit lets a pending call run with other arguments. They are validated when
// the run goes on. Invalid ones are taken back: the call waits again as it was,
// Pending.Problem says why, and the run returns ErrPending with an
// *argsvalidate.Error of that call beside it. So is an edit that makes another
// call of the turn invalid. What runs stands in the history.
func (s *State) Edit(callID, arguments string) error {
	c, err := s.decide(callID, callReady)
	if err != nil {
		return err
	}
	c.Changes = append(slices.Clone(c.Changes), middleware.Change{By: byEdit, Before: c.Call.Arguments, After: arguments})
	c.Call.Arguments = arguments
	c.Edited, c.checked = true, false
	return nil
}

// Reject answers a pending call with a reason, which may be empty. To the
// model that is a result, not an error.
func (s *State) Reject(callID, reason string) error {
	c, err := s.decide(callID, callDone)
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

// Cancel ends the turn in hand: each of its calls that has no result is answered
// as cancelled, with a reason, which may be empty. Then Append takes the next
// message, and Run asks the model. Any state accepts it; without a turn in hand
// it changes nothing. Whether a call that was running has had its effect is not
// known.
func (s *State) Cancel(reason string) {
	if n := len(s.Messages); len(s.turn) == 0 && n > 0 { // the calls could not be validated
		m := batch.FixIDs(s.Messages[:n-1], s.Messages[n-1])
		s.Messages[n-1] = m
		for _, c := range m.ToolCalls {
			s.turn = append(s.turn, turnCall{Call: c, Raw: c.Arguments, Status: callReady})
		}
	}
	for i := range s.turn {
		c := &s.turn[i]
		if c.Status == callDone {
			continue
		}
		text := fmt.Sprintf("Tool call '%s' was cancelled.", c.Call.Name)
		if reason != "" {
			text += " Reason: " + reason
		}
		c.Status, c.Reason, c.Problem, c.Decided, c.Rejected, c.Result = callDone, "", "", true, true, Result{Text: valid(text)}
	}
	s.close(func(string) bool { return false })
}

// Resolve answers a pending call with a result made elsewhere.
func (s *State) Resolve(callID string, r Result) error {
	c, err := s.decide(callID, callDone)
	if err != nil {
		return err
	}
	r.Text = valid(r.Text)
	c.Result = r
	return nil
}
