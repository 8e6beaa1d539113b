package argsvalidate_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// refusal is how Groq answers a tool call that its own model wrote wrongly.
var refusal = &middleware.ModelError{
	StatusCode: 400, Code: "tool_use_failed", Output: `<function=weather{"city": "hunter2"`, Err: middleware.ErrInvalidToolCall,
}

func TestRefusalOfTheProviderIsAnswered(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Fail(refusal), middlewaretest.Calls("weather", goodWeather))
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.report.Status)
	told := out.told(2)
	require.Len(t, told, 1, "there is no message of the model to reply to")
	require.Equal(t, middleware.RoleUser, told[0].Role)
	for _, text := range []string{"refused", "nothing was executed", `<function=weather{"city": "hunter2"`, "Available tools: weather, note."} {
		require.Contains(t, told[0].Text(), text)
	}
	require.Equal(t, told, out.report.Attempts[0].Replies)
}

func TestRefusalIsQuotedInBounds(t *testing.T) {
	t.Parallel()
	long := *refusal
	long.Output = strings.Repeat("x", 1<<20)
	var tools []middleware.Tool
	for n := range 5000 {
		tools = append(tools, tool(fmt.Sprintf("tool_%d", n), ""))
	}
	out := run(t, argsvalidate.Options{}, request(tools...), middlewaretest.Fail(&long), middlewaretest.Text("sorry"))
	require.Less(t, len(out.told(2)[0].Text()), 4000)
}

func TestRefusedUntilExhausted(t *testing.T) {
	t.Parallel()
	for _, policy := range []middleware.OnExhausted{0, middleware.Pass, middleware.Raise, middleware.DropInvalid} {
		t.Run(fmt.Sprint(policy), func(t *testing.T) {
			t.Parallel()
			refused := middlewaretest.Fail(fmt.Errorf("adapter: %w", refusal))
			out := run(t, argsvalidate.Options{OnExhausted: policy}, request(), refused, refused, refused)
			require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
			require.ErrorIs(t, out.err, middleware.ErrInvalidToolCall)
			require.True(t, errors.Is(out.err, argsvalidate.ErrInvalid))
			require.Nil(t, failure(t, out.err).Response, "there never was one")
			require.NotContains(t, out.err.Error(), "hunter2")
			require.Len(t, out.report.Attempts, 3)
			require.Equal(t, middleware.Invalid, out.report.Status)
		})
	}
}

// With Pass, an invalid message from before is better than nothing.
func TestRefusedAfterAnInvalidAnswer(t *testing.T) {
	t.Parallel()
	bad, refused := middlewaretest.Calls("weather", badWeather), middlewaretest.Fail(refusal)
	out := run(t, argsvalidate.Options{MaxAttempts: 2, OnExhausted: middleware.Pass}, request(), bad, refused)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.resp.Report.Status)
	require.Equal(t, []string{badWeather}, out.arguments())

	out = run(t, argsvalidate.Options{MaxAttempts: 2}, request(), bad, refused)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.Equal(t, badWeather, failure(t, out.err).Response.Message.ToolCalls[0].Arguments)
}
