package agentloop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// withRule is an agent over weather tools that need approval, whose chain and
// loop come from one Validator.
func withRule(t *testing.T, model middleware.ModelCall, ran *[]string, rule argsvalidate.RuleFunc) *agentloop.Agent {
	t.Helper()
	o := tools(guarded(ran))
	o.Parallel = 1
	o.Validator = argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{argsvalidate.Named("ours", rule)}})
	return newAgent(t, o.Validator.Middleware()(model), o)
}

// A rule that reads the conversation sees it in the step, after an approval,
// after an edit and in another process.
func TestRulesSeeTheRequestEverywhere(t *testing.T) {
	t.Parallel()
	var ran, seen []string
	rule := func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		last := c.Request.Messages[len(c.Request.Messages)-1]
		seen = append(seen, c.Arguments+" after "+last.Text()+" of "+c.Request.Tools[0].Name)
		return nil, nil
	}
	s := goState()
	require.ErrorIs(t, withRule(t, modelOf(t, calls("weather", oslo, "weather", `{"city":"Rome"}`)), &ran, rule).Run(t.Context(), s), agentloop.ErrPending)
	seen = nil
	require.NoError(t, s.Approve("call_1"))
	require.NoError(t, s.Edit("call_2", `{"city":"Bonn"}`))
	require.NoError(t, withRule(t, modelOf(t, text("done")), &ran, rule).Run(t.Context(), stored(t, s)))
	require.Equal(t, []string{oslo + " after go of weather", `{"city":"Bonn"} after go of weather`}, seen)
	require.Equal(t, []string{oslo, `{"city":"Bonn"}`}, ran)
}

// twice refuses a call that another one of the message repeats.
func twice(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
	for _, other := range c.Siblings {
		if other.Arguments == c.Arguments {
			return []middleware.Issue{{Message: "the same call twice"}}, nil
		}
	}
	return nil, nil
}

// An edit that makes two calls equal is refused like two equal calls of the
// model, whether the other one waits, is approved or has run.
func TestSiblingRulesHoldForEdits(t *testing.T) {
	t.Parallel()
	rome := `{"city":"Rome"}`
	for name, before := range map[string]func(*testing.T, *agentloop.Agent, *agentloop.State){
		"waits":    func(*testing.T, *agentloop.Agent, *agentloop.State) {},
		"approved": func(t *testing.T, _ *agentloop.Agent, s *agentloop.State) { require.NoError(t, s.Approve("call_1")) },
		"has run": func(t *testing.T, a *agentloop.Agent, s *agentloop.State) {
			require.NoError(t, s.Approve("call_1"))
			require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran []string
			a := withRule(t, modelOf(t, calls("weather", oslo, "weather", rome), text("done")), &ran, twice)
			s := goState()
			require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
			before(t, a, s)
			require.NoError(t, s.Edit("call_2", oslo))
			err := a.Run(t.Context(), s)
			require.ErrorIs(t, err, agentloop.ErrPending)
			var invalid *argsvalidate.Error
			require.ErrorAs(t, err, &invalid)
			require.Len(t, invalid.Verdicts, 1)
			require.Equal(t, "call_2", invalid.Verdicts[0].Call.ID)
			waiting := s.Pending()
			taken := waiting[len(waiting)-1]
			require.Equal(t, rome, taken.Call.Arguments, "as it was before the edit")
			require.Equal(t, "the edited arguments are not valid: [the arguments] the same call twice", taken.Problem)
			for _, p := range waiting {
				require.NoError(t, s.Approve(p.Call.ID))
			}
			require.NoError(t, a.Run(t.Context(), s))
			require.Equal(t, []string{oslo, rome}, ran, "each once")
		})
	}
}

// An edit may leave its own call valid and break another one: it is taken back,
// not the call of the model refused.
func TestEditThatBreaksASibling(t *testing.T) {
	t.Parallel()
	onlyFirst := func(ctx context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		if c.ID == "call_1" {
			return twice(ctx, c)
		}
		return nil, nil
	}
	var ran []string
	a := withRule(t, modelOf(t, calls("weather", oslo, "weather", `{"city":"Rome"}`)), &ran, onlyFirst)
	s := goState()
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.NoError(t, s.Approve("call_1"))
	require.NoError(t, s.Edit("call_2", oslo))
	require.ErrorIs(t, a.Run(t.Context(), s), argsvalidate.ErrInvalid)
	require.Equal(t, []string{oslo}, ran)
	require.Equal(t, `with the edited arguments call "call_1" to weather is not valid: [the arguments] the same call twice`, s.Pending()[0].Problem)
}

