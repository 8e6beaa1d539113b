package argsvalidate_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// Only the re-ask of a single call whose arguments are malformed is constrained.
func TestConstrain(t *testing.T) {
	t.Parallel()
	bad, good := middlewaretest.Calls("weather", `{}`), middlewaretest.Calls("weather", goodWeather)
	two := middlewaretest.Calls("weather", `{}`, "weather", goodWeather)
	destructive := request()
	destructive.Tools[0].Destructive = true
	refusing := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) {
		return []middleware.Issue{{Message: "not today"}}, nil
	})
	off := map[string]argsvalidate.ToolOptions{"weather": {Constrain: argsvalidate.NoConstraint}}
	none := request()
	none.ToolChoice.Mode = middleware.ToolNone
	for name, c := range map[string]struct {
		o     argsvalidate.Options
		req   *middleware.Request
		first middlewaretest.Turn
		named bool
	}{
		"one call":          {argsvalidate.Options{}, request(), bad, true},
		"two calls":         {argsvalidate.Options{}, request(), two, false},
		"an unknown tool":   {argsvalidate.Options{}, request(), middlewaretest.Calls("rm_all", `{}`), false},
		"a rule":            {argsvalidate.Options{Rules: []argsvalidate.Rule{refusing}, OnExhausted: middleware.Pass}, request(), good, false},
		"destructive":       {argsvalidate.Options{}, destructive, bad, false},
		"off for the tool":  {argsvalidate.Options{PerTool: off}, request(), bad, false},
		"no call is wanted": {argsvalidate.Options{}, none, bad, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.o.Constrain, c.o.MaxAttempts = argsvalidate.ConstrainNamed, 2
			out := run(t, c.o, c.req, c.first, good)
			require.Len(t, out.asked, 2)
			require.Empty(t, out.asked[0].ToolChoice.Name)
			require.False(t, out.asked[0].Tools[0].Strict)
			require.Equal(t, c.named, out.asked[1].ToolChoice.Name == "weather" && out.asked[1].Tools[0].Strict)
			require.False(t, c.req.Tools[0].Strict, "the caller's request is as it was")
		})
	}
	require.Error(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{Constrain: 9}}.Validate())
	out := run(t, argsvalidate.Options{}, request(), bad, good)
	require.Empty(t, out.asked[1].ToolChoice.Name, "off by default")
}

// A refused constraint costs a model call and no attempt, and is not sent again.
func TestRefusedConstraint(t *testing.T) {
	t.Parallel()
	bad, good := middlewaretest.Calls("weather", `{}`), middlewaretest.Calls("weather", goodWeather)
	refused := middlewaretest.Fail(&middleware.ModelError{StatusCode: http.StatusBadRequest, Message: "Thinking may not be enabled when tool_choice forces tool use."})
	o := argsvalidate.Options{MaxAttempts: 3, Advanced: argsvalidate.Advanced{Constrain: argsvalidate.ConstrainNamed}}
	choices := func(turns ...middlewaretest.Turn) (names []string) {
		out := run(t, o, request(), turns...)
		require.NoError(t, out.err)
		for _, r := range out.asked {
			names = append(names, r.ToolChoice.Name)
		}
		return names
	}
	require.Equal(t, []string{"", "weather", "", ""}, choices(bad, refused, bad, good), "three attempts, four model calls")
	require.Equal(t, []string{"", "weather", "", ""}, choices(bad, middlewaretest.Text("I cannot."), bad, good))
	require.Equal(t, []string{"", "weather", ""}, choices(bad, middlewaretest.Fail(middleware.ErrUnencodable), good))
	overloaded := &middleware.ModelError{StatusCode: http.StatusServiceUnavailable}
	out := run(t, o, request(), bad, middlewaretest.Fail(overloaded))
	require.ErrorIs(t, out.err, overloaded, "another failure is returned")
	require.Len(t, out.asked, 2)
}

// The text of a constrained answer becomes a call, and no sink sees it.
func TestConstrainResponseFormat(t *testing.T) {
	t.Parallel()
	bad := middlewaretest.Calls("weather", `{}`)
	o := argsvalidate.Options{MaxAttempts: 2, Advanced: argsvalidate.Advanced{Constrain: argsvalidate.ConstrainResponseFormat}}
	for name, c := range map[string]struct {
		text string
		call bool
	}{
		"a call":         {`{"name": "weather", "arguments": {"city":"Oslo"}}`, true},
		"another name":   {`{"name": "rm_all", "arguments": {"city":"Oslo"}}`, false},
		"cut off":        {`{"name": "weather", "arguments": {"city":"Os`, false},
		"text around it": {`Here: {"name": "weather", "arguments": {"city":"Oslo"}}`, false},
		"no object":      {`{"name": "weather", "arguments": "Oslo"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req, shown := request(), ""
			req.Sink = func(e middleware.Event) error { shown += e.Text; return nil }
			turns := []middlewaretest.Turn{bad, middlewaretest.Text(c.text), middlewaretest.Calls("weather", goodWeather)}
			if c.call {
				turns = turns[:2]
			}
			out := run(t, o, req, turns...)
			require.NoError(t, out.err)
			require.JSONEq(t, `{"type":"object","properties":{"name":{"const":"weather"},"arguments":`+closed(out.asked[0].Tools[0])+`},"required":["name","arguments"],"additionalProperties":false}`, string(out.asked[1].Output))
			require.Empty(t, out.asked[0].Output)
			require.Empty(t, shown)
			require.Equal(t, middleware.Valid, out.report.Status)
			require.JSONEq(t, goodWeather, out.resp.Message.ToolCalls[0].Arguments)
			require.Empty(t, out.resp.Message.Text())
			if c.call {
				require.Equal(t, middleware.FinishToolCalls, out.resp.FinishReason)
				require.NotEmpty(t, out.resp.Message.ToolCalls[0].ID)
			} else {
				require.Empty(t, out.asked[2].Output)
			}
		})
	}
	wrong := run(t, o, request(), bad, middlewaretest.Text(`{"name": "weather", "arguments": {"town":"Oslo"}}`))
	require.ErrorIs(t, wrong.err, argsvalidate.ErrExhausted, "a server may ignore the schema: the call is validated")
	refs := request()
	refs.Tools[0].Parameters = []byte(`{"type":"object","properties":{"city":{"$ref":"#/$defs/c"}},"required":["city"],"$defs":{"c":{"type":"string"}}}`)
	require.Empty(t, run(t, o, refs, bad, middlewaretest.Calls("weather", goodWeather)).asked[1].Output)
}

// closed is the schema of a tool, whose object admits no other members.
func closed(tool middleware.Tool) string {
	s := string(tool.Parameters)
	return s[:len(s)-1] + `,"additionalProperties":false}`
}
