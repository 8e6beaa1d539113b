package argsvalidate_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

// always answers with the same call, of which the arguments differ from answer
// to answer, so that it is not ended as a repetition.
func always(n int) []middlewaretest.Turn {
	turns := make([]middlewaretest.Turn, n)
	for i := range turns {
		turns[i] = answer(call(fmt.Sprint(i+1), "weather", fmt.Sprintf(`{"days": %d}`, -i)))
	}
	return turns
}

func TestAttemptsAreCounted(t *testing.T) {
	t.Parallel()
	for set, want := range map[int]int{0: 3, 1: 1, 2: 2, 5: 5} {
		t.Run(fmt.Sprintf("MaxAttempts %d", set), func(t *testing.T) {
			t.Parallel()
			out := run(t, argsvalidate.Options{MaxAttempts: set}, request(), always(want)...)
			require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
			require.Equal(t, middleware.Invalid, out.report.Status)
			require.Len(t, out.report.Attempts, want)
		})
	}
}

func TestAttemptsAreCountedPerInvocation(t *testing.T) {
	t.Parallel()
	model := middlewaretest.NewModel(t, append(always(3), always(3)...)...)
	layer := argsvalidate.New(argsvalidate.Options{})(model.Call)
	for range 2 {
		_, err := layer(t.Context(), request())
		require.ErrorIs(t, err, argsvalidate.ErrExhausted)
		require.Len(t, middleware.ReportOf(nil, err).Attempts, 3)
	}
}

func TestLastAttemptIsValidated(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(), append(always(2), answer(call("3", "weather", goodWeather)))...)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{goodWeather}, out.arguments())
}

func TestAnswerWithoutCallsIsReturnedAsItIs(t *testing.T) {
	t.Parallel()
	resp := &middleware.Response{Message: middleware.Assistant("hello")}
	got, err := argsvalidate.New(argsvalidate.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return resp, nil
	})(t.Context(), request())
	require.NoError(t, err)
	require.Same(t, resp, got)
	require.Equal(t, middleware.NoCalls, got.Report.Status)
}

func TestTextAnswerToAReaskIsAccepted(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(), always(1)[0], middlewaretest.Text("I cannot."))
	require.NoError(t, out.err)
	require.Equal(t, "I cannot.", out.resp.Message.Text())
	require.Len(t, out.report.Attempts, 2)
	require.NotEqual(t, middleware.Invalid, out.report.Status)
}

func TestUsageIsTheSumOverAttempts(t *testing.T) {
	t.Parallel()
	bad, good := middlewaretest.Calls("weather", badWeather), middlewaretest.Calls("weather", goodWeather)
	out := run(t, argsvalidate.Options{}, request(), bad, good)
	require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, out.resp.Usage)
	require.EqualValues(t, 15, out.resp.ContextTokens(), "of the answer alone")

	out = run(t, argsvalidate.Options{MaxAttempts: 2}, request(), bad, bad)
	require.Equal(t, middleware.Usage{InputTokens: 20, OutputTokens: 10}, out.report.Usage())
}

// Only the messages of the next request differ, and they accumulate.
func TestReaskAppendsFailedTurns(t *testing.T) {
	t.Parallel()
	req := request()
	req.ToolChoice.Mode, req.MaxTokens, req.Model = middleware.ToolRequired, 100, "m"
	out := run(t, argsvalidate.Options{}, req, always(3)...)
	for n, asked := range out.asked {
		require.Len(t, asked.Messages, 1+2*n)
		plain := *asked
		plain.Messages = req.Messages
		require.Equal(t, middleware.MarkInvalid(req), &plain)
	}
	for n := range 2 {
		turn := out.asked[2].Messages[1+2*n:]
		require.Equal(t, out.report.Attempts[n].Message, turn[0])
		require.Equal(t, fmt.Sprint(n+1), turn[1].ToolCallID)
	}
}

// The whole turn of the model goes into the history, not its calls alone.
func TestReaskKeepsTheWholeTurn(t *testing.T) {
	t.Parallel()
	native := &middleware.Native{Dialect: "d", Raw: `{"signed": true}`}
	m := middleware.Message{
		Role: middleware.RoleAssistant,
		Parts: []middleware.Part{
			{Kind: middleware.PartReasoning, Text: "hm", Native: native},
			{Text: "Let me see."},
			{Kind: middleware.PartOpaque, Native: native},
		},
		ToolCalls: []middleware.ToolCall{{ID: "1", Name: "weather", Arguments: badWeather, Native: native}},
		Native:    native,
	}
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Reply(&middleware.Response{Message: m}), answer(call("2", "weather", goodWeather)))
	require.Equal(t, m, out.told(2)[0])
}

// What stands inside runs on each attempt, what stands outside sees one call.
func TestLayersInsideAndOutside(t *testing.T) {
	t.Parallel()
	counter := func(n *int) middleware.Middleware {
		return func(next middleware.ModelCall) middleware.ModelCall {
			return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
				*n++
				return next(ctx, req)
			}
		}
	}
	var outside, inside int
	model := middlewaretest.NewModel(t, append(always(2), answer(call("3", "weather", goodWeather)))...)
	resp, err := middleware.Chain(counter(&outside), argsvalidate.New(argsvalidate.Options{}), counter(&inside))(model.Call)(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, []int{1, 3}, []int{outside, inside})
	require.Equal(t, goodWeather, resp.Message.ToolCalls[0].Arguments, "failed turns never leave the step")
}
