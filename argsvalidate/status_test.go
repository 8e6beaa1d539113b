package argsvalidate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// A call that was not validated is never reported as valid.
func TestStatus(t *testing.T) {
	t.Parallel()
	broken := tool("broken", `{"type":"objet"}`)
	other := middlewaretest.Reply(&middleware.Response{
		Message: middleware.Assistant("", call("1", "weather", goodWeather)), FinishReason: middleware.FinishToolCalls,
		Choices: []middleware.Message{middleware.Assistant("", call("2", "weather", badWeather))}})
	for _, c := range []struct {
		name string
		o    argsvalidate.Options
		turn middlewaretest.Turn
		want middleware.Status
	}{
		{"no call", argsvalidate.Options{}, middlewaretest.Text("hello"), middleware.NoCalls},
		{"valid", argsvalidate.Options{}, answer(call("1", "weather", goodWeather)), middleware.Valid},
		{"unusable schema", argsvalidate.Options{}, answer(call("1", "broken", `{}`)), middleware.Unchecked},
		{"unusable schema under Pass", argsvalidate.Options{OnExhausted: middleware.Pass}, answer(call("1", "broken", `{}`)), middleware.Unchecked},
		{"beside a valid call", argsvalidate.Options{}, answer(call("1", "weather", goodWeather), call("2", "broken", `{}`)), middleware.Unchecked},
		{"beside an invalid call", argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass}, answer(call("1", "broken", `{}`), call("2", "weather", badWeather)), middleware.Invalid},
		{"what is left is unchecked", argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}, answer(call("1", "broken", `{}`), call("2", "weather", badWeather)), middleware.Unchecked},
		{"what is left is valid", argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.DropInvalid}, answer(call("1", "weather", goodWeather), call("2", "weather", badWeather)), middleware.Valid},
		{"another choice", argsvalidate.Options{}, other, middleware.Unchecked},
		{"refused", argsvalidate.Options{MaxAttempts: 1, OnExhausted: middleware.Pass, Advanced: argsvalidate.Advanced{UnusableSchemas: argsvalidate.RejectUnusable}}, answer(call("1", "broken", `{}`)), middleware.Invalid},
		{"refused, but for a tool without a schema", argsvalidate.Options{Advanced: argsvalidate.Advanced{UnusableSchemas: argsvalidate.RejectUnusable}}, answer(call("1", "free", `{}`)), middleware.Valid},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			out := run(t, c.o, request(broken, weather, tool("free", "")), c.turn)
			require.NoError(t, out.err)
			require.Equal(t, c.want, out.resp.Report.Status)
			for _, v := range out.report.Attempts[0].Verdicts {
				require.Equal(t, v.Call.Name == "broken", v.Unchecked, v.Call.Name)
			}
		})
	}
}

func TestCallsToToolsWithoutAUsableSchemaAreRefused(t *testing.T) {
	t.Parallel()
	req := request(tool("broken", `{"type":"objet"}`), weather)
	out := run(t, argsvalidate.Options{Advanced: argsvalidate.Advanced{UnusableSchemas: argsvalidate.RejectUnusable}}, req,
		middlewaretest.Calls("broken", `{}`), middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, []string{"unusable_schema"}, codes(out.report.Attempts[0].Verdicts[0]))
	require.Equal(t, "Tool 'broken' cannot be used now, and was not executed. Do not call it again: call another tool, or answer without a tool.", out.told(2)[1].Text())
	require.Equal(t, middleware.Valid, out.report.Status)
}
