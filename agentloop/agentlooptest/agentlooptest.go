// Package agentlooptest compares the tool calls that a run made with those that
// a test wants.
//
//	got := agentlooptest.Of(state)
//	if diff := got.Diff(want, agentlooptest.AnyOrder); diff != "" {
//		t.Error(diff)
//	}
package agentlooptest

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// Trajectory is a sequence of tool calls: those that a run made, or those that a
// test wants.
type Trajectory []Call

// Call is one tool call.
type Call struct {
	Name      string              `json:"name"`
	Arguments string              `json:"arguments,omitzero"` // as they ran; "" in a wanted trajectory matches any
	Raw       string              `json:"raw,omitzero"`       // as the model wrote them
	Changes   []middleware.Change `json:"changes,omitzero"`
	Turn      int                 `json:"turn,omitzero"` // the model step, from 1; 0 in a wanted trajectory matches any
	Result    string              `json:"result,omitzero"`
	IsError   bool                `json:"is_error,omitzero"`
	Rejected  bool                `json:"rejected,omitzero"` // by a person: it did not run
}

// Of returns the calls of s that have a result, in order: the calls that ran and
// those that a person answered. It leaves out the calls of a failed turn, because
// none of them ran.
func Of(s *agentloop.State) Trajectory {
	t := make(Trajectory, len(s.Results))
	for i, r := range s.Results {
		t[i] = Call{Name: r.Call.Name, Arguments: r.Call.Arguments, Raw: r.Raw, Changes: r.Changes,
			Turn: r.Turn, Result: r.Text, IsError: r.IsError, Rejected: r.Rejected}
	}
	return t
}

// Named returns the calls to the named tools.
func (t Trajectory) Named(names ...string) Trajectory {
	return slices.DeleteFunc(slices.Clone(t), func(c Call) bool { return !slices.Contains(names, c.Name) })
}

// InTurn returns the calls of one model step, from 1.
func (t Trajectory) InTurn(turn int) Trajectory {
	return slices.DeleteFunc(slices.Clone(t), func(c Call) bool { return c.Turn != turn })
}

// Before reports whether both tools were called, and the first call to a came
// before the last call to b.
func (t Trajectory) Before(a, b string) bool {
	first := slices.IndexFunc(t, func(c Call) bool { return c.Name == a })
	for i, c := range slices.Backward(t) {
		if c.Name == b {
			return first >= 0 && first < i
		}
	}
	return false
}

// String returns the call as one line: its name, its arguments, and its turn if
// that is set.
func (c Call) String() string {
	args := c.Arguments
	if args == "" {
		args = "(any)"
	}
	if c.Turn > 0 {
		return fmt.Sprintf("%s %s (turn %d)", c.Name, args, c.Turn)
	}
	return c.Name + " " + args
}
