package agentloop_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// guarded is weather, with approval; it says what it ran with.
func guarded(ran *[]string) agentloop.Tool {
	tool := weather()
	f := tool.Func
	tool.Func = func(ctx context.Context, c middleware.ToolCall) (agentloop.Result, error) {
		*ran = append(*ran, c.Arguments)
		return f(ctx, c)
	}
	return tool.NeedsApproval()
}

// suspended is a state in which the calls wait, as it comes out of a database.
func suspended(t *testing.T, nameArgs ...string) *agentloop.State {
	t.Helper()
	s, err := run(t, tools(guarded(new([]string))), calls(nameArgs...))
	require.ErrorIs(t, err, agentloop.ErrPending)
	return stored(t, s)
}

// goOn runs a decided state to its answer, or to the next wait.
func goOn(t *testing.T, s *agentloop.State, o agentloop.Options, finished bool) error {
	t.Helper()
	if finished {
		return newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), s)
	}
	return newAgent(t, modelOf(t), o).Run(t.Context(), s)
}

// What is shown is what runs and what stands in the history, byte for byte,
// across processes: the model's own null is taken out before it is shown.
func TestApprove(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", `{"city": "Oslo", "days": null}`)
	shown := s.Pending()
	require.Len(t, shown, 1)
	require.Equal(t, "approval", shown[0].Reason)
	require.NoError(t, s.Approve(shown[0].Call.ID))
	var ran []string
	require.NoError(t, goOn(t, stored(t, s), tools(guarded(&ran)), true))
	require.NoError(t, goOn(t, s, tools(guarded(&ran)), true))
	require.Equal(t, []string{shown[0].Call.Arguments, shown[0].Call.Arguments}, ran)
	require.Equal(t, shown[0].Call, s.Messages[1].ToolCalls[0])
	require.Equal(t, shown[0].Call, s.Results[0].Call)
	require.Equal(t, `{"city": "Oslo", "days": null}`, s.Results[0].Raw)
}

// Decisions come partly and in any order; with each the run goes as far as it
// can.
func TestDecidePartly(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", oslo, "weather", `{"city":"Rome"}`, "weather", `{"city":"Bonn"}`, "weather", `{"city":"Lund"}`)
	var ran []string
	o := tools(guarded(&ran))
	require.NoError(t, s.Reject("call_3", "too expensive"))
	require.NoError(t, s.Approve("call_2"))
	require.ErrorIs(t, goOn(t, s, o, false), agentloop.ErrPending)
	require.Equal(t, []string{`{"city":"Rome"}`}, ran)
	s = stored(t, s)
	require.Len(t, s.Pending(), 2)
	require.NoError(t, s.Resolve("call_4", agentloop.Text("seen by hand")))
	require.NoError(t, s.Edit("call_1", `{"city":"Bergen"}`))
	require.NoError(t, goOn(t, s, o, true))
	require.Equal(t, []string{`{"city":"Rome"}`, `{"city":"Bergen"}`}, ran)
	require.Equal(t, []string{"sunny in Bergen", "sunny in Rome",
		"Tool call 'weather' was rejected by a human reviewer. Reason: too expensive", "seen by hand"}, replies(s))
	require.False(t, s.Messages[4].IsError, "a rejection is not an error")
	require.True(t, s.Results[2].Rejected)
	require.Equal(t, `{"city":"Bergen"}`, s.Messages[1].ToolCalls[0].Arguments, "what ran stands in the history")
	require.Equal(t, []middleware.Change{{By: "edit", Before: oslo, After: `{"city":"Bergen"}`}}, s.Results[0].Changes)
	require.Equal(t, 0, s.Failures)
}

func TestDecideErrors(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", oslo)
	for name, decide := range map[string]func(id string) error{
		"approve": s.Approve,
		"edit":    func(id string) error { return s.Edit(id, oslo) },
		"reject":  func(id string) error { return s.Reject(id, "") },
		"resolve": func(id string) error { return s.Resolve(id, agentloop.Result{}) },
	} {
		require.ErrorIs(t, decide("nonsense"), agentloop.ErrUnknownCall, name)
	}
	for name, first := range map[string]func(*agentloop.State) error{
		"approved": func(s *agentloop.State) error { return s.Approve("call_1") },
		"edited":   func(s *agentloop.State) error { return s.Edit("call_1", `{"city":"Rome"}`) },
		"rejected": func(s *agentloop.State) error { return s.Reject("call_1", "") },
		"resolved": func(s *agentloop.State) error { return s.Resolve("call_1", agentloop.Result{}) },
	} {
		s := suspended(t, "weather", oslo)
		require.NoError(t, first(s))
		before := stored(t, s)
		require.ErrorIs(t, s.Approve("call_1"), agentloop.ErrDecided, name)
		require.ErrorIs(t, s.Edit("call_1", oslo), agentloop.ErrDecided, name)
		require.ErrorIs(t, s.Reject("call_1", "no"), agentloop.ErrDecided, name)
		require.ErrorIs(t, s.Resolve("call_1", agentloop.Result{}), agentloop.ErrDecided, name)
		require.Equal(t, before, stored(t, s), "a decision that is refused changes nothing")
	}
	require.NoError(t, s.Reject("call_1", ""))
	require.ErrorIs(t, s.Append(middleware.User("and?")), agentloop.ErrPending)
	require.NoError(t, goOn(t, s, tools(weather()), true))
	require.Equal(t, []string{"Tool call 'weather' was rejected by a human reviewer."}, replies(s))
	require.ErrorIs(t, s.Approve("call_1"), agentloop.ErrUnknownCall, "the turn is over")
}

