package agentloop_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// A state that contradicts itself ends the run with ErrState, and nothing runs.
func TestDamagedState(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(s *agentloop.State){
		"edited without changes": func(s *agentloop.State) { s.Turn()[0].Edited = true },
		"the last change is not an edit": func(s *agentloop.State) {
			edited(s, middleware.Change{By: "mend", Pointer: "/days", Before: `"5"`, After: "5"})
		},
		"a mend of the whole": func(s *agentloop.State) { edited(s, middleware.Change{By: "mend", Before: bad, After: oslo}) },
		"an edit of a part": func(s *agentloop.State) {
			edited(s, middleware.Change{By: "edit", Pointer: "/city", Before: `"5"`, After: oslo})
		},
		"an edit to other arguments": func(s *agentloop.State) { edited(s, middleware.Change{By: "edit", Before: oslo, After: "{}"}) },
		"an unknown status":          func(s *agentloop.State) { s.Turn()[0].Status = "" },
		"a call too many":            func(s *agentloop.State) { s.SetTurn(append(s.Turn(), s.Turn()[0])...) },
		"another id":                 func(s *agentloop.State) { s.Turn()[0].Call.ID = "b" },
		"no id":                      func(s *agentloop.State) { s.Turn()[0].Call.ID, s.Messages[1].ToolCalls[0].ID = "", "" },
		"an id twice": func(s *agentloop.State) {
			s.SetTurn(append(s.Turn(), s.Turn()[0])...)
			s.Messages[1].ToolCalls = append(s.Messages[1].ToolCalls, s.Messages[1].ToolCalls[0])
		},
		"a message behind the turn": func(s *agentloop.State) { s.Messages = append(s.Messages, middleware.User("and?")) },
		"calls of a user":           func(s *agentloop.State) { s.Messages[1].Role = middleware.RoleUser },
		"failures below zero":       func(s *agentloop.State) { s.Failures = -1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suspended(t, "weather", oslo)
			require.NoError(t, s.Approve("call_1"))
			damage(s)
			var ran []string
			require.ErrorIs(t, goOn(t, stored(t, s), tools(guarded(&ran)), false), agentloop.ErrState)
			require.Empty(t, ran)
		})
	}
}

func edited(s *agentloop.State, c middleware.Change) {
	s.Turn()[0].Edited, s.Turn()[0].Changes = true, []middleware.Change{c}
}

// A result that refers to what is not a reply is refused when the state is read.
func TestDamagedResult(t *testing.T) {
	t.Parallel()
	for _, reply := range []string{"-1", "0", "1", "9", "1e3", `"2"`} {
		text := `{"version":2,"run_id":"r","messages":[{"role":"user"},{"role":"assistant","tool_calls":[{"id":"a","name":"t","arguments":"{}"}]},{"role":"tool","tool_call_id":"a"}],"results":[{"reply":` + reply + `,"turn":1}]}`
		var s agentloop.State
		require.Error(t, json.Unmarshal([]byte(text), &s), reply)
		require.NoError(t, json.Unmarshal([]byte(strings.Replace(text, `"reply":`+reply, `"reply":2`, 1)), &s))
		require.Equal(t, call("a", "t", "{}"), s.Results[0].Call)
		twice := `"results":[{"reply":2,"turn":1},{"reply":2,"turn":1}]`
		require.ErrorIs(t, json.Unmarshal([]byte(text[:strings.Index(text, `"results"`)]+twice+"}"), &s), agentloop.ErrState)
	}
}

// A state of version 1, in which each result stands twice, goes on.
func TestStateOfVersion1(t *testing.T) {
	t.Parallel()
	text := `{"version":1,"run_id":"r","messages":[{"role":"user","parts":[{"text":"go"}]},
		{"role":"assistant","tool_calls":[{"id":"a","name":"t","arguments":"{}"}]},{"role":"tool","parts":[{"text":"ok"}],"tool_call_id":"a","tool_name":"t"}],
		"results":[{"call":{"id":"a","name":"t","arguments":"{}"},"raw":"{ }","turn":1,"text":"ok"}]}`
	var s agentloop.State
	require.NoError(t, json.Unmarshal([]byte(text), &s))
	require.Equal(t, []agentloop.ToolResult{{Call: call("a", "t", "{}"), Raw: "{ }", Turn: 1, Result: agentloop.Text("ok")}}, s.Results)
	b, err := json.Marshal(&s)
	require.NoError(t, err)
	require.Contains(t, string(b), `"results":[{"reply":2,"raw":"{ }","turn":1}]`)
	require.NoError(t, newAgent(t, scripted(0), tools(says("t", ""))).Run(t.Context(), stored(t, &s)))
}

// Results survive JSON whatever became of the messages that hold them.
func TestResultsSurvive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := newPlan(t)
		j := &journey{plan: p}
		j.at, j.fired, j.ran = -1, map[string]bool{}, map[string]int{}
		a, err := agentloop.New(p.layers(j.model), agentloop.Options{Tools: j.tools(), Validator: p.valid})
		require.NoError(t, err)
		s := goState()
		for _ = a.Run(t.Context(), s); len(s.Pending()) > 0; _ = a.Run(t.Context(), s) { // it may end with ErrFailures
			for _, p := range s.Pending() {
				require.NoError(t, s.Approve(p.Call.ID))
			}
		}
		for i := range s.Messages { // as a program that cuts the history short may do
			switch rapid.IntRange(0, 9).Draw(t, "edit") {
			case 0:
				s.Messages[i].Parts = []middleware.Part{{Text: "(cut)"}}
			case 1:
				s.Messages[i] = middleware.User("(gone)")
			case 2:
				s.Messages[i].IsError = !s.Messages[i].IsError
			}
		}
		b, err := json.Marshal(s)
		require.NoError(t, err)
		var back agentloop.State
		require.NoError(t, json.Unmarshal(b, &back))
		for i := range s.Results {
			s.Results[i].Err = nil // never stored
		}
		require.Equal(t, s.Results, back.Results)
		require.Equal(t, s.Messages, back.Messages)
	})
}

// A state is hardly longer than its messages, however many turns there were: a
// run that is saved at every checkpoint writes what the messages need.
func TestStateIsAsLongAsItsMessages(t *testing.T) {
	t.Parallel()
	const turns = 80
	var states, messages int
	o := tools(says("weather", strings.Repeat("sunny ", 170)))
	o.MaxSteps = turns + 1
	o.Checkpoint = func(_ context.Context, s *agentloop.State) error {
		b, err := json.Marshal(s)
		states += len(b)
		m, _ := json.Marshal(s.Messages)
		messages += len(m)
		return err
	}
	s := agentloop.NewState(middleware.User("Oslo"))
	require.NoError(t, newAgent(t, scripted(turns), o).Run(t.Context(), s))
	require.Len(t, s.Results, 2*turns)
	require.Less(t, float64(states), 1.15*float64(messages))
}
