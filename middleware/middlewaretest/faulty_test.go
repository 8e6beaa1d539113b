package middlewaretest

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
)

// failTurn answers a turn as an agent does that refuses the first call.
func failTurn(req *middleware.Request, turn middleware.Message) *middleware.Request {
	turn = turn.Clone()
	var replies []middleware.Message
	for i := range turn.ToolCalls {
		c := &turn.ToolCalls[i]
		c.ID = fmt.Sprintf("made_%d_%d", len(req.Messages), i)
		if !isObject(c.Arguments) {
			c.Arguments = "{}"
		}
		replies = append(replies, middleware.ToolReply(*c, "no"))
		replies[i].IsError = i == 0
	}
	return req.With(turn).With(replies...)
}

// At the rates that are the default some thousand calls show every fault.
func TestDefaultRatesShowEveryFault(t *testing.T) {
	t.Parallel()
	f := NewFaulty(1, FaultOptions{})
	for range 1500 {
		req := roomyRequest()
		for range 3 {
			resp, err := f.Call(t.Context(), req)
			if err != nil || resp == nil || len(resp.Message.ToolCalls) == 0 {
				break
			}
			req = failTurn(req, resp.Message)
			require.NoError(t, Check(Gemini, req))
		}
	}
	for fault := range DefaultRates() {
		require.Positive(t, f.Injected()[fault], string(fault))
	}
}

func TestLostSibling(t *testing.T) {
	t.Parallel()
	batch := middleware.Assistant("", middleware.ToolCall{ID: "a", Name: roomy.Name, Arguments: "{}"},
		middleware.ToolCall{ID: "b", Name: "gone", Arguments: "{}"}, middleware.ToolCall{ID: "c", Name: roomy.Name, Arguments: "{}"})
	history := func(failed ...bool) *middleware.Request {
		req := roomyRequest().With(batch)
		for i, c := range batch.ToolCalls {
			m := middleware.ToolReply(c, "reply")
			m.IsError = failed[i]
			req = req.With(m)
		}
		return req
	}
	for name, tc := range map[string]struct {
		rate   float64
		failed []bool
		want   int
	}{
		"all come back":            {0, []bool{true, false, false}, 3},
		"only the failed one":      {1, []bool{false, true, false}, 1},
		"only the failed two":      {1, []bool{true, true, false}, 2},
		"no room: all have failed": {1, []bool{true, true, true}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewFaulty(3, FaultOptions{Rates: map[Fault]float64{"lost sibling": tc.rate}, AnswerAfter: NeverAnswer})
			resp, err := f.Call(t.Context(), history(tc.failed...))
			require.NoError(t, err)
			require.Len(t, resp.Message.ToolCalls, tc.want)
			require.Equal(t, tc.want < 3, f.Injected()["lost sibling"] == 1)
		})
	}
}

func TestFaultyWithoutFaults(t *testing.T) {
	t.Parallel()
	f := NewFaulty(5, FaultOptions{Rates: map[Fault]float64{}, Calls: 4, AnswerAfter: 6})
	call := Strict(Anthropic, Strict(Gemini, f.Call))
	most := 0
	for range 200 {
		req := roomyRequest()
		done := false
		for turns := 0; !done; turns++ {
			require.Less(t, turns, 7)
			resp, err := call(t.Context(), req)
			require.NoError(t, err)
			require.Equal(t, middleware.Usage{InputTokens: 10, OutputTokens: 5}, resp.Usage)
			require.Equal(t, "m", resp.Model)
			done = len(resp.Message.ToolCalls) == 0
			require.Equal(t, done, resp.FinishReason == middleware.FinishStop)
			req = req.With(resp.Message)
			for _, c := range resp.Message.ToolCalls {
				var args map[string]any
				require.NoError(t, json.Unmarshal([]byte(c.Arguments), &args))
				require.True(t, accepts(roomySchema(), args), c.Arguments)
				req = req.With(middleware.ToolReply(c, "ok"))
			}
			most = max(most, len(resp.Message.ToolCalls))
			if done {
				require.GreaterOrEqual(t, answered(req.Messages[:len(req.Messages)-1]), 6)
			}
		}
	}
	require.Equal(t, 4, most)
	require.Empty(t, f.Injected())
}

