package middleware_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/toolmend/toolmend/middleware"
)

var errBoom = errors.New("boom")

func tokens(in, out int64) middleware.Usage {
	return middleware.Usage{InputTokens: in, OutputTokens: out}
}

// scripted returns a model that gives the outcomes in order.
func scripted(outcomes ...func() (*middleware.Response, error)) middleware.ModelCall {
	n := 0
	return func(context.Context, *middleware.Request) (*middleware.Response, error) {
		n++
		return outcomes[n-1]()
	}
}

func says(text string, u middleware.Usage) func() (*middleware.Response, error) {
	return func() (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant(text), Usage: u}, nil
	}
}

func fails(err error) func() (*middleware.Response, error) {
	return func() (*middleware.Response, error) { return nil, err }
}

func TestTallyCallKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		resp    *middleware.Response
		err     error
		wantErr error
		want    middleware.Usage
	}{
		"response":           {&middleware.Response{Message: middleware.Assistant("hi"), Usage: tokens(10, 5)}, nil, nil, tokens(10, 5)},
		"error":              {nil, errBoom, errBoom, tokens(0, 0)},
		"neither":            {nil, nil, middleware.ErrNoResponse, tokens(0, 0)},
		"both: usage counts": {&middleware.Response{Message: middleware.Assistant("hi"), Usage: tokens(10, 5)}, errBoom, errBoom, tokens(10, 5)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tally middleware.Tally
			resp, err := tally.Call(t.Context(), scripted(func() (*middleware.Response, error) { return tc.resp, tc.err }), &middleware.Request{})
			require.ErrorIs(t, err, tc.wantErr)
			require.Equal(t, err == nil, resp != nil)

			resp, err = tally.Finish(resp, err)
			require.Equal(t, err == nil, resp != nil)
			require.ErrorIs(t, err, tc.wantErr)
			ledger := middleware.ReportOf(resp, err)
			require.Equal(t, tc.want, ledger.Usage())
			require.Len(t, ledger.Attempts, 1)
			require.ErrorIs(t, ledger.Attempts[0].Err, tc.wantErr)
			if tc.resp != nil {
				require.Equal(t, "hi", ledger.Attempts[0].Message.Text())
			}
		})
	}
}

// retried is a middleware that asks up to n times, and gives up in words of
// its own.
func retried(n int) middleware.Middleware {
	return func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			var tally middleware.Tally
			var err error
			for range n {
				var resp *middleware.Response
				if resp, err = tally.Call(ctx, next, req); err == nil {
					return tally.Finish(resp, nil)
				}
				err = fmt.Errorf("gave up: %w", err)
			}
			return tally.Finish(nil, err)
		}
	}
}

// TestUsageIsNeverLost: however tallies are nested and whatever the outcomes,
// what comes out on top is the sum of what the model spent, attempt by attempt.
func TestUsageIsNeverLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var spent []middleware.Usage
		model := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			u := tokens(rapid.Int64Range(0, 99).Draw(t, "in"), rapid.Int64Range(0, 99).Draw(t, "out"))
			resp := &middleware.Response{Message: middleware.Assistant("hi"), Usage: u}
			switch rapid.IntRange(0, 3).Draw(t, "outcome") {
			case 0:
				spent = append(spent, u)
				return resp, nil
			case 1:
				spent = append(spent, u)
				return resp, errBoom
			case 2:
				spent = append(spent, middleware.Usage{})
				return nil, nil
			default:
				spent = append(spent, middleware.Usage{})
				return nil, errBoom
			}
		}
		layers := []middleware.Middleware{}
		for range rapid.IntRange(1, 3).Draw(t, "layers") {
			layers = append(layers, retried(rapid.IntRange(1, 3).Draw(t, "attempts")))
		}
		resp, err := middleware.Chain(layers...)(model)(context.Background(), &middleware.Request{})
		if err != nil {
			err = fmt.Errorf("step: %w", fmt.Errorf("call: %w", err))
		}
		ledger := middleware.ReportOf(resp, err)
		var got []middleware.Usage
		var sum middleware.Usage
		for _, a := range ledger.Attempts {
			got = append(got, a.Usage)
		}
		for _, u := range spent {
			sum = sum.Add(u)
		}
		require.Equal(t, spent, got)
		require.Equal(t, sum, ledger.Usage())
		if err == nil {
			require.Equal(t, sum, resp.Usage)
			require.Equal(t, len(spent)-1, ledger.Final)
			last := spent[len(spent)-1]
			require.Equal(t, last.InputTokens+last.OutputTokens, resp.ContextTokens())
		} else {
			require.Equal(t, -1, ledger.Final)
		}
	})
}

