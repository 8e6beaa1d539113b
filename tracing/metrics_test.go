package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

const operation = "gen_ai.operation.name=chat gen_ai.provider.name=test gen_ai.request.model=m-1 gen_ai.response.model=m-2026"

// counted are the attributes of the tokens.
const counted = operation + " gen_ai.token.modality=unknown"

func TestClientMetricsAreCountedOnce(t *testing.T) {
	t.Parallel()
	stacks := map[string]func(tracing.Options) middleware.Middleware{
		"both": func(o tracing.Options) middleware.Middleware {
			return middleware.Chain(tracing.New(o), reask(3), tracing.NewAttempt(o))
		},
		"only New": func(o tracing.Options) middleware.Middleware {
			return middleware.Chain(tracing.New(o), reask(3))
		},
		"only NewAttempt": func(o tracing.Options) middleware.Middleware {
			return middleware.Chain(reask(3), tracing.NewAttempt(o))
		},
		"a step inside a step": func(o tracing.Options) middleware.Middleware {
			return middleware.Chain(tracing.New(o), tracing.New(o), reask(3))
		},
	}
	for name, build := range stacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			_, err := build(l.options())(script(answer(bad), answer(good)))(t.Context(), request())
			require.NoError(t, err)
			require.Equal(t, map[string]int64{operation: 2}, l.points("gen_ai.client.inference.duration"))
			for name, n := range map[string]int64{"input_tokens": 200, "output_tokens": 40, "cache_read.input_tokens": 80, "cache_write.input_tokens": 10, "reasoning.output_tokens": 14} {
				require.Equal(t, map[string]int64{counted: n}, l.points("gen_ai.client.inference.usage."+name), name)
			}
			for _, name := range []string{"input_tokens", "output_tokens"} {
				require.Equal(t, map[string]int64{operation: 2}, l.points("gen_ai.client.inference.operation."+name), name)
			}
			require.Empty(t, l.points("gen_ai.client.inference.time_to_first_chunk"), "not streamed")
		})
	}
}

func TestNewMeasuresACallThatNobodyRecorded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	_, err := tracing.New(l.options())(script(answer()))(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{operation: 1}, l.points("gen_ai.client.inference.duration"))
}

func TestAnAttemptThatNobodyTimedHasTokensButNoDuration(t *testing.T) {
	t.Parallel()
	l := listen(t)
	u := middleware.Usage{InputTokens: 3}
	call := tracing.New(l.options())(reported(middleware.Report{Attempts: []middleware.Attempt{
		{Model: "m-2026", Usage: u}, {Model: "m-2026", Usage: u, Start: time.Now()},
	}}))
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{operation: 1}, l.points("gen_ai.client.inference.duration"))
	require.Equal(t, map[string]int64{counted: 6}, l.points("gen_ai.client.inference.usage.input_tokens"))
	require.Equal(t, map[string]int64{counted: 0}, l.points("gen_ai.client.inference.usage.output_tokens"))
	require.Empty(t, l.points("gen_ai.client.inference.usage.reasoning.output_tokens"))
}

// The error is an attribute of the histograms, and not of the counters. A failed call has 0 tokens.
func TestErrorTypeOfAModelCall(t *testing.T) {
	t.Parallel()
	l := listen(t)
	model := script(turn{err: &middleware.ModelError{StatusCode: 429}}, answer())
	_, err := stack(l.options(), model)(t.Context(), request())
	require.NoError(t, err)
	for _, name := range []string{"duration", "operation.input_tokens", "operation.output_tokens"} {
		require.Equal(t, map[string]int64{
			"error.type=429 gen_ai.operation.name=chat gen_ai.provider.name=test gen_ai.request.model=m-1": 1,
			operation: 1,
		}, l.points("gen_ai.client.inference."+name), name)
	}
	require.Equal(t, map[string]int64{
		"gen_ai.operation.name=chat gen_ai.provider.name=test gen_ai.request.model=m-1 gen_ai.token.modality=unknown": 0,
		counted: 100,
	}, l.points("gen_ai.client.inference.usage.input_tokens"))
}

func TestInstrumentsFollowTheConventions(t *testing.T) {
	t.Parallel()
	l := listen(t)
	streamed := request()
	streamed.Sink = func(middleware.Event) error { return nil }
	err := tracing.NewAgent(l.options(), "a", nil)(t.Context(), func(ctx context.Context) error {
		_, err := tracing.NewTool[string](l.options(), nil)(func(context.Context, middleware.ToolCall) (string, error) { return "", nil })(ctx, good)
		require.NoError(t, err)
		_, err = stack(l.options(), func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			require.NoError(t, req.Sink(middleware.Event{Kind: middleware.EventText, Text: "x"}))
			return script(answer(bad))(ctx, req)
		})(ctx, streamed)
		return err
	})
	require.NoError(t, err)
	units := map[string]string{}
	for _, m := range l.metrics() {
		units[m.Name] = m.Unit
		switch data := m.Data.(type) {
		case metricdata.Histogram[float64]:
			if m.Name == "gen_ai.invoke_agent.duration" {
				require.Equal(t, []float64{.1, .2, .4, .8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6}, data.DataPoints[0].Bounds)
				continue
			}
			require.Equal(t, []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
				data.DataPoints[0].Bounds)
		case metricdata.Histogram[int64]:
			require.Equal(t, []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
				data.DataPoints[0].Bounds)
		}
	}
	require.Equal(t, map[string]string{
		"gen_ai.client.inference.duration": "s", "gen_ai.client.inference.time_to_first_chunk": "s", "gen_ai.execute_tool.duration": "s", "gen_ai.invoke_agent.duration": "s",
		"gen_ai.client.inference.operation.input_tokens": "{token}", "gen_ai.client.inference.operation.output_tokens": "{token}",
		"gen_ai.client.inference.usage.input_tokens": "{token}", "gen_ai.client.inference.usage.output_tokens": "{token}", "gen_ai.client.inference.usage.reasoning.output_tokens": "{token}",
		"gen_ai.client.inference.usage.cache_read.input_tokens": "{token}", "gen_ai.client.inference.usage.cache_write.input_tokens": "{token}",
		"toolmend.steps": "{step}", "toolmend.attempts": "{attempt}",
		"toolmend.invalid_calls": "{call}", "toolmend.exhausted_steps": "{step}",
	}, units)
}

