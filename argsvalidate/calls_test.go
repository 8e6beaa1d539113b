package argsvalidate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func truncated(calls ...middleware.ToolCall) middlewaretest.Turn {
	return middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", calls...), FinishReason: middleware.FinishLength})
}

// A provider that parses may have closed the braces itself, so the last call
// of a cut answer is not trusted even where it satisfies its schema.
func TestTruncatedLastCall(t *testing.T) {
	t.Parallel()
	for _, args := range []string{goodWeather, `{"city": "Os`, ``} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{}, capped(50),
				truncated(call("1", "note", goodNote), call("2", "weather", args)), middlewaretest.Calls("note", goodNote, "weather", goodWeather))
			verdicts := out.report.Attempts[0].Verdicts
			require.True(t, verdicts[0].OK(), "the calls before it were ended by the model itself")
			require.Equal(t, []string{"truncated"}, codes(verdicts[1]))
			told := out.told(2)
			require.Contains(t, told[1].Text(), "not executed")
			require.False(t, told[1].IsError)
			require.Contains(t, told[2].Text(), "cut off")
			require.Contains(t, told[2].Text(), "only the required properties: city")
			require.True(t, told[2].IsError)
		})
	}
}

func TestUnknownToolIsRefused(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("wether", goodWeather), middlewaretest.Calls("weather", goodWeather))
	require.Equal(t, []string{"unknown_tool"}, codes(out.report.Attempts[0].Verdicts[0]))
	require.Equal(t, "Tool 'wether' does not exist. Did you mean 'weather'? Available tools: weather, note. "+
		"Call one of them by its exact name.", out.told(2)[1].Text())
}

func TestUnknownToolMayPass(t *testing.T) {
	t.Parallel()
	o := argsvalidate.Options{UnknownTools: argsvalidate.PassUnknown}
	out := run(t, o, request(), middlewaretest.Calls("other", `{"a": null, "b": []}`))
	require.Equal(t, []string{`{"a": null, "b": []}`}, out.arguments(), "what no schema describes is not stripped")
	require.Equal(t, middleware.Unchecked, out.report.Status)

	v := verdictOf(t, o, note, "[]")
	require.Equal(t, []string{"not_object"}, codes(v))
	verdicts, err := argsvalidate.NewValidator(unmended(o)).Validate(t.Context(), nil, call("1", "other", "[]"))
	require.Error(t, err, "but an object it has to be")
	require.Equal(t, []string{"not_object"}, codes(verdicts[0]))
}

func TestEmptyNameIsAnUnknownTool(t *testing.T) {
	t.Parallel()
	v := argsvalidate.NewValidator(unmended(argsvalidate.Options{}))
	verdicts, err := v.Validate(t.Context(), []middleware.Tool{weather}, call("1", "", goodWeather))
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.Equal(t, []string{"unknown_tool"}, codes(verdicts[0]))
}

func TestNoToolsAtAll(t *testing.T) {
	t.Parallel()
	req := &middleware.Request{Messages: []middleware.Message{middleware.User("hi")}}
	out := run(t, argsvalidate.Options{}, req, middlewaretest.Calls("weather", "{}"), middlewaretest.Text("well then"))
	require.Contains(t, out.told(2)[1].Text(), "There are no tools: answer without one.")
}

func TestNamesAreBounded(t *testing.T) {
	t.Parallel()
	var tools []middleware.Tool
	for n := range 5000 {
		tools = append(tools, tool(fmt.Sprintf("tool_number_%d", n), ""))
	}
	name := strings.Repeat("n", 1<<20)
	out := run(t, argsvalidate.Options{}, request(tools...), middlewaretest.Calls(name, "{}"), middlewaretest.Text("sorry"))
	told := out.told(2)
	require.Less(t, len(told[1].Text()), 3000)
	require.Contains(t, told[1].Text(), "and 4950 more")
	require.Len(t, told[0].ToolCalls[0].Name, 64, "providers refuse longer names in the history")
	require.Equal(t, told[0].ToolCalls[0].Name, told[1].ToolName)
}

