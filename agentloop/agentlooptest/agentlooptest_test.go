package agentlooptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/agentloop/agentlooptest"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

var update = flag.Bool("update", false, "write the golden files")

const oslo = `{"city":"Oslo"}`

type (
	trajectory = agentlooptest.Trajectory
	call       = agentlooptest.Call
)

// Of has the calls with a result, as the model wrote them and as they ran, with
// their changes and turns, and no call of a failed turn. It survives a saved state.
func TestOf(t *testing.T) {
	t.Parallel()
	type trip struct {
		City string `json:"city"`
		Days int    `json:"days,omitempty"`
	}
	weather := agentloop.NewTool("weather", "Says how the weather is.", func(_ context.Context, in trip) (agentloop.Result, error) {
		return agentloop.Text("sunny in " + in.City), nil
	})
	fails := agentloop.RawTool("fails", "", nil, func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		return agentloop.Result{}, errors.New("boom")
	})
	model := middlewaretest.NewModel(t, middlewaretest.Calls("weather", `{"city":"Oslo","days":null}`, "fails", "{}"),
		middlewaretest.Calls("weather", `{"days":1}`), middlewaretest.Calls("weather", oslo), middlewaretest.Text("done"))
	agent, err := agentloop.New(argsvalidate.New(argsvalidate.Options{MaxAttempts: 1})(model.Call), agentloop.Options{Tools: []agentloop.Tool{weather, fails}})
	require.NoError(t, err)
	s := agentloop.NewState(middleware.User("go"))
	require.NoError(t, agent.Run(t.Context(), s))
	got := agentlooptest.Of(s)
	require.Equal(t, trajectory{
		{Name: "weather", Arguments: oslo, Raw: `{"city":"Oslo","days":null}`, Turn: 1, Result: "sunny in Oslo",
			Changes: []middleware.Change{{By: "strip", Pointer: "/days", Before: "null"}}},
		{Name: "fails", Arguments: "{}", Raw: "{}", Turn: 1, Result: "boom", IsError: true},
		{Name: "weather", Arguments: oslo, Raw: oslo, Turn: 3, Result: "sunny in Oslo"},
	}, got)
	require.Len(t, got.InTurn(1), 2)
	require.Empty(t, got.InTurn(2))
	require.Len(t, got.Named("weather", "other"), 2)
	require.Len(t, got, 3, "filters return a copy")

	b, err := json.Marshal(s)
	require.NoError(t, err)
	var saved agentloop.State
	require.NoError(t, json.Unmarshal(b, &saved))
	require.Equal(t, got, agentlooptest.Of(&saved))
}

func TestBefore(t *testing.T) {
	t.Parallel()
	of := func(names string) (t trajectory) {
		for _, n := range strings.Fields(names) {
			t = append(t, call{Name: n})
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
	ab := trajectory{{Name: "a", Arguments: `{"x":1,"y":[1,{"z":2}]}`, Turn: 1}, {Name: "b", Arguments: `{}`, Turn: 2}}
	ba := trajectory{ab[1], ab[0]}
	arg := func(args string) trajectory { return trajectory{{Name: "a", Arguments: args}, {Name: "b"}} }
	for name, c := range map[string]struct {
		want trajectory
		m    agentlooptest.Match
		ok   bool
	}{
		"strict":                    {ab, agentlooptest.Strict, true},
		"strict, another order":     {ba, agentlooptest.Strict, false},
		"any order":                 {ba, agentlooptest.AnyOrder, true},
		"any order, one less":       {ab[:1], agentlooptest.AnyOrder, false},
		"contains":                  {ba[:1], agentlooptest.Contains, true},
		"contains, one more":        {append(ba, call{Name: "a"}), agentlooptest.Contains, false},
		"any arguments":             {arg(""), agentlooptest.Strict, true},
		"another turn":              {trajectory{{Name: "a", Turn: 2}, {Name: "b"}}, agentlooptest.Strict, false},
		"key order and space":       {arg(`{"y": [1, {"z": 2}], "x": 1}`), agentlooptest.Strict, true},
		"spelling of numbers":       {arg(`{"x":10e-1,"y":[1.0,{"z":0.2E1}]}`), agentlooptest.Strict, true},
		"another number":            {arg(`{"x":1.01,"y":[1,{"z":2}]}`), agentlooptest.Strict, false},
		"order of an array":         {arg(`{"x":1,"y":[{"z":2},1]}`), agentlooptest.Strict, false},
		"subset":                    {arg(`{"y":[1,{}]}`), agentlooptest.Strict | agentlooptest.Subset, true},
		"subset, array":             {arg(`{"y":[1]}`), agentlooptest.Strict | agentlooptest.Subset, false},
		"less without subset":       {arg(`{"x":1}`), agentlooptest.Strict, false},
		"subset in any order":       {trajectory{{Name: "b"}, {Name: "a", Arguments: `{"x":1}`}}, agentlooptest.AnyOrder | agentlooptest.Subset, true},
		"more than one JSON text":   {arg(`{"x":1,"y":[1,{"z":2}]} {}`), agentlooptest.Strict, false},
		"another type":              {arg(`[1]`), agentlooptest.Strict, false},
		"object for a number":       {arg(`{"x":{},"y":[1,{"z":2}]}`), agentlooptest.Strict, false},
		"number for an object":      {arg(`{"x":1,"y":[1,2]}`), agentlooptest.Strict, false},
		"nothing wanted, contained": {nil, agentlooptest.Contains, true},
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
		got, want := trajectory{{Name: "a", Arguments: `[` + c.a + `]`}}, trajectory{{Name: "a", Arguments: `[ ` + c.b + `]`}}
		require.Equal(t, c.same, got.Diff(want, agentlooptest.Strict) == "", "%.40s %.40s", c.a, c.b)
	}
}

// A wanted call with any arguments does not take the only one that another
// wants.
func TestDiffAssigns(t *testing.T) {
	t.Parallel()
	got := trajectory{{Name: "a", Arguments: `{"x":1}`}, {Name: "a", Arguments: `{"x":2}`}}
	want := trajectory{{Name: "a"}, {Name: "a", Arguments: `{"x":1}`}}
	require.Empty(t, got.Diff(want, agentlooptest.AnyOrder))
	require.Empty(t, got.Diff(want, agentlooptest.Contains))
}

func TestDiffReads(t *testing.T) {
	t.Parallel()
	got := trajectory{{Name: "search", Arguments: `{"q":"oslo"}`, Turn: 1}, {Name: "weather", Arguments: oslo, Turn: 2}, {Name: "book", Arguments: `{"id":7}`, Turn: 2}}
	want := trajectory{{Name: "weather", Arguments: oslo}, {Name: "book", Arguments: `{"id":8}`}, {Name: "pay"}}
	golden(t, "testdata/diff.txt", "strict:\n"+got.Diff(want, agentlooptest.Strict)+
		"any order:\n"+got.Diff(want, agentlooptest.AnyOrder)+"contains:\n"+got.Diff(want, agentlooptest.Contains))
}

// golden compares got with a file of testdata, and writes the file with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}