// The time until the first text of a stream is on the attempt's span and in a metric. The Sink gets
// every event, and its error goes back.
func TestTimeToFirstChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := listen(t)
		stopped := errors.New("stopped")
		var got []string
		req := request()
		req.Sink = func(e middleware.Event) error {
			if got = append(got, e.Text); len(got) == 2 {
				return stopped
			}
			return nil
		}
		call := tracing.NewAttempt(l.options())(func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			for _, text := range []string{"a", "b"} {
				time.Sleep(3 * time.Second)
				if err := req.Sink(middleware.Event{Kind: middleware.EventText, Text: text}); err != nil {
					require.ErrorIs(t, err, stopped)
				}
			}
			return script(answer())(ctx, req)
		})
		_, err := call(t.Context(), req)
		require.NoError(t, err)
		require.Equal(t, []string{"a", "b"}, got)
		require.Equal(t, 3.0, attrs(l.one("chat").Attributes)["gen_ai.response.time_to_first_chunk"])
		require.Equal(t, map[string]int64{operation: 1}, l.points("gen_ai.client.inference.time_to_first_chunk"))
		require.NoError(t, l.tp.Shutdown(context.Background()))
	})
}

func TestStepCounters(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	for _, model := range []middleware.ModelCall{
		script(answer(bad), answer(good)),
		script(answer(bad)),
		script(turn{err: errors.New("x")}),
	} {
		_, _ = stack(o, model)(t.Context(), request())
	}
	const base = "gen_ai.provider.name=test gen_ai.request.model=m-1 toolmend.status="
	require.Equal(t, map[string]int64{base + "valid": 1, base + "invalid": 1, "error.type=_OTHER " + base + "none": 1},
		l.points("toolmend.steps"))
	require.Equal(t, map[string]int64{base + "valid": 2, base + "invalid": 3, "error.type=_OTHER " + base + "none": 3},
		l.points("toolmend.attempts"))
	require.Equal(t, map[string]int64{base + "invalid": 1}, l.points("toolmend.exhausted_steps"))
	require.Equal(t, map[string]int64{
		"gen_ai.provider.name=test gen_ai.request.model=m-1 gen_ai.tool.name=refund toolmend.issue.code=type": 4,
	}, l.points("toolmend.invalid_calls"))
}

func TestAFailedStepWhoseReportSaysInvalidIsExhausted(t *testing.T) {
	t.Parallel()
	l := listen(t)
	raise := func(next middleware.ModelCall) middleware.ModelCall {
		return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
			var tally middleware.Tally
			resp, err := tally.Call(ctx, next, req)
			require.NoError(t, err)
			verdicts, _ := verdictsOn(resp.Message)
			tally.SetVerdicts(verdicts, nil)
			return tally.Finish(nil, errors.New("attempts exhausted"))
		}
	}
	call := middleware.Chain(tracing.New(l.options()), raise)(script(answer(bad)))
	_, err := call(t.Context(), request())
	require.Error(t, err)
	require.Equal(t, map[string]int64{
		"error.type=invalid_tool_call gen_ai.provider.name=test gen_ai.request.model=m-1 toolmend.status=invalid": 1,
	}, l.points("toolmend.exhausted_steps"))
}

func TestNamesThatTheModelInventsDoNotMultiplyMetrics(t *testing.T) {
	t.Parallel()
	l := listen(t)
	var verdicts []middleware.Verdict
	for i := range 500 {
		verdicts = append(verdicts, middleware.Verdict{
			Call:   middleware.ToolCall{Name: fmt.Sprintf("invented_%d", i)},
			Issues: []middleware.Issue{{Code: "unknown_tool"}},
		})
	}
	call := tracing.New(l.options())(reported(middleware.Report{Attempts: []middleware.Attempt{{Verdicts: verdicts}}}))
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, map[string]int64{
		"gen_ai.provider.name=test gen_ai.request.model=m-1 gen_ai.tool.name=_OTHER toolmend.issue.code=unknown_tool": 500,
	}, l.points("toolmend.invalid_calls"))
}

func TestManyModelsAreStillMeasured(t *testing.T) {
	t.Parallel()
	l := listen(t)
	call := tracing.NewAttempt(l.options())(script(answer()))
	for i := range 600 { // past what is kept for reuse
		req := request()
		req.Model = fmt.Sprintf("m-%d", i%300)
		_, err := call(t.Context(), req)
		require.NoError(t, err)
	}
	points := l.points("gen_ai.client.inference.duration")
	require.Len(t, points, 300)
	for _, n := range points {
		require.Equal(t, int64(2), n)
	}
}
