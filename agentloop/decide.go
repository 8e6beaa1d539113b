package agentloop

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

// Pending is a valid call that waits for a decision.
type Pending struct {
	Call    middleware.ToolCall // what runs if it is approved, byte for byte
	Reason  string              // "approval", or the reason that the tool gave to Suspend
	Problem string              // why an earlier decision failed; "" if there was none
	Notes   []string            // remarks of rules on the call, such as "only 5 left"
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
	c.Status, c.Reason, c.Problem, c.Decided, c.Checked = to, "", "", true, false
	return c, nil
}

// Approve lets a pending call run. If the tool has suspended the call, it
// runs again. If the tools have changed and the call is no longer valid, the
// model gets an error reply instead.
//
// The error is ErrUnknownCall or ErrDecided, as for Edit, Reject and
// Resolve. A decided call may be decided again if it could not run, because
// a rule could not decide or the process ended.
func (s *State) Approve(callID string) error {
	_, err := s.decide(callID, callReady)
	return err
}

// Edit lets a pending call run with other arguments. The next Run validates
// them. If they are invalid, the call waits again with its old arguments,
// Pending.Problem gives the reason, and Run returns ErrPending together with
// an *argsvalidate.Error of that call. The same happens if the edit makes
// another call of the turn invalid. The history contains the edited
// arguments.
func (s *State) Edit(callID, arguments string) error {
	c, err := s.decide(callID, callReady)
	if err != nil {
		return err
	}
	c.Changes = append(slices.Clone(c.Changes), middleware.Change{By: byEdit, Before: c.Call.Arguments, After: arguments})
	c.Call.Arguments = arguments
	c.Edited = true
	return nil
}

// Reject answers a pending call with a reason, which may be empty. The model
// gets a result that is not an error.
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

// Cancel ends the current turn. Each of its calls without a result gets the
// result that it was cancelled, with the reason, which may be empty. After
// that, Append accepts the next message, and Run calls the model. Cancel
// works in every state; without a current turn it changes nothing. A call
// that was running may have had its effect.
func (s *State) Cancel(reason string) {
	if n := len(s.Messages); len(s.turn) == 0 && n > 0 { // the calls could not be validated
		m := history.FixIDs(s.Messages[:n-1], s.Messages[n-1])
		s.Messages[n-1] = m
		for _, c := range m.ToolCalls {
			s.turn = append(s.turn, turnCall{Call: c, Raw: raw(c.Arguments), Status: callReady})
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
	s.close(false)
}

// Resolve sets the result of a pending call that the program ran itself.
func (s *State) Resolve(callID string, r Result) error {
	c, err := s.decide(callID, callDone)
	if err != nil {
		return err
	}
	r.Text = valid(r.Text)
	c.Result = r
	return nil
}
