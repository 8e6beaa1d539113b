package agentloop_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// A report about other calls than those of the message counts for nothing.
func TestReportOnOtherCalls(t *testing.T) {
	t.Parallel()
	c := call("a", "weather", bad)
	for name, verdict := range map[string]middleware.Verdict{
		"arguments": {Call: call("a", "weather", oslo)},
		"id":        {Call: call("b", "weather", bad)},
		"name":      {Call: call("a", "other", bad)},
		"issues":    {Call: c, Issues: []middleware.Issue{{Code: "type"}}}, // beside the status valid
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tool, ran := counted()
			lies := middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", c), Report: middleware.Report{
				Status: middleware.Valid, Attempts: []middleware.Attempt{{Verdicts: []middleware.Verdict{verdict}}}}})
			s, err := run(t, tools(tool), lies, text("done"))
			require.NoError(t, err)
			require.Zero(t, *ran)
			require.Len(t, replies(s), 1)
		})
	}
}

// The verdicts of the step are not asked for twice.
func TestStepVerdictsCount(t *testing.T) {
	t.Parallel()
	asked := 0
	rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { asked++; return nil, nil })
	v := argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{rule}})
	o := tools(weather())
	o.Validator = v
	s := goState()
	require.NoError(t, newAgent(t, v.Middleware()(modelOf(t, calls("weather", oslo), text("done"))), o).Run(t.Context(), s))
	require.Equal(t, 1, asked)
}

// A rule that cannot decide on a call in hand, and a context that ends in it,
// leave the call as it is.
func TestRecheckUndecided(t *testing.T) {
	t.Parallel()
	s := suspended(t, "weather", oslo)
	require.NoError(t, s.Approve("call_1"))
	broken := tools(weather())
	broken.Validator = argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{
		argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errBoom })}})
	require.ErrorIs(t, goOn(t, s, broken, false), errBoom)

	ctx, cancel := context.WithCancel(t.Context())
	cut := tools(weather())
	cut.Validator = argsvalidate.NewValidator(argsvalidate.Options{Rules: []argsvalidate.Rule{
		argsvalidate.RuleFunc(func(ctx context.Context, _ *argsvalidate.Call) ([]middleware.Issue, error) {
			cancel()
			return nil, ctx.Err()
		})}})
	require.ErrorIs(t, newAgent(t, modelOf(t), cut).Run(ctx, s), context.Canceled)
	require.NoError(t, goOn(t, s, tools(weather()), true))
	require.Equal(t, []string{"sunny in Oslo"}, replies(s))
}

// Ids that are missing or used before are made unique, and that is recorded.
func TestBrokenIDs(t *testing.T) {
	t.Parallel()
	s, err := run(t, tools(weather()), answer(call("", "weather", oslo), call("x", "weather", oslo), call("x", "weather", oslo)),
		answer(call("x", "weather", oslo)), text("done"))
	require.NoError(t, err)
	var ids []string
	for _, r := range s.Results {
		ids = append(ids, r.Call.ID)
	}
	require.Equal(t, []string{"toolmend_1", "x", "toolmend_3", "toolmend_4"}, ids)
	require.Equal(t, []middleware.Change{{By: "id", Before: "x", After: "toolmend_4"}}, s.Results[3].Changes)
	require.Equal(t, 2, s.Results[3].Turn)
}

// Verdicts on other tools than the agent's count for nothing: a middleware has replaced them.
func TestVerdictsOnOtherTools(t *testing.T) {
	t.Parallel()
	replaces := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			req = req.Clone()
			req.Tools = []middleware.Tool{{Name: "weather"}}
			return next(ctx, req)
		}
	}
	ran := 0
	o := tools(agentloop.RawTool("weather", "", []byte(`{"type":"object","required":["city"]}`), func(context.Context, middleware.ToolCall) (agentloop.Result, error) {
		ran++
		return agentloop.Text("sunny"), nil
	}))
	o.Validator = argsvalidate.NewValidator(argsvalidate.Options{})
	s := goState()
	require.NoError(t, newAgent(t, middleware.Chain(replaces, o.Validator.Middleware())(modelOf(t, calls("weather", bad), text("done"))), o).Run(t.Context(), s))
	require.Zero(t, ran)
	require.Len(t, replies(s), 1)
}