// A rule that cannot decide never leaves a state without a way out.
func TestRuleThatCannotDecideLeavesAWayOut(t *testing.T) {
	t.Parallel()
	var ran []string
	fails := false
	rule := func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		if fails {
			return nil, errBoom
		}
		return nil, nil
	}
	for name, out := range map[string]func(*agentloop.State) error{
		"reject":  func(s *agentloop.State) error { return s.Reject("call_1", "enough") },
		"resolve": func(s *agentloop.State) error { return s.Resolve("call_1", agentloop.Text("by hand")) },
		"cancel":  func(s *agentloop.State) error { s.Cancel("enough"); return nil },
	} {
		for decision, decide := range map[string]func(*agentloop.State) error{
			"approved": func(s *agentloop.State) error { return s.Approve("call_1") },
			"edited":   func(s *agentloop.State) error { return s.Edit("call_1", `{"city":"Bonn"}`) },
		} {
			fails = false
			a := withRule(t, modelOf(t, calls("weather", oslo), text("done")), &ran, rule)
			s := goState()
			require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
			require.NoError(t, decide(s))
			fails = true
			require.ErrorIs(t, a.Run(t.Context(), s), errBoom)
			s = stored(t, s)
			require.NoError(t, out(s), "%s after %s", name, decision)
			require.NoError(t, a.Run(t.Context(), s))
			require.Equal(t, "done", s.Answer())
			require.Empty(t, ran)
		}
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errBoom }
	a := withRule(t, modelOf(t, text("done")), new([]string), fails)
	s := agentloop.NewState(middleware.User("go"), middleware.Assistant("", call("", "weather", oslo), call("x", "weather", oslo)))
	require.ErrorIs(t, a.Run(t.Context(), s), errBoom)
	require.ErrorIs(t, s.Append(middleware.User("and?")), agentloop.ErrPending)
	s.Cancel("")
	require.NoError(t, s.Append(middleware.User("and?")))
	require.NoError(t, a.Run(t.Context(), s))
	require.Equal(t, []string{"Tool call 'weather' was cancelled.", "Tool call 'weather' was cancelled."}, replies(s))
	require.Equal(t, s.Messages[1].ToolCalls[0].ID, s.Messages[2].ToolCallID)
	require.NotEmpty(t, s.Messages[2].ToolCallID)
	require.True(t, s.Results[0].Rejected)

	before := stored(t, s)
	s.Cancel("nothing to cancel")
	require.Equal(t, before, stored(t, s))
	agentloop.NewState().Cancel("")

	partly := suspended(t, "weather", oslo, "weather", `{"city":"Rome"}`)
	require.NoError(t, partly.Resolve("call_2", agentloop.Text("by hand")))
	partly.Cancel("too late")
	require.Equal(t, []string{"Tool call 'weather' was cancelled. Reason: too late", "by hand"}, replies(partly))
}

// A chain with another Validator than the loop's would let edits pass its rules.
func TestChainAndLoopHaveOneValidator(t *testing.T) {
	t.Parallel()
	o := tools(weather())
	o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	other := argsvalidate.New(argsvalidate.Options{})
	s := goState()
	require.ErrorIs(t, newAgent(t, other(modelOf(t, text("done"))), o).Run(t.Context(), s), agentloop.ErrValidator)
	require.NoError(t, newAgent(t, other(o.Validator.Middleware()(modelOf(t, text("done")))), o).Run(t.Context(), goState()))
	require.NoError(t, newAgent(t, modelOf(t, text("done")), o).Run(t.Context(), goState()), "a chain without one")
	require.NoError(t, newAgent(t, other(modelOf(t, text("done"))), tools(weather())).Run(t.Context(), goState()), "nobody asked")

	// Without one no edit is accepted.
	waits := agentloop.NewTool("weather", "", func(ctx context.Context, in trip) (agentloop.Result, error) {
		return agentloop.Result{}, agentloop.Suspend("busy")
	})
	a, err := agentloop.New(modelOf(t, calls("weather", oslo)), tools(waits))
	require.NoError(t, err)
	s = goState()
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.NoError(t, s.Edit("call_1", `{"city":"Rome"}`))
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.Equal(t, "the program has no Options.Validator, so no edit can be validated", s.Pending()[0].Problem)
	require.Equal(t, oslo, s.Pending()[0].Call.Arguments)
}

// What a rule remarks is for the person who approves.
func TestNotesOfRulesReachThePerson(t *testing.T) {
	t.Parallel()
	rule := func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
		c.Note("only 5 left")
		return nil, nil
	}
	a := withRule(t, modelOf(t, calls("weather", oslo)), new([]string), rule)
	s := goState()
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.Equal(t, []string{"only 5 left"}, stored(t, s).Pending()[0].Notes)
	require.ErrorIs(t, a.Run(t.Context(), s), agentloop.ErrPending)
	require.Equal(t, []string{"only 5 left"}, s.Pending()[0].Notes, "once, however often it is validated")
}