func TestKinds(t *testing.T) {
	t.Parallel()
	custom := middleware.ToolCall{ID: "1", Name: "patch", Arguments: "*** Begin", Kind: middleware.KindCustom}
	builtin := middleware.ToolCall{ID: "2", Name: "computer", Arguments: "", Kind: middleware.KindBuiltin}
	t.Run("custom is never validated", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{Rules: []argsvalidate.Rule{refuseAll}}, request(), answer(custom))
		require.Equal(t, middleware.Unchecked, out.report.Status)
		require.Equal(t, []string{"*** Begin"}, out.arguments())
	})
	t.Run("custom beside a bad call is answered", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(), answer(custom, call("3", "weather", badWeather)), middlewaretest.Text("no"))
		told := out.told(2)
		require.Equal(t, "*** Begin", told[0].ToolCalls[0].Arguments)
		require.Equal(t, "1", told[1].ToolCallID)
		require.False(t, told[1].IsError)
	})
	t.Run("a turn with a builtin call is not asked again", func(t *testing.T) {
		t.Parallel()
		out := run(t, argsvalidate.Options{}, request(), answer(builtin, call("3", "weather", badWeather)))
		require.Equal(t, middleware.Invalid, out.report.Status)
		require.Equal(t, []string{"not asked again: the turn holds a call that is answered in a form of its own (computer)"}, out.report.Notes)
	})
	t.Run("a builtin call alone is fine", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, middleware.Unchecked, run(t, argsvalidate.Options{}, request(), answer(builtin)).report.Status)
	})
	t.Run("a hosted tool cannot be called", func(t *testing.T) {
		t.Parallel()
		req := request(middleware.Tool{Name: "web_search", Kind: middleware.KindHosted}, weather)
		out := run(t, argsvalidate.Options{}, req, middlewaretest.Calls("web_search", "{}"), middlewaretest.Text("no"))
		require.Contains(t, out.told(2)[1].Text(), "Available tools: weather.")
	})
	t.Run("a tool without a schema takes any object", func(t *testing.T) {
		t.Parallel()
		for _, schema := range []string{"", "null"} {
			v := verdictOf(t, argsvalidate.Options{}, tool("free", schema), `{"a": null, "b": {"c": []}}`)
			require.Equal(t, `{"a": null, "b": {"c": []}}`, v.Call.Arguments)
		}
	})
}

func TestOtherChoices(t *testing.T) {
	t.Parallel()
	resp := &middleware.Response{
		Message: middleware.Assistant("", call("1", "weather", badWeather)),
		Choices: []middleware.Message{middleware.Assistant("", call("2", "weather", goodWeather))},
	}
	out := run(t, argsvalidate.Options{OnExhausted: middleware.Pass}, request(), middlewaretest.Reply(resp))
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Equal(t, []string{"not asked again: another choice of the answer holds tool calls, which were not validated"}, out.report.Notes)
	require.Equal(t, resp.Choices, out.resp.Choices)

	resp.Choices = []middleware.Message{middleware.Assistant("or in words")}
	run(t, argsvalidate.Options{}, request(), middlewaretest.Reply(resp), answer(call("1", "weather", goodWeather)))
}

func TestEveryCallAndEveryIssueIsTold(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(),
		middlewaretest.Calls("weather", `{"city": 1, "days": 0}`, "note", goodNote, "weather", `{"days": "x", "more": 1}`, "note", badNote),
		middlewaretest.Text("no"))
	told := out.told(2)[1:]
	require.Len(t, told, 4)
	for i, m := range told {
		require.Equal(t, out.report.Attempts[0].Message.ToolCalls[i].ID, m.ToolCallID, "in call order")
		require.Equal(t, out.report.Attempts[0].Message.ToolCalls[i].Name, m.ToolName)
		require.Equal(t, i != 1, m.IsError, "an error for the bad ones only")
	}
	require.Contains(t, told[0].Text(), "[city]")
	require.Contains(t, told[0].Text(), "[days]")
	for _, path := range []string{"[city]", "[days]", "[more]"} {
		require.Contains(t, told[2].Text(), path)
	}
}