// An edit is validated again. An invalid one is taken back: the call waits as
// it was, with the reason, and the others go on.
func TestInvalidEdit(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]string{"schema": bad, "no JSON": "nonsense", "no object": "[1]"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := suspended(t, "weather", oslo, "weather", `{"city":"Rome"}`)
			var ran []string
			o := tools(guarded(&ran))
			require.NoError(t, s.Edit("call_1", edit))
			require.NoError(t, s.Approve("call_2"))
			err := goOn(t, s, o, false)
			require.ErrorIs(t, err, agentloop.ErrPending)
			var invalid *argsvalidate.Error
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, []string{`{"city":"Rome"}`}, ran)
			s = stored(t, s)
			waiting := s.Pending()
			require.Len(t, waiting, 1)
			require.Equal(t, oslo, waiting[0].Call.Arguments)
			require.Contains(t, waiting[0].Problem, "the edited arguments are not valid: [")
			require.NoError(t, s.Approve("call_1"))
			require.NoError(t, goOn(t, s, o, true))
			require.Equal(t, []string{`{"city":"Rome"}`, oslo}, ran)
			require.Empty(t, s.Results[0].Changes)
			require.Equal(t, oslo, s.Messages[1].ToolCalls[0].Arguments)
		})
	}
}

// An edit whose valid form has other bytes is shown once more.
func TestEditInAnotherForm(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", oslo)
	var ran []string
	o := tools(guarded(&ran))
	require.NoError(t, s.Edit("call_1", `{"city":"Rome","days":null}`))
	require.ErrorIs(t, goOn(t, s, o, false), agentloop.ErrPending)
	shown := s.Pending()[0]
	require.JSONEq(t, `{"city":"Rome"}`, shown.Call.Arguments)
	require.NotEmpty(t, shown.Problem)
	s = stored(t, s)
	require.NoError(t, s.Approve("call_1"))
	require.NoError(t, goOn(t, s, o, true))
	require.Equal(t, []string{shown.Call.Arguments}, ran)
}

// Decisions may be made inside the iteration; edits are validated there too.
func TestDecideInsideSteps(t *testing.T) {
	t.Parallel()
	var ran []string
	a := newAgent(t, modelOf(t, calls("weather", oslo)), tools(guarded(&ran)))
	s := goState()
	for step, err := range a.Steps(t.Context(), s) {
		if err != nil {
			require.ErrorIs(t, err, argsvalidate.ErrInvalid)
			break
		}
		if step.Response != nil {
			require.Len(t, step.Pending, 1)
			require.NoError(t, s.Edit("call_1", bad))
		}
	}
	require.Empty(t, ran)
	require.NotEmpty(t, s.Pending()[0].Problem)
}

