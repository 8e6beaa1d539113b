package agentloop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
}

// Trajectory returns the calls that were answered, in order.
func (s *State) Trajectory() Trajectory {
	t := make(Trajectory, len(s.Results))
	for i, r := range s.Results {
		t[i] = TrajectoryCall{Name: r.Call.Name, Arguments: r.Call.Arguments, Raw: r.Raw, Changes: r.Changes,
			Turn: r.Turn, Result: r.Text, IsError: r.IsError}
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

// Match says how a trajectory is compared. Modes may be combined with Subset.
type Match uint8

// The ways to compare.
const (
	Strict   Match = iota // the same calls in the same order
	AnyOrder              // the same calls
	Contains              // the wanted calls, and perhaps others, in any order

	// Subset lets the arguments of a call hold more than the wanted ones.
	Subset Match = 1 << 7
)

// Diff returns "" when t matches want, otherwise a readable difference, a line
// for each call. Arguments are compared as JSON: key order and white space do
// not matter, the spelling of numbers does not either.
func (t Trajectory) Diff(want Trajectory, m Match) string {
	subset := m&Subset != 0
	if m&^Subset == Strict {
		return t.diffInOrder(want, subset)
	}
	var b strings.Builder
	used := make([]bool, len(t))
	for _, w := range want {
		i := -1
		for n, c := range t {
			if !used[n] && c.matches(w, subset) {
				i = n
				break
			}
		}
		if i < 0 {
			fmt.Fprintf(&b, "- %s\n", w)
			continue
		}
		used[i] = true
	}
	if m&^Subset == AnyOrder {
		for n, c := range t {
			if !used[n] {
				fmt.Fprintf(&b, "+ %s\n", c)
			}
		}
	}
	return b.String()
}

func (t Trajectory) diffInOrder(want Trajectory, subset bool) string {
	var b strings.Builder
	differs := false
	for i := range max(len(t), len(want)) {
		switch {
		case i < len(t) && i < len(want) && t[i].matches(want[i], subset):
			fmt.Fprintf(&b, "  %s\n", t[i])
			continue
		case i < len(want) && i < len(t):
			fmt.Fprintf(&b, "- %s\n+ %s\n", want[i], t[i])
		case i < len(want):
			fmt.Fprintf(&b, "- %s\n", want[i])
		default:
			fmt.Fprintf(&b, "+ %s\n", t[i])
		}
		differs = true
	}
	if !differs {
		return ""
	}
	return b.String()
}

// String returns the call as a line: name and arguments.
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

func (c TrajectoryCall) matches(want TrajectoryCall, subset bool) bool {
	if c.Name != want.Name || want.Turn > 0 && c.Turn != want.Turn {
		return false
	}
	if want.Arguments == "" || c.Arguments == want.Arguments {
		return true
	}
	got, errGot := decodeAny(c.Arguments)
	wanted, errWant := decodeAny(want.Arguments)
	return errGot == nil && errWant == nil && equal(got, wanted, subset)
}

func decodeAny(text string) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	err = d.Decode(&v)
	return v, err
}

// equal compares decoded JSON. With subset an object may hold more than is
// wanted.
func equal(got, want any, subset bool) bool {
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || !subset && len(g) != len(want) {
			return false
		}
		for k, w := range want {
			if v, ok := g[k]; !ok || !equal(v, w, subset) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			return false
		}
		for i := range want {
			if !equal(g[i], want[i], subset) {
				return false
			}
		}
		return true
	}
	return got == want
}
