package tracing_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

func TestStepSpan(t *testing.T) {
	t.Parallel()
	l := listen(t)
	resp, err := stack(l.options(), script(answer(bad), answer(good)))(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, middleware.Valid, resp.Report.Status)

	step := l.one("model_step")
	require.Equal(t, "model_step m-1", step.Name)
	require.Equal(t, trace.SpanKindInternal, step.SpanKind)
	require.Equal(t, codes.Unset, step.Status.Code)
	require.Equal(t, map[string]any{
		"gen_ai.provider.name": "test", "gen_ai.request.model": "m-1", "gen_ai.response.model": "m-2026",
		"gen_ai.response.finish_reasons": []string{"tool_calls"},
		"toolmend.attempts":              int64(2), "toolmend.status": "valid", "toolmend.final_attempt": int64(2),
		"toolmend.invalid_calls": int64(1), "toolmend.notes": int64(1),
		"toolmend.usage.input_tokens": int64(200), "toolmend.usage.output_tokens": int64(40),
		"toolmend.usage.cache_read.input_tokens": int64(80), "toolmend.usage.cache_write.input_tokens": int64(10),
		"toolmend.usage.reasoning.output_tokens": int64(14),
	}, attrs(step.Attributes))
}

func TestAttemptSpans(t *testing.T) {
	t.Parallel()
	l := listen(t)
	_, err := stack(l.options(), script(answer(bad), answer(good)))(t.Context(), request())
	require.NoError(t, err)

	step, attempts := l.one("model_step"), l.named("chat m-1")
	require.Len(t, attempts, 2)
	for i, a := range attempts {
		require.Equal(t, trace.SpanKindClient, a.SpanKind)
		require.Equal(t, step.SpanContext.SpanID(), a.Parent.SpanID())
		require.Equal(t, map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "test", "gen_ai.request.model": "m-1",
			"gen_ai.request.max_tokens": int64(1000), "gen_ai.request.temperature": 0.5,
			"gen_ai.request.stop_sequences": []string{"END"}, "gen_ai.response.model": "m-2026",
			"gen_ai.response.finish_reasons": []string{"tool_calls"},
			"gen_ai.usage.input_tokens":      int64(100), "gen_ai.usage.output_tokens": int64(20),
			"gen_ai.usage.cache_read.input_tokens": int64(40), "gen_ai.usage.cache_write.input_tokens": int64(5),
			"gen_ai.usage.reasoning.output_tokens": int64(7), "toolmend.attempt": int64(i + 1),
		}, attrs(a.Attributes))
	}
}

func TestDefaultsOfNamesAndAttributes(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Provider = ""
	_, err := tracing.NewAttempt(o)(script(answer()))(t.Context(), &middleware.Request{})
	require.NoError(t, err)
	_, err = tracing.New(o)(script(answer()))(t.Context(), &middleware.Request{})
	require.NoError(t, err)
	require.Equal(t, "chat", l.one("chat").Name)
	require.Equal(t, "model_step", l.one("model_step").Name)
	a := attrs(l.one("chat").Attributes)
	require.Equal(t, "_OTHER", a["gen_ai.provider.name"])
	for _, key := range []string{"gen_ai.request.model", "gen_ai.request.max_tokens", "gen_ai.request.temperature",
		"gen_ai.request.stop_sequences", "toolmend.attempt", "error.type", "gen_ai.input.messages"} {
		require.NotContains(t, a, key)
	}
	require.Equal(t, "none", attrs(l.one("model_step").Attributes)["toolmend.status"])
}

func TestSpansOfAClientNestInTheAttempt(t *testing.T) {
	t.Parallel()
	l := listen(t)
	model := func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		_, span := l.tp.Tracer("http").Start(ctx, "POST", trace.WithSpanKind(trace.SpanKindClient))
		span.End()
		return answer().resp, nil
	}
	_, err := stack(l.options(), model)(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, l.one("chat").SpanContext.SpanID(), l.one("POST").Parent.SpanID())
	require.Equal(t, l.one("model_step").SpanContext.SpanID(), l.one("chat").Parent.SpanID())
}

