package agentloop

import (
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Trajectory is a sequence of calls: those that a run made, or those that a
// test wants. It survives JSON.
type Trajectory []TrajectoryCall

// TrajectoryCall is one call.
type TrajectoryCall struct {
	Name      string              `json:"name"`
	Arguments string              `json:"arguments,omitzero"` // as they ran; "" in a wanted trajectory matches any
	Raw       string              `json:"raw,omitzero"`       // as the model wrote them
	Changes   []middleware.Change `json:"changes,omitzero"`
	Turn      int                 `json:"turn,omitzero"` // the model step, from 1; 0 in a wanted trajectory matches any
	Result    string              `json:"result,omitzero"`
	IsError   bool                `json:"is_error,omitzero"`
	Rejected  bool                `json:"rejected,omitzero"` // by a person: it did not run
}

// Trajectory returns the calls that were answered, in order: those that ran or
// that a person answered. Calls of a failed turn, of which none ran, are not in
// it.
func (s *State) Trajectory() Trajectory {
	t := make(Trajectory, len(s.Results))
	for i, r := range s.Results {
		t[i] = TrajectoryCall{Name: r.Call.Name, Arguments: r.Call.Arguments, Raw: r.Raw, Changes: r.Changes,
			Turn: r.Turn, Result: r.Text, IsError: r.IsError, Rejected: r.Rejected}
	}
	return t
}

// Named returns the calls to the named tools.
func (t Trajectory) Named(names ...string) Trajectory {
	return slices.DeleteFunc(slices.Clone(t), func(c TrajectoryCall) bool { return !slices.Contains(names, c.Name) })
}

// InTurn returns the calls of one model step, from 1.
func (t Trajectory) InTurn(turn int) Trajectory {
	return slices.DeleteFunc(slices.Clone(t), func(c TrajectoryCall) bool { return c.Turn != turn })
}

// Before reports whether both tools were called, and the first call to a came
// before the last call to b.
func (t Trajectory) Before(a, b string) bool {
	first := slices.IndexFunc(t, func(c TrajectoryCall) bool { return c.Name == a })
	for i, c := range slices.Backward(t) {
		if c.Name == b {
			return first >= 0 && first < i
		}
	}
	return false
}

// String returns the call as a line: name and arguments, and the turn where it
// is known.
func (c TrajectoryCall) String() string {
	args := c.Arguments
	if args == "" {
		args = "(any)"
	}
	if c.Turn > 0 {
		return fmt.Sprintf("%s %s (turn %d)", c.Name, args, c.Turn)
	}
	return c.Name + " " + args
}