func TestFinishError(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	cause := &middleware.ModelError{StatusCode: 500, Err: errBoom}
	_, err := tally.Call(t.Context(), scripted(fails(cause)), &middleware.Request{})
	require.Same(t, cause, err, "Call returns the error as it is")
	resp, err := tally.Finish(nil, fmt.Errorf("exhausted: %w", err))
	require.Nil(t, resp)
	require.EqualError(t, err, "exhausted: middleware: model error: status 500: boom")
	require.ErrorIs(t, err, errBoom)
	var me *middleware.ModelError
	require.ErrorAs(t, err, &me)
	require.Same(t, cause, me)
	require.Len(t, middleware.ReportOf(nil, errors.Join(errBoom, fmt.Errorf("x: %w", err))).Attempts, 1)
}

func TestFinishOfNothing(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	resp, err := tally.Finish(nil, nil)
	require.Nil(t, resp)
	require.ErrorIs(t, err, middleware.ErrNoResponse)

	var fresh middleware.Tally
	resp, err = fresh.Finish(&middleware.Response{Message: middleware.Assistant("cached"), Usage: tokens(1, 2)}, nil)
	require.NoError(t, err)
	require.Equal(t, tokens(1, 2), resp.Usage)
	require.Len(t, resp.Report.Attempts, 1)
}

// The response that is returned need not be the last one.
func TestFinishEarlierResponse(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	model := scripted(says("first", tokens(10, 1)), says("second", tokens(20, 2)), fails(errBoom))
	first, err := tally.Call(t.Context(), model, &middleware.Request{})
	require.NoError(t, err)
	_, err = tally.Call(t.Context(), model, &middleware.Request{})
	require.NoError(t, err)
	_, err = tally.Call(t.Context(), model, &middleware.Request{})
	require.ErrorIs(t, err, errBoom)

	resp, err := tally.Finish(first, nil)
	require.NoError(t, err)
	require.Equal(t, 0, resp.Report.Final)
	require.Equal(t, tokens(30, 3), resp.Usage)
	require.EqualValues(t, 11, resp.ContextTokens())
	require.Equal(t, tokens(10, 1), first.Usage, "what next returned is not changed")

	changed := first.Clone()
	changed.Message = middleware.Assistant("rewritten")
	resp, err = tally.Finish(changed, nil)
	require.NoError(t, err)
	require.Equal(t, 1, resp.Report.Final, "an unknown response counts as the one added last")
	require.Equal(t, "second", resp.Report.Attempts[1].Message.Text())
}

// The owner of a response may change it; the ledger says what was sent.
func TestLedgerKeepsWhatWasSent(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	resp, err := tally.Call(t.Context(), scripted(func() (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{ID: "c1", Name: "f", Arguments: `{"a":null}`})}, nil
	}), &middleware.Request{})
	require.NoError(t, err)
	resp, err = tally.Finish(resp, nil)
	require.NoError(t, err)
	resp.Message.ToolCalls[0].Arguments = `{}`
	require.Equal(t, `{"a":null}`, resp.Report.Attempts[0].Message.ToolCalls[0].Arguments)

	plain := &middleware.Response{Message: middleware.Assistant("", middleware.ToolCall{Arguments: "1"})}
	ledger := middleware.ReportOf(plain, nil)
	plain.Message.ToolCalls[0].Arguments = "2"
	require.Equal(t, "1", ledger.Attempts[0].Message.ToolCalls[0].Arguments)
}

func TestTallyMeasures(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := func(context.Context, *middleware.Request) (*middleware.Response, error) {
			<-time.After(3 * time.Second)
			return &middleware.Response{Message: middleware.Assistant("hi")}, nil
		}
		start := time.Now()
		resp, err := retried(1)(retried(1)(slow))(t.Context(), &middleware.Request{})
		require.NoError(t, err)
		require.True(t, start.Equal(resp.Report.Attempts[0].Start))
		require.Equal(t, 3*time.Second, resp.Report.Attempts[0].Duration)
	})
}

func TestSetVerdicts(t *testing.T) {
	t.Parallel()
	good := middleware.Verdict{Call: middleware.ToolCall{ID: "a"}}
	bad := middleware.Verdict{Call: middleware.ToolCall{ID: "b"}, Issues: []middleware.Issue{{Code: "type"}}}
	replies := []middleware.Message{middleware.ToolReply(bad.Call, "no")}

	var tally middleware.Tally
	tally.SetVerdicts([]middleware.Verdict{bad}, nil) // nothing was asked yet: no effect
	model := scripted(says("one", tokens(1, 1)), says("two", tokens(2, 2)))
	_, err := tally.Call(t.Context(), model, &middleware.Request{})
	require.NoError(t, err)
	tally.SetVerdicts([]middleware.Verdict{good, bad}, replies)
	resp, err := tally.Call(t.Context(), model, &middleware.Request{})
	require.NoError(t, err)
	tally.SetVerdicts([]middleware.Verdict{good}, nil)
	tally.Note("a")
	tally.Note("b")
	tally.Note("a")

	out, err := tally.Finish(resp, nil)
	require.NoError(t, err)
	require.Equal(t, replies, out.Report.Attempts[0].Replies)
	require.Len(t, out.Report.Attempts[0].Verdicts, 2)
	require.True(t, out.Report.Attempts[1].Verdicts[0].OK())
	require.False(t, bad.OK())
	require.Equal(t, []string{"a", "b"}, out.Report.Notes)
	require.Equal(t, resp.Report.Status, out.Report.Status, "the status of a response is the middleware's to say")
}

