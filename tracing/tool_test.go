package tracing_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

var errTool = errors.New("secret-account is empty")

// read takes a string for a result; one that begins with ! is an error.
func read(r string, err error) tracing.ToolOutcome {
	return tracing.ToolOutcome{Text: r, IsError: len(r) > 0 && r[0] == '!', Err: err}
}

func TestTool(t *testing.T) {
	t.Parallel()
	l := listen(t)
	tool := tracing.NewTool(l.options(), read)(func(ctx context.Context, c middleware.ToolCall) (string, error) {
		require.True(t, trace.SpanFromContext(ctx).SpanContext().IsValid(), "the tool runs under the span")
		return "secret-result of " + c.ID, nil
	})
	got, err := tool(t.Context(), good)
	require.NoError(t, err)
	require.Equal(t, "secret-result of call_refund", got)
	s := l.one("execute_tool refund")
	require.Equal(t, trace.SpanKindInternal, s.SpanKind)
	require.Equal(t, codes.Unset, s.Status.Code)
	require.Equal(t, map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund",
		"gen_ai.tool.call.id": "call_refund", "gen_ai.tool.type": "function"}, attrs(s.Attributes), "no content unless asked for")
}

func TestToolContent(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.Content, o.Redact = true, func(s string) string { return "<" + s + ">" }
	_, err := tracing.NewTool(o, read)(func(context.Context, middleware.ToolCall) (string, error) { return "fine", nil })(t.Context(), good)
	require.NoError(t, err)
	got := attrs(l.one("execute_tool").Attributes)
	require.Equal(t, "<"+good.Arguments+">", got["gen_ai.tool.call.arguments"])
	require.Equal(t, "<fine>", got["gen_ai.tool.call.result"])
}

func TestToolErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		result string
		err    error
		kind   any
		status codes.Code
	}{
		"error":        {"", errTool, "_OTHER", codes.Error},
		"error result": {"!secret", nil, "tool_error", codes.Error},
		"timeout":      {"", context.DeadlineExceeded, "timeout", codes.Error},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := listen(t)
			got, err := tracing.NewTool(l.options(), read)(func(context.Context, middleware.ToolCall) (string, error) { return c.result, c.err })(t.Context(), good)
			require.Equal(t, c.result, got)
			require.Equal(t, c.err, err, "what the tool returned is returned as it is")
			s := l.one("execute_tool")
			require.Equal(t, c.kind, attrs(s.Attributes)["error.type"])
			require.Equal(t, c.status, s.Status.Code)
			require.NotContains(t, s.Status.Description, "secret")
		})
	}
}

// Cancellation is not a failure, and an outcome may call an error none.
func TestToolNoFailure(t *testing.T) {
	t.Parallel()
	l := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tracing.NewTool[string](l.options(), nil)(func(ctx context.Context, _ middleware.ToolCall) (string, error) { return "", ctx.Err() })(ctx, good)
	require.ErrorIs(t, err, context.Canceled)
	_, err = tracing.NewTool(l.options(), func(string, error) tracing.ToolOutcome { return tracing.ToolOutcome{} })(
		func(context.Context, middleware.ToolCall) (string, error) { return "", errTool })(ctx, good)
	require.Equal(t, errTool, err)
	for _, s := range l.named("execute_tool") {
		require.Equal(t, codes.Unset, s.Status.Code)
	}
}

func TestToolPanics(t *testing.T) {
	t.Parallel()
	l := listen(t)
	tool := tracing.NewTool(l.options(), read)(func(context.Context, middleware.ToolCall) (string, error) { panic("mine") })
	require.PanicsWithValue(t, "mine", func() { _, _ = tool(t.Context(), good) })
	require.Equal(t, "panic", attrs(l.one("execute_tool").Attributes)["error.type"])

	l = listen(t)
	broken := tracing.NewTool(l.options(), func(string, error) tracing.ToolOutcome { panic("theirs") })
	_, err := broken(func(context.Context, middleware.ToolCall) (string, error) { return "fine", nil })(t.Context(), good)
	require.NoError(t, err)
	l.one("execute_tool")
}

func TestAgent(t *testing.T) {
	t.Parallel()
	l := listen(t)
	tool := tracing.NewTool(l.options(), read)(func(context.Context, middleware.ToolCall) (string, error) { return "", nil })
	err := tracing.NewAgent(l.options(), "support", nil)(t.Context(), func(ctx context.Context) error {
		_, _ = tool(ctx, good)
		return errTool
	})
	require.Equal(t, errTool, err)
	s := l.one("invoke_agent support")
	require.Equal(t, codes.Error, s.Status.Code)
	require.Equal(t, map[string]any{"gen_ai.operation.name": "invoke_agent",
		"gen_ai.agent.name": "support", "error.type": "_OTHER"}, attrs(s.Attributes))
	require.Equal(t, s.SpanContext.SpanID(), l.one("execute_tool").Parent.SpanID())

	paused := func(err error) bool { return errors.Is(err, errTool) }
	require.Equal(t, errTool, tracing.NewAgent(l.options(), "", paused)(t.Context(), func(context.Context) error { return errTool }))
	require.Equal(t, codes.Unset, l.named("invoke_agent")[1].Status.Code)
	require.Panics(t, func() {
		_ = tracing.NewAgent(l.options(), "p", nil)(t.Context(), func(context.Context) error { panic("mine") })
	})
	require.Equal(t, "panic", attrs(l.one("invoke_agent p").Attributes)["error.type"])
	const run = "gen_ai.operation.name=invoke_agent"
	require.Equal(t, map[string]int64{"error.type=_OTHER gen_ai.agent.name=support " + run: 1, run: 1, "error.type=panic gen_ai.agent.name=p " + run: 1}, l.points("gen_ai.invoke_agent.duration"))
	require.Equal(t, map[string]int64{"gen_ai.agent.name=support gen_ai.tool.name=refund": 1}, l.points("gen_ai.execute_tool.duration"))
}

// The duration of a tool is recorded without spans too, with the error of its outcome.
func TestToolMetric(t *testing.T) {
	t.Parallel()
	l := listen(t)
	o := l.options()
	o.TracerProvider, o.Attributes = tracenoop.NewTracerProvider(), []attribute.KeyValue{attribute.String("upstream", "local")}
	for _, result := range []string{"fine", "!no", "fine"} {
		_, err := tracing.NewTool(o, read)(func(context.Context, middleware.ToolCall) (string, error) { return result, nil })(t.Context(), good)
		require.NoError(t, err)
	}
	require.Equal(t, map[string]int64{"gen_ai.tool.name=refund upstream=local": 2, "error.type=tool_error gen_ai.tool.name=refund upstream=local": 1}, l.points("gen_ai.execute_tool.duration"))
}