func TestStatus(t *testing.T) {
	t.Parallel()
	fault := errors.New("secret-fault")
	tests := []struct {
		name   string
		model  middleware.ModelCall
		status string
		code   codes.Code
	}{
		{"valid", script(answer(good)), "valid", codes.Unset},
		{"invalid, passed on", script(answer(bad)), "invalid", codes.Unset},
		{"failed", script(turn{err: fault}), "none", codes.Error},
		{"failed after an invalid attempt", script(answer(bad), turn{err: fault}), "none", codes.Error},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			_, err := stack(l.options(), tt.model)(t.Context(), request())
			step := l.one("model_step")
			require.Equal(t, tt.status, attrs(step.Attributes)["toolmend.status"])
			require.Equal(t, tt.code, step.Status.Code)
			require.Equal(t, tt.code == codes.Error, err != nil)
			require.NotContains(t, step.Status.Description, "secret")
		})
	}
}

func TestCancellationByTheCallerIsNoErrorStatus(t *testing.T) {
	t.Parallel()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	model := func(ctx context.Context, _ *middleware.Request) (*middleware.Response, error) {
		cancel()
		return nil, ctx.Err()
	}
	_, err := stack(l.options(), model)(ctx, request())
	require.ErrorIs(t, err, context.Canceled)
	for _, name := range []string{"model_step", "chat"} {
		require.Equal(t, codes.Unset, l.one(name).Status.Code)
		require.Equal(t, "context_canceled", attrs(l.one(name).Attributes)["error.type"])
	}
	require.NotContains(t, attrs(l.one("model_step").Attributes), "toolmend.final_attempt")
}

func TestOutcomePassesThroughUnchanged(t *testing.T) {
	t.Parallel()
	both := answer()
	both.err = errors.New("beside a response")
	for _, want := range []turn{answer(good), {err: errors.New("x")}, {}, both} {
		for _, build := range []func(tracing.Options) middleware.Middleware{tracing.New, tracing.NewAttempt} {
			l := listen(t)
			o := l.options()
			o.Content = true
			req := request()
			before := req.Clone()
			resp, err := build(o)(func(_ context.Context, got *middleware.Request) (*middleware.Response, error) {
				require.Same(t, req, got)
				return want.resp, want.err
			})(t.Context(), req)
			require.Same(t, want.resp, resp)
			require.True(t, err == want.err)
			require.Equal(t, before, req)
			require.Len(t, l.spans.GetSpans(), 1)
		}
	}
}

func TestContextKeepsValuesAndDeadline(t *testing.T) {
	t.Parallel()
	type mine struct{}
	ctx, cancel := context.WithTimeout(context.WithValue(t.Context(), mine{}, 7), time.Hour)
	defer cancel()
	_, err := stack(listen(t).options(), func(got context.Context, _ *middleware.Request) (*middleware.Response, error) {
		want, _ := ctx.Deadline()
		deadline, ok := got.Deadline()
		require.True(t, ok)
		require.Equal(t, want, deadline)
		require.Equal(t, 7, got.Value(mine{}))
		return answer().resp, nil
	})(ctx, request())
	require.NoError(t, err)
}

func TestConcurrentSteps(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content, o.Redact = true, func(s string) string { return s }
	call := stack(o, func(_ context.Context, req *middleware.Request) (*middleware.Response, error) {
		if len(req.Messages) == 2 {
			return answer(bad).resp, nil
		}
		return answer(good).resp, nil
	})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			req := request()
			req.Model = string(rune('a' + i%4))
			_, err := call(t.Context(), req)
			require.NoError(t, err)
		})
	}
	wg.Wait()
	require.Len(t, l.named("model_step"), 16)
	parents := map[trace.SpanID]int{}
	for _, a := range l.named("chat") {
		parents[a.Parent.SpanID()]++
	}
	require.Len(t, parents, 16)
	for _, n := range parents {
		require.Equal(t, 2, n)
	}
}

func TestNilProvidersMeanTheGlobalOnes(t *testing.T) { // not parallel: it sets them
	l := listen(t)
	otel.SetTracerProvider(l.tp)
	otel.SetMeterProvider(l.mp)
	call := middleware.Chain(tracing.New(tracing.Options{}), tracing.NewAttempt(tracing.Options{}))(script(answer()))
	t.Cleanup(func() {
		otel.SetTracerProvider(tracenoop.NewTracerProvider())
		otel.SetMeterProvider(metricnoop.NewMeterProvider())
	})
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	require.Len(t, l.spans.GetSpans(), 2)
	require.Len(t, l.points("toolmend.steps"), 1)
	require.Len(t, l.points("gen_ai.client.inference.duration"), 1)
}

func TestANilRequestIsPassedOn(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content = true
	_, err := middleware.Chain(tracing.New(o), tracing.NewAttempt(o))(script(answer(bad)))(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, l.spans.GetSpans(), 2)
}