func TestFaultyIsDeterministic(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) string {
		f := NewFaulty(seed, FaultOptions{})
		var all strings.Builder
		for range 100 {
			resp, err := f.Call(context.Background(), roomyRequest())
			b, merr := json.Marshal(resp)
			require.NoError(t, merr)
			fmt.Fprintln(&all, string(b), err)
		}
		return all.String()
	}
	require.Equal(t, run(7), run(7))
	require.NotEqual(t, run(7), run(8))
}

func TestFaultyMindsTheRequest(t *testing.T) {
	t.Parallel()
	other := middleware.Tool{Name: "other", Parameters: json.RawMessage(`not JSON`)}
	for name, tc := range map[string]struct {
		set  func(*middleware.Request)
		want string // the only tool called, "" for text
	}{
		"no tools":     {func(r *middleware.Request) { r.Tools = nil }, ""},
		"none allowed": {func(r *middleware.Request) { r.ToolChoice.Mode = middleware.ToolNone }, ""},
		"hosted only": {func(r *middleware.Request) {
			r.Tools = []middleware.Tool{{Name: "search", Kind: middleware.KindHosted}}
		}, ""},
		"one tool": {func(r *middleware.Request) { r.Tools = append(r.Tools, other); r.ToolChoice.Name = "other" }, "other"},
		"required": {func(r *middleware.Request) {
			r.ToolChoice.Mode = middleware.ToolRequired
			for range 9 {
				r.Messages = append(r.Messages, middleware.ToolReply(middleware.ToolCall{ID: "x"}, "ok"))
			}
		}, roomy.Name},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := NewFaulty(1, FaultOptions{Rates: map[Fault]float64{}})
			for range 20 {
				req := roomyRequest()
				tc.set(req)
				resp, err := f.Call(t.Context(), req)
				require.NoError(t, err)
				if tc.want == "" {
					require.Empty(t, resp.Message.ToolCalls)
					continue
				}
				require.NotEmpty(t, resp.Message.ToolCalls)
				for _, c := range resp.Message.ToolCalls {
					require.Equal(t, tc.want, c.Name)
				}
			}
		})
	}
}

func TestFaultyContextAndSink(t *testing.T) {
	t.Parallel()
	f := NewFaulty(1, FaultOptions{Rates: map[Fault]float64{}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.Call(ctx, roomyRequest())
	require.ErrorIs(t, err, context.Canceled)

	req := roomyRequest()
	var got []middleware.ToolCall
	req.Sink = func(e middleware.Event) error { got = append(got, *e.Call); return nil }
	resp, err := f.Call(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, resp.Message.ToolCalls, got)

	req.Sink = func(middleware.Event) error { return errSample }
	_, err = f.Call(t.Context(), req)
	require.Same(t, errSample, err)
}

func TestFaultyServesManyGoroutines(t *testing.T) {
	t.Parallel()
	f := NewFaulty(1, FaultOptions{})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 20 {
				_, _ = f.Call(context.Background(), roomyRequest())
				_ = f.Injected()
			}
		})
	}
	all.Wait()
}

func TestFaultOptions(t *testing.T) {
	t.Parallel()
	o := FaultOptions{}.withDefaults()
	require.Equal(t, DefaultRates(), o.Rates)
	require.Equal(t, 3, o.Calls)
	require.Equal(t, 4, o.AnswerAfter)
	require.Equal(t, NeverAnswer, FaultOptions{AnswerAfter: NeverAnswer}.withDefaults().AnswerAfter)

	rates := map[Fault]float64{"transient": 0}
	f := NewFaulty(1, FaultOptions{Rates: rates})
	rates["transient"] = 1
	_, err := f.Call(t.Context(), roomyRequest())
	require.NoError(t, err, "the options are copied")

	for want, o := range map[string]FaultOptions{
		`middlewaretest: FaultOptions.Rates: unknown fault, got "gremlin"`:                                 {Rates: map[Fault]float64{"gremlin": 1}},
		`middlewaretest: FaultOptions.Rates: a rate is from 0 to 1, got 2 for "transient"`:                 {Rates: map[Fault]float64{"transient": 2}},
		`middlewaretest: FaultOptions.Rates: a rate is from 0 to 1, got NaN for "transient"`:               {Rates: map[Fault]float64{"transient": math.NaN()}},
		`middlewaretest: FaultOptions.Calls: must not be negative, got -1`:                                 {Calls: -1},
		`middlewaretest: FaultOptions.AnswerAfter: must not be negative, unless it is NeverAnswer, got -2`: {AnswerAfter: -2},
	} {
		require.PanicsWithError(t, want, func() { NewFaulty(1, o) })
	}
}
