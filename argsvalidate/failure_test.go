package argsvalidate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/middleware/middlewaretest"
)

func TestModelErrorInAReaskKeepsTheLedger(t *testing.T) {
	t.Parallel()
	down := &middleware.ModelError{StatusCode: 503, Err: errors.New("overloaded")}
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Calls("weather", badWeather), middlewaretest.Fail(down))
	require.ErrorIs(t, out.err, error(down))
	var found *middleware.ModelError
	require.ErrorAs(t, out.err, &found)
	require.Same(t, down, found)
	require.ErrorIs(t, out.err, argsvalidate.ErrInvalid)
	require.NotErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.ErrorContains(t, out.err, "ended in attempt 2: "+down.Error())

	require.Len(t, out.report.Attempts, 2)
	first := out.report.Attempts[0]
	require.Equal(t, badWeather, first.Message.ToolCalls[0].Arguments, "the first answer is not lost")
	require.NotEmpty(t, first.Verdicts[0].Issues)
	require.NotEmpty(t, first.Replies)
	require.ErrorIs(t, out.report.Attempts[1].Err, error(down))
	require.EqualValues(t, 10, out.report.Usage().InputTokens)
}

// A re-ask that fails takes nothing away: with Pass and DropInvalid the caller gets the
// response of the attempt before it.
func TestModelErrorInAReask(t *testing.T) {
	t.Parallel()
	refused := &middleware.ModelError{StatusCode: 400}
	for name, c := range map[string]struct {
		policy middleware.OnExhausted
		keep   batch.Policy
		err    error
		calls  int // of the response; 0 is an error
	}{
		"pass":             {middleware.Pass, 0, refused, 2},
		"pass, network":    {middleware.Pass, 0, io.ErrUnexpectedEOF, 2},
		"pass, nothing":    {middleware.Pass, 0, middleware.ErrNoResponse, 2},
		"pass, a limit":    {middleware.Pass, 0, middleware.ErrNotSent, 2},
		"pass, keep valid": {middleware.Pass, batch.KeepValid, refused, 2},
		"drop":             {middleware.DropInvalid, 0, refused, 1},
		"raise":            {0, 0, refused, 0},
		"a budget":         {middleware.Pass, 0, middleware.ErrBudget, 0},
		"cancelled":        {middleware.Pass, 0, context.Canceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			attempts := 0
			var sent []middleware.Event
			req := request()
			req.Sink = func(e middleware.Event) error { sent = append(sent, e); return nil }
			resp, err := argsvalidate.New(argsvalidate.Options{OnExhausted: c.policy, Batch: c.keep})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
				if attempts++; attempts == 1 {
					return &middleware.Response{
						Message:      middleware.Assistant("Well.", call("1", "weather", badWeather), call("2", "weather", goodWeather)),
						FinishReason: middleware.FinishToolCalls, Usage: middleware.Usage{InputTokens: 7},
					}, nil
				}
				if c.err == context.Canceled {
					cancel()
				}
				return nil, c.err
			})(ctx, req)
			require.Equal(t, 2, attempts)
			report := middleware.ReportOf(resp, err)
			require.Len(t, report.Attempts, 2)
			require.EqualValues(t, 7, report.Usage().InputTokens)
			if c.calls == 0 {
				require.ErrorIs(t, err, c.err)
				require.ErrorIs(t, err, argsvalidate.ErrInvalid)
				return
			}
			require.NoError(t, err)
			require.Len(t, resp.Message.ToolCalls, c.calls)
			require.Equal(t, "Well.", resp.Message.Text())
			require.Equal(t, 0, report.Final)
			require.ErrorIs(t, report.Attempts[1].Err, c.err)
			require.Contains(t, strings.Join(report.Notes, "\n"), "attempt 2 failed")
			require.Equal(t, c.policy == middleware.Pass, report.Status == middleware.Invalid)
			require.NotEmpty(t, sent)
			require.Equal(t, middleware.EventToolCall, sent[len(sent)-1].Kind)
			require.Equal(t, "2", sent[len(sent)-1].Call.ID, "only the valid call is shown")
		})
	}
}

// The same for a response without the call that the request demands.
func TestModelErrorInAReaskForACall(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for policy, passes := range map[middleware.OnExhausted]bool{middleware.Pass: true, middleware.Raise: false, middleware.DropInvalid: false, 0: false} {
		req := request()
		req.ToolChoice.Mode = middleware.ToolRequired
		out := run(t, argsvalidate.Options{OnExhausted: policy}, req, middlewaretest.Text("No."), middlewaretest.Fail(down))
		require.Len(t, out.report.Attempts, 2)
		if passes {
			require.NoError(t, out.err)
			require.Equal(t, "No.", out.resp.Message.Text())
			continue
		}
		require.ErrorIs(t, out.err, down, policy)
	}
}

func TestModelErrorAtFirst(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong key")
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Fail(wrong))
	require.ErrorIs(t, out.err, wrong)
	require.NotErrorIs(t, out.err, argsvalidate.ErrExhausted)
	require.Len(t, out.report.Attempts, 1)
}

func TestModelThatReturnsNothing(t *testing.T) {
	t.Parallel()
	out := run(t, argsvalidate.Options{}, request(), middlewaretest.Reply(nil))
	require.ErrorIs(t, out.err, middleware.ErrNoResponse)

	out = run(t, argsvalidate.Options{}, request(), answer(call("1", "weather", badWeather)), middlewaretest.Reply(nil))
	require.ErrorIs(t, out.err, middleware.ErrNoResponse)
	require.Len(t, out.report.Attempts, 2)
}

