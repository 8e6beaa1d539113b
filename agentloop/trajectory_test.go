package agentloop_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

type (
	traj  = agentloop.Trajectory
	tcall = agentloop.TrajectoryCall
)

// What a run did: raw and as it ran, what was changed, by turn; failed turns
// are not in it.
func TestTrajectory(t *testing.T) {
	t.Parallel()
	s := goState()
	model := modelOf(t, calls("weather", `{"city":"Oslo","days":null}`, "fails", "{}"), calls("weather", bad), calls("weather", oslo), text("done"))
	require.NoError(t, newAgent(t, argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})(model), tools(weather(), fails("fails", errBoom))).Run(t.Context(), s))
	got := s.Trajectory()
	require.Equal(t, traj{
		{Name: "weather", Arguments: oslo, Raw: `{"city":"Oslo","days":null}`, Turn: 1, Result: "sunny in Oslo",
			Changes: []middleware.Change{{By: "strip", Pointer: "/days", Before: "null"}}},
		{Name: "fails", Arguments: "{}", Raw: "{}", Turn: 1, Result: "boom", IsError: true},
		{Name: "weather", Arguments: oslo, Raw: oslo, Turn: 3, Result: "sunny in Oslo"},
	}, got)
	require.Len(t, got.InTurn(1), 2)
	require.Empty(t, got.InTurn(2))
	require.Len(t, got.Named("weather", "other"), 2)
	require.Len(t, got, 3, "what filters returns a copy")
	require.Equal(t, got, stored(t, s).Trajectory())
}

func TestTrajectoryJSON(t *testing.T) {
	t.Parallel()
	want := traj{{Name: "a", Arguments: "\xff", Raw: "\xfe", Turn: 1, Result: "r", IsError: true, Rejected: true}, {Name: "b"}}
	b, err := json.Marshal(want)
	require.NoError(t, err)
	var back traj
	require.NoError(t, json.Unmarshal(b, &back))
	require.Equal(t, want, back)
	require.Contains(t, string(b), `{"name":"b"}`)
}

func TestBefore(t *testing.T) {
	t.Parallel()
	of := func(names string) (t traj) {
		for _, n := range strings.Fields(names) {
			t = append(t, tcall{Name: n})
		}
		return t
	}
	for names, want := range map[string]bool{"a b": true, "b a": false, "b a b": true, "a": false, "b": false, "": false, "x a x b": true} {
		require.Equal(t, want, of(names).Before("a", "b"), names)
	}
	require.True(t, of("a a").Before("a", "a"))
	require.False(t, of("a").Before("a", "a"))
}

func TestDiffMatches(t *testing.T) {
	t.Parallel()
	ab := traj{{Name: "a", Arguments: `{"x":1,"y":[1,{"z":2}]}`, Turn: 1}, {Name: "b", Arguments: `{}`, Turn: 2}}
	ba := traj{ab[1], ab[0]}
	arg := func(args string) traj { return traj{{Name: "a", Arguments: args}, {Name: "b"}} }
	for name, c := range map[string]struct {
		want traj
		m    agentloop.Match
		ok   bool
	}{
		"strict":                    {ab, agentloop.Strict, true},
		"strict, another order":     {ba, agentloop.Strict, false},
		"any order":                 {ba, agentloop.AnyOrder, true},
		"any order, one less":       {ab[:1], agentloop.AnyOrder, false},
		"contains":                  {ba[:1], agentloop.Contains, true},
		"contains, one more":        {append(ba, tcall{Name: "a"}), agentloop.Contains, false},
		"any arguments":             {arg(""), agentloop.Strict, true},
		"another turn":              {traj{{Name: "a", Turn: 2}, {Name: "b"}}, agentloop.Strict, false},
		"key order and space":       {arg(`{"y": [1, {"z": 2}], "x": 1}`), agentloop.Strict, true},
		"spelling of numbers":       {arg(`{"x":10e-1,"y":[1.0,{"z":0.2E1}]}`), agentloop.Strict, true},
		"another number":            {arg(`{"x":1.01,"y":[1,{"z":2}]}`), agentloop.Strict, false},
		"order of an array":         {arg(`{"x":1,"y":[{"z":2},1]}`), agentloop.Strict, false},
		"subset":                    {arg(`{"y":[1,{}]}`), agentloop.Strict | agentloop.Subset, true},
		"subset, array":             {arg(`{"y":[1]}`), agentloop.Strict | agentloop.Subset, false},
		"less without subset":       {arg(`{"x":1}`), agentloop.Strict, false},
		"subset in any order":       {traj{{Name: "b"}, {Name: "a", Arguments: `{"x":1}`}}, agentloop.AnyOrder | agentloop.Subset, true},
		"more than one JSON text":   {arg(`{"x":1,"y":[1,{"z":2}]} {}`), agentloop.Strict, false},
		"another type":              {arg(`[1]`), agentloop.Strict, false},
		"object for a number":       {arg(`{"x":{},"y":[1,{"z":2}]}`), agentloop.Strict, false},
		"number for an object":      {arg(`{"x":1,"y":[1,2]}`), agentloop.Strict, false},
		"nothing wanted, contained": {nil, agentloop.Contains, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diff := ab.Diff(c.want, c.m)
			require.Equal(t, c.ok, diff == "", diff)
		})
	}
	require.Panics(t, func() { ab.Diff(ab, 9) })
}

// Numbers are compared exactly, however they are spelled.
func TestDiffNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"9007199254740993", "9007199254740992", false}, {"0", "-0.00e7", true}, {"100", "1e2", true}, {"1E+2", "100.0", true},
		{"-1", "1", false}, {"0.001", "1e-3", true}, {"1e3000000000", "10e2999999999", true}, {"1e3000000000", "1e3000000001", false},
		{"120", "12", false}, {"1e" + strings.Repeat("9", 2000), "1e" + strings.Repeat("9", 2000), true},
	} {
		got, want := traj{{Name: "a", Arguments: `[` + c.a + `]`}}, traj{{Name: "a", Arguments: `[ ` + c.b + `]`}}
		require.Equal(t, c.same, got.Diff(want, agentloop.Strict) == "", "%.40s %.40s", c.a, c.b)
	}
}

// A wanted call with any arguments does not take the only one that another
// wants.
func TestDiffAssigns(t *testing.T) {
	t.Parallel()
	got := traj{{Name: "a", Arguments: `{"x":1}`}, {Name: "a", Arguments: `{"x":2}`}}
	want := traj{{Name: "a"}, {Name: "a", Arguments: `{"x":1}`}}
	require.Empty(t, got.Diff(want, agentloop.AnyOrder))
	require.Empty(t, got.Diff(want, agentloop.Contains))
}

func TestDiffReads(t *testing.T) {
	t.Parallel()
	got := traj{{Name: "search", Arguments: `{"q":"oslo"}`, Turn: 1}, {Name: "weather", Arguments: oslo, Turn: 2}, {Name: "book", Arguments: `{"id":7}`, Turn: 2}}
	want := traj{{Name: "weather", Arguments: oslo}, {Name: "book", Arguments: `{"id":8}`}, {Name: "pay"}}
	golden(t, "testdata/diff.txt", "strict:\n"+got.Diff(want, agentloop.Strict)+
		"any order:\n"+got.Diff(want, agentloop.AnyOrder)+"contains:\n"+got.Diff(want, agentloop.Contains))
}