// Notes may quote what a stranger wrote, as long and as often as they like.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	notes := func(t *testing.T, tally *middleware.Tally) []string {
		out, err := tally.Finish(&middleware.Response{Message: middleware.Assistant("hi")}, nil)
		require.NoError(t, err)
		return out.Report.Notes
	}
	t.Run("in number", func(t *testing.T) {
		t.Parallel()
		var tally middleware.Tally
		start := time.Now()
		for i := range 200_000 {
			tally.Note(fmt.Sprint(i))
			if i < 128 {
				tally.Note("0")
			}
		}
		require.Less(t, time.Since(start), 2*time.Second)
		got := notes(t, &tally)
		require.Len(t, got, 129)
		require.Equal(t, "127", got[127])
		require.Equal(t, "and more", got[128])

		var outer middleware.Tally // takes over what a layer further in has noted
		outer.Note("0")
		outer.Note("mine")
		for range 2 {
			_, err := outer.Call(t.Context(), func(context.Context, *middleware.Request) (*middleware.Response, error) {
				return tally.Finish(&middleware.Response{Message: middleware.Assistant("hi")}, nil)
			}, &middleware.Request{})
			require.NoError(t, err)
		}
		got = notes(t, &outer)
		require.Len(t, got, 129)
		require.Equal(t, []string{"0", "mine", "1"}, got[:3])
		require.Equal(t, []string{"126", "and more"}, got[127:])
	})
	t.Run("exactly as many as allowed", func(t *testing.T) {
		t.Parallel()
		var tally middleware.Tally
		for range 2 {
			for i := range 128 {
				tally.Note(fmt.Sprint(i))
			}
		}
		require.Len(t, notes(t, &tally), 128)
	})
	t.Run("in length", func(t *testing.T) {
		t.Parallel()
		var tally, outer middleware.Tally
		tally.Note(strings.Repeat("a", 1000))
		tally.Note(strings.Repeat("b", 1001))
		tally.Note(strings.Repeat("€", 1000)) // 3 bytes each: 1,000 is in the middle of one
		tally.Note(strings.Repeat("€", 2000))
		tally.Note(strings.Repeat("\x80", 2000))
		want := []string{
			strings.Repeat("a", 1000), strings.Repeat("b", 1000) + "…", strings.Repeat("€", 333) + "…", "…",
		}
		require.Equal(t, want, notes(t, &tally))
		outer.Add(tally.Finish(&middleware.Response{Message: middleware.Assistant("hi")}, nil))
		require.Equal(t, want, notes(t, &outer), "what was cut is not cut again")
	})
}

// A ledger that came back broken is not a reason to fall over.
func TestSetVerdictsAfterAnOddReport(t *testing.T) {
	t.Parallel()
	odd := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("x"), Report: middleware.Report{Attempts: []middleware.Attempt{{}}, Final: -1}}, nil
	}
	far := func(context.Context, *middleware.Request) (*middleware.Response, error) {
		return &middleware.Response{Message: middleware.Assistant("x"), Report: middleware.Report{Attempts: []middleware.Attempt{{}}, Final: 9}}, nil
	}
	for name, model := range map[string]middleware.ModelCall{"before": odd, "after": far} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var tally middleware.Tally
			resp, err := tally.Call(t.Context(), model, &middleware.Request{})
			require.NoError(t, err)
			tally.SetVerdicts([]middleware.Verdict{{}}, nil)
			tally.SetRescued(1)
			out, err := tally.Finish(resp, nil)
			require.NoError(t, err)
			require.Zero(t, out.ContextTokens())
		})
	}
}

// SetStatus decides for an error, and the response's own status for a response.
func TestSetStatus(t *testing.T) {
	t.Parallel()
	var tally middleware.Tally
	resp, err := tally.Call(t.Context(), scripted(says("so", middleware.Usage{})), &middleware.Request{})
	require.NoError(t, err)
	tally.SetStatus(middleware.Invalid)
	_, failed := tally.Finish(nil, errors.New("no"))
	require.Equal(t, middleware.Invalid, middleware.ReportOf(nil, failed).Status)
	finished, err := tally.Finish(resp, nil)
	require.NoError(t, err)
	require.Equal(t, middleware.NoCalls, finished.Report.Status)
}