func TestContextCancelledBefore(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := middlewaretest.NewModel(t)
	_, err := argsvalidate.New(argsvalidate.Options{})(model.Call)(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
}

func TestContextCancelledBetweenAttempts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	quit := errors.New("the user went away")
	asked := 0
	_, err := argsvalidate.New(argsvalidate.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		asked++
		cancel(quit)
		return &middleware.Response{Message: middleware.Assistant("", call("1", "weather", badWeather))}, nil
	})(ctx, request())
	require.Equal(t, 1, asked)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, quit)
	require.Equal(t, []string{"required", "minimum"}, codes(failure(t, err).Verdicts[0]))
	require.ErrorContains(t, err, "argsvalidate: ended before attempt 2: context canceled")
	require.Len(t, middleware.ReportOf(nil, err).Attempts, 1)
}

func TestContextCancelledDuringAnAttempt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	_, err := argsvalidate.New(argsvalidate.Options{})(func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		if asked++; asked == 2 {
			cancel()
			return nil, ctx.Err()
		}
		return &middleware.Response{Message: middleware.Assistant("", call("1", "weather", badWeather))}, nil
	})(ctx, request())
	require.Equal(t, 2, asked)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, badWeather, failure(t, err).Response.Message.ToolCalls[0].Arguments, "what was wrong last stands beside it")
	require.Len(t, middleware.ReportOf(nil, err).Attempts, 2)
}

// A refusal by the provider is not lost either when the context ends after it.
func TestContextCancelledAfterARefusal(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := argsvalidate.New(argsvalidate.Options{})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
		cancel()
		return nil, refusal
	})(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, middleware.ErrInvalidToolCall)
	require.ErrorIs(t, failure(t, err), argsvalidate.ErrInvalid)
}

func TestDeadlineEndsTheStep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
		defer cancel()
		asked := 0
		_, err := argsvalidate.New(argsvalidate.Options{MaxAttempts: 10})(func(context.Context, *middleware.Request) (*middleware.Response, error) {
			asked++
			time.Sleep(time.Minute)
			return &middleware.Response{Message: middleware.Assistant("", call("1", "weather", badWeather))}, nil
		})(ctx, request())
		require.Equal(t, 2, asked, "the third one would begin after the deadline")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		failure(t, err)
	})
}

// Every reason is found through any depth of wrapping.
func TestErrorsAreFoundThroughWrapping(t *testing.T) {
	t.Parallel()
	broken := errors.New("database is down")
	rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, broken })
	raise := argsvalidate.Options{MaxAttempts: 1}
	for name, c := range map[string]struct {
		o         argsvalidate.Options
		args      string
		is, isNot []error
		errorType string
	}{
		"exhausted": {raise, badWeather, []error{argsvalidate.ErrExhausted, argsvalidate.ErrInvalid}, []error{argsvalidate.ErrRule}, "invalid_tool_call"},
		"rule": {argsvalidate.Options{Rules: []argsvalidate.Rule{rule}}, goodWeather, []error{argsvalidate.ErrRule, broken},
			[]error{argsvalidate.ErrExhausted, argsvalidate.ErrInvalid}, "rule_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out := run(t, c.o, request(), answer(call("1", "weather", c.args)))
			err := fmt.Errorf("run 7: %w", errors.Join(errors.New("other"), fmt.Errorf("step 2: %w", out.err)))
			for _, target := range c.is {
				require.ErrorIs(t, err, target)
			}
			for _, target := range c.isNot {
				require.NotErrorIs(t, err, target)
			}
			require.Equal(t, c.errorType, failure(t, err).ErrorType())
			require.Len(t, middleware.ReportOf(nil, err).Attempts, 1)
		})
	}
}

func TestErrorTextHoldsNoArguments(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	raise := argsvalidate.Options{MaxAttempts: 1}
	for name, c := range map[string]struct {
		unknown argsvalidate.UnknownTools
		call    middleware.ToolCall
		want    string
	}{
		"a value":        {0, call("1", "weather", `{"city": {"hunter2": 1}, "days": "hunter2"}`), "weather: type"},
		"a key":          {0, call("1", "weather", `{"city": "a", "hunter2": 1}`), "weather: additionalProperties"},
		"no JSON":        {0, call("1", "weather", `{"city": hunter2`), "weather: syntax"},
		"a name":         {0, call("1", "hunter2", `{}`), "undeclared tool: unknown_tool"},
		"a passed name":  {argsvalidate.PassUnknown, call("1", "hunter2", `[]`), "undeclared tool: not_object"},
		"several issues": {0, call("1", "weather", `{"days": 0, "hunter2": 1}`), "weather: required, minimum, additionalProperties"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := raise
			o.UnknownTools = c.unknown
			out := run(t, o, request(), answer(c.call))
			require.NotContains(t, out.err.Error(), secret)
			require.EqualError(t, out.err, "argsvalidate: attempts exhausted: arguments still invalid after 1 attempts; "+c.want)
		})
	}
}

// A message with one half of what a provider-executed tool did is not dropped: the model is
// not re-asked. Repairs are made as always.
func TestUnpairedMessage(t *testing.T) {
	t.Parallel()
	unpaired := middlewaretest.Reply(&middleware.Response{Message: middleware.Assistant("", call("1", "weather", badWeather)), FinishReason: middleware.FinishToolCalls, Unpaired: true})
	out := run(t, argsvalidate.Options{OnExhausted: middleware.Pass}, request(), unpaired)
	require.NoError(t, out.err)
	require.Equal(t, middleware.Invalid, out.report.Status)
	require.Contains(t, strings.Join(out.report.Notes, "\n"), "not asked again: the message holds a call or a result of a provider-executed tool")

	out = run(t, argsvalidate.Options{}, request(), unpaired)
	require.ErrorIs(t, out.err, argsvalidate.ErrExhausted)
}
