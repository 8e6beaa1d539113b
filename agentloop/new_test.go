package agentloop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t).Call
	late := says("late", "")
	late.Timeout = -time.Second
	for name, c := range map[string]struct {
		o    agentloop.Options
		want string
	}{
		"no name":             {tools(says("", "")), "agentloop: a tool has no name"},
		"long name":           {tools(says(strings.Repeat("x", 65), "")), "is longer than 64 bytes"},
		"taken name":          {tools(says("a", ""), says("a", "")), `agentloop: two tools are named a`},
		"no function":         {tools(rawTool("a", nil)), `agentloop: tool a has no function`},
		"negative timeout":    {tools(late), `agentloop: tool late: Timeout must not be negative, got -1s`},
		"negative steps":      {agentloop.Options{MaxSteps: -1}, "agentloop: Options.MaxSteps: must not be negative, got -1"},
		"negative failures":   {agentloop.Options{MaxFailures: -1}, "agentloop: Options.MaxFailures: must not be negative, got -1"},
		"negative parallel":   {agentloop.Options{Parallel: -1}, "agentloop: Options.Parallel: must not be negative, got -1"},
		"approval":            {tools(says("a", "").NeedsApproval()), `agentloop: tool "a" needs approval: Options.Validator must be set, to the one that the chain is built from`},
		"nil from middleware": {agentloop.Options{Tools: []agentloop.Tool{says("a", "")}, ToolMiddleware: func(agentloop.ToolFunc) agentloop.ToolFunc { return nil }}, `made tool "a" nil`},
		"name in both": {agentloop.Options{Tools: []agentloop.Tool{says("a", "")}, Request: &middleware.Request{Tools: []middleware.Tool{{Name: "a"}}}},
			`tool "a" is in Options.Tools and in Options.Request`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := agentloop.New(model, c.o)
			require.Nil(t, a)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := agentloop.New(nil, agentloop.Options{})
	require.EqualError(t, err, "agentloop: the model call is nil")
	_, err = agentloop.New(model, tools(says(strings.Repeat("x", 64), "")))
	require.NoError(t, err)
}

// A hosted tool needs no function: the provider runs it.
func TestNewTakesHostedTool(t *testing.T) {
	t.Parallel()
	_, err := agentloop.New(middlewaretest.NewModel(t).Call, tools(agentloop.Tool{Def: middleware.Tool{Name: "web", Kind: middleware.KindHosted}}))
	require.NoError(t, err)
}

// The template is sent with each call, and what becomes of it later is not.
func TestRequestTemplate(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, middlewaretest.Text("hi"))
	template := &middleware.Request{Model: "m", MaxTokens: 7, Messages: []middleware.Message{middleware.System("be brief")},
		Tools: []middleware.Tool{{Name: "web", Kind: middleware.KindHosted}}}
	a := newAgent(t, model.Call, agentloop.Options{Tools: []agentloop.Tool{weather()}, Request: template})
	template.Messages[0], template.Model = middleware.System("changed"), "changed"
	s := goState()
	require.NoError(t, a.Run(t.Context(), s))
	req := model.Requests()[0]
	require.Equal(t, "m", req.Model)
	require.Equal(t, 7, req.MaxTokens)
	require.Equal(t, "be brief", req.Messages[0].Text())
	require.Equal(t, "go", req.Messages[1].Text())
	require.Equal(t, []string{"web", "weather"}, []string{req.Tools[0].Name, req.Tools[1].Name})
	require.Len(t, s.Messages, 2, "the template is not part of the conversation")
}