// The tools have changed since the state was saved.
func TestToolsChangedSince(t *testing.T) {
	t.Parallel()
	var ran []string
	strict := guarded(&ran)
	strict.Def.Parameters = json.RawMessage(`{"type":"object","properties":{"city":{"const":"Rome"}},"required":["city"]}`)
	for name, c := range map[string]struct {
		o    agentloop.Options
		told string
	}{
		"stricter schema": {tools(strict), "argument validation failed"},
		"tool gone":       {tools(says("other", "")), "Tool 'weather' does not exist."},
	} {
		for decision, decide := range map[string]func(*agentloop.State) error{
			"approved":  func(s *agentloop.State) error { return s.Approve("call_1") },
			"undecided": func(*agentloop.State) error { return nil },
			"edited":    func(s *agentloop.State) error { return s.Edit("call_1", `{"city":7,"x":true}`) },
		} {
			t.Run(name+"/"+decision, func(t *testing.T) {
				s := suspended(t, "weather", oslo)
				require.NoError(t, decide(s))
				require.NoError(t, goOn(t, s, c.o, true))
				require.Empty(t, ran)
				require.Contains(t, replies(s)[0], c.told)
				require.True(t, s.Messages[2].IsError)
			})
		}
	}
	t.Run("stricter schema/same process", func(t *testing.T) {
		s, err := run(t, tools(guarded(&ran)), calls("weather", oslo))
		require.ErrorIs(t, err, agentloop.ErrPending)
		require.NoError(t, s.Approve("call_1"))
		require.NoError(t, goOn(t, s, tools(strict), true))
		require.Empty(t, ran)
		require.Contains(t, replies(s)[0], "argument validation failed")
	})
	t.Run("tool new", func(t *testing.T) {
		s := suspended(t, "weather", oslo)
		require.NoError(t, s.Approve("call_1"))
		require.NoError(t, goOn(t, s, tools(guarded(&ran), says("new", "")), true))
		require.Equal(t, []string{"sunny in Oslo"}, replies(s))
	})
	t.Run("approval new", func(t *testing.T) {
		o := tools(weather())
		o.StopWhen = once
		s, err := run(t, o, calls("weather", oslo))
		require.NoError(t, err)
		require.ErrorIs(t, goOn(t, stored(t, s), tools(guarded(&ran)), false), agentloop.ErrPending)
	})
}

// Only valid calls are shown; the invalid ones of the turn are the model's.
func TestOnlyValidCallsWait(t *testing.T) {
	t.Parallel()
	s, err := run(t, tools(guarded(new([]string))), calls("weather", bad, "weather", oslo), text("sorry"))
	require.NoError(t, err)
	require.Empty(t, s.Results)
}

// A rejected call is not the success, or the answer, that a run waits for.
func TestRejectedIsNoSuccess(t *testing.T) {
	t.Parallel()
	o := tools(guarded(new([]string)))
	o.StopWhen = agentloop.ToolSucceeded()
	o.Tools[0].ReturnDirect = true
	s := suspended(t, "weather", oslo)
	require.NoError(t, s.Reject("call_1", ""))
	require.NoError(t, goOn(t, s, o, true))
	require.Equal(t, "done", s.Answer())

	s = suspended(t, "weather", oslo)
	require.NoError(t, s.Resolve("call_1", agentloop.Text("by hand")))
	require.NoError(t, goOn(t, s, o, false))
	require.Equal(t, "by hand", s.Answer(), "what was made elsewhere is the tool's result")
}

// A result made elsewhere is made UTF-8, as a tool's own is.
func TestResolveKeepsUTF8(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", oslo)
	require.NoError(t, s.Resolve("call_1", agentloop.Text("caf\xe9")))
	require.NoError(t, goOn(t, s, tools(weather()), true))
	require.Equal(t, []string{"caf\uFFFD"}, replies(s))
	require.Equal(t, "caf\uFFFD", s.Results[0].Text)
}

func TestVersion(t *testing.T) {
	t.Parallel()
	var s agentloop.State
	require.ErrorIs(t, json.Unmarshal([]byte(`{"version":3,"run_id":7}`), &s), agentloop.ErrVersion)
	require.ErrorIs(t, json.Unmarshal([]byte(`{}`), &s), agentloop.ErrVersion)
	require.Error(t, json.Unmarshal([]byte(`[]`), &s))
	require.Error(t, json.Unmarshal([]byte(`{"version":1,"run_id":7}`), &s))
	newer := goState()
	newer.Version = 3
	require.ErrorIs(t, newAgent(t, modelOf(t), agentloop.Options{}).Run(t.Context(), newer), agentloop.ErrVersion)
	require.NoError(t, newAgent(t, modelOf(t, text("hi")), agentloop.Options{}).Run(t.Context(), &agentloop.State{Messages: goState().Messages}), "made by hand")
}

// What the model wrote survives storage where it is not UTF-8.
func TestStateKeepsBytes(t *testing.T) {
	t.Parallel()
	s := goState()
	s.SetTurn(agentloop.TurnCall{Call: call("a", "t", "{}"), Raw: "\xff", Status: agentloop.CallWaiting})
	s.Results = []agentloop.ToolResult{{Call: call("b", "t", "{}"), Raw: "\xfe", Result: agentloop.Text("r")}}
	s.Sink = func(middleware.Event) error { return errors.New("kept") }
	back := stored(t, s)
	require.EqualValues(t, "\xff", back.Turn()[0].Raw)
	require.Equal(t, "\xfe", back.Results[0].Raw)
	require.Equal(t, "r", back.Results[0].Text)
	b, err := json.Marshal(s)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, s))
	require.NotNil(t, s.Sink, "a state that is read over keeps its sink")
}
