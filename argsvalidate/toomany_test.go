package argsvalidate_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

const callsLimit = 128 // the default of Limits.Calls

// counted is a tool with an integer n, which counts the calls that it decodes.
func counted(decoded *int) middleware.Tool {
	return middleware.Tool{Name: "count", Parameters: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`),
		Decode: func(string) error {
			*decoded++
			return nil
		}}
}

// counts returns n calls of count; those at bad have no usable argument.
func counts(n int, bad ...int) []middleware.ToolCall {
	calls := make([]middleware.ToolCall, n)
	for i := range calls {
		calls[i] = middleware.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "count", Arguments: fmt.Sprintf(`{"n":%d}`, i)}
	}
	for _, i := range bad {
		calls[i].Arguments = `{"n":[]}`
	}
	return calls
}

// tally counts the issues of verdicts by code.
func tally(verdicts []middleware.Verdict) map[string]int {
	found := map[string]int{}
	for _, v := range verdicts {
		for _, i := range v.Issues {
			found[i.Code]++
		}
	}
	return found
}

func TestTooManyCallsAreNotValidated(t *testing.T) {
	t.Parallel()
	decoded := 0
	v := argsvalidate.NewValidator(argsvalidate.Options{})
	verdicts, err := v.Validate(t.Context(), []middleware.Tool{counted(&decoded)}, counts(1000, 5)...)
	require.ErrorIs(t, err, argsvalidate.ErrInvalid)
	require.Len(t, verdicts, 1000)
	require.Equal(t, callsLimit-1, decoded)
	require.Equal(t, map[string]int{"type": 1, "too_many_calls": 1, "undecided": 1000 - callsLimit - 1}, tally(verdicts))
	require.Equal(t, "too_many_calls", verdicts[callsLimit].Issues[0].Code)
	require.Contains(t, verdicts[callsLimit].Issues[0].Message, "1000 tool calls")
	var invalid *argsvalidate.Error
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Replies, callsLimit)

	_, err = v.Validate(t.Context(), []middleware.Tool{counted(&decoded)}, counts(callsLimit)...)
	require.NoError(t, err, "as many as are allowed")
}

// TestPastALimit: a message that a re-ask cannot mend ends the step after one model call, as the
// last attempt would.
func TestPastALimit(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls []middleware.ToolCall
		code  string
	}{
		"arguments, cut off": {[]middleware.ToolCall{call("a", "count", `{"n":1`+strings.Repeat(" ", 1<<20))}, "truncated"},
		"calls":              {counts(300, 5), "too_many_calls"},
		"arguments":          {[]middleware.ToolCall{call("a", "count", `{"n":1}`), call("b", "count", `{"n":`+strings.Repeat(" ", 1<<20)+`1}`)}, "size"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, policy := range []batch.Policy{batch.ReissueAll, batch.KeepValid} {
				decoded := 0
				req, resp := request(counted(&decoded)), answer(c.calls...)
				if req.MaxTokens = 1000; c.code == "truncated" {
					resp = truncated(c.calls...)
				}
				out := run(t, argsvalidate.Options{Batch: policy}, req, resp)
				require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
				require.ErrorIs(t, out.err, argsvalidate.ErrInvalid)
				require.ErrorContains(t, out.err, "after 1 attempt")
				require.Contains(t, out.report.Notes, "not asked again: the message is past a limit ("+c.code+"), and the model would send as much again")
				out = run(t, argsvalidate.Options{Batch: policy, OnExhausted: middleware.Pass}, req, resp)
				require.NoError(t, out.err)
				require.Equal(t, middleware.Invalid, out.report.Status)
				require.Len(t, out.resp.Message.ToolCalls, len(c.calls))
			}
		})
	}
	decoded := 0
	deep := call("a", "count", `{"n":`+strings.Repeat("[", 100)+strings.Repeat("]", 100)+`}`)
	run(t, argsvalidate.Options{MaxAttempts: 2}, request(counted(&decoded)), answer(deep), answer(counts(1)...)) // a model can send less depth
}

func TestTooManyCallsWhenExhausted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		policy middleware.OnExhausted
		calls  int
		status middleware.Status
	}{
		"pass": {middleware.Pass, 300, middleware.Invalid},
		"drop": {middleware.DropInvalid, callsLimit - 1, middleware.Valid},
	} {
		t.Run(name, func(t *testing.T) {
			decoded, shown := 0, 0
			req := request(counted(&decoded))
			req.Sink = func(e middleware.Event) error {
				if e.Kind == middleware.EventToolCall {
					shown++
				}
				return nil
			}
			out := run(t, argsvalidate.Options{MaxAttempts: 1, OnExhausted: c.policy}, req, answer(counts(300, 5)...))
			require.NoError(t, out.err)
			require.Equal(t, c.status, out.report.Status)
			require.Len(t, out.resp.Message.ToolCalls, c.calls)
			require.Equal(t, callsLimit-1, shown, "the valid calls within the limit")
		})
	}
	t.Run("raise", func(t *testing.T) {
		decoded := 0
		out := run(t, argsvalidate.Options{MaxAttempts: 1}, request(counted(&decoded)), answer(counts(300)...))
		require.Len(t, failure(t, out.err).Replies, callsLimit)
		require.ErrorContains(t, out.err, "too_many_calls")
	})
}

// A batch that is held outlives a message with too many calls.
func TestTooManyCallsKeepWhatIsHeld(t *testing.T) {
	t.Parallel()
	decoded := 0
	out := run(t, argsvalidate.Options{Batch: batch.KeepValid, OnExhausted: middleware.DropInvalid}, request(counted(&decoded)), answer(counts(2, 1)...),
		answer(counts(300)...))
	require.NoError(t, out.err)
	require.Equal(t, middleware.Valid, out.report.Status)
	require.Equal(t, []string{`{"n":0}`}, out.arguments())
}

func TestLimitsCalls(t *testing.T) {
	t.Parallel()
	require.Error(t, argsvalidate.Options{Limits: argsvalidate.Limits{Calls: -1}}.Validate())
	require.Error(t, argsvalidate.Options{Limits: argsvalidate.Limits{Calls: 1<<16 + 1}}.Validate())
	decoded := 0
	v := argsvalidate.NewValidator(argsvalidate.Options{Limits: argsvalidate.Limits{Calls: 2}})
	verdicts, err := v.Validate(t.Context(), []middleware.Tool{counted(&decoded)}, counts(4)...)
	require.Error(t, err)
	require.Equal(t, 2, decoded)
	require.Equal(t, map[string]int{"too_many_calls": 1, "undecided": 1}, tally(verdicts))
}

// The codes of the limits are not reserved: a rule that uses one is re-asked.
func TestRuleWithTheCodeOfALimit(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"size", "too_many_calls"} {
		rule := argsvalidate.RuleFunc(func(_ context.Context, c *argsvalidate.Call) ([]middleware.Issue, error) {
			if c.Arguments == `{"city": "Everywhere"}` {
				return []middleware.Issue{{Code: code, Pointer: "/city", Message: "too large"}}, nil
			}
			return nil, nil
		})
		out := run(t, argsvalidate.Options{Rules: []argsvalidate.Rule{rule}}, request(), middlewaretest.Calls("weather", `{"city": "Everywhere"}`), middlewaretest.Calls("weather", goodWeather))
		require.NoError(t, out.err, code)
		require.Len(t, out.asked, 2, code)
	}
}
