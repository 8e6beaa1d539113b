package tracing_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

// panicsIn returns the exception events of a span, and the records of panics.
func panicsIn(t *testing.T, s tracetest.SpanStub, log *bytes.Buffer) (events, records []map[string]any) {
	t.Helper()
	for _, e := range s.Events {
		if e.Name == "exception" {
			events = append(events, attrs(e.Attributes))
		}
	}
	for _, line := range bytes.Split(bytes.TrimSpace(log.Bytes()), []byte("\n")) {
		var r map[string]any
		require.NoError(t, json.Unmarshal(line, &r))
		if r["msg"] == "panic" || r["msg"] == "function failed" {
			records = append(records, r)
		}
	}
	return events, records
}

// A panic of a rule or a tool can be debugged: value and stack are in the log
// and on the span, without content too.
func TestPanicsOfRulesAndTools(t *testing.T) {
	t.Parallel()
	declared := &middleware.Request{Model: "m", Messages: []middleware.Message{middleware.User("go")}, Tools: []middleware.Tool{{Name: good.Name}}}
	for name, policy := range map[string]argsvalidate.OnRuleError{"fails": argsvalidate.FailStep, "issue": argsvalidate.AsIssue, "ignored": argsvalidate.Ignore} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, log := listen(t), &bytes.Buffer{}
			o := l.options()
			o.Logger = slog.New(slog.NewJSONHandler(log, nil))
			rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { panic("index 5 of 3") })
			model := script(answer(good))
			step := middleware.Chain(tracing.New(o), argsvalidate.New(argsvalidate.Options{MaxAttempts: 1, OnRuleError: policy, Rules: []argsvalidate.Rule{rule}}))(model)
			_, err := step(t.Context(), declared)
			require.Equal(t, policy != argsvalidate.Ignore, err != nil)
			s := l.one("model_step")
			events, records := panicsIn(t, s, log)
			require.Len(t, events, 1)
			require.Equal(t, "string", events[0]["exception.type"])
			require.Equal(t, "index 5 of 3", events[0]["exception.message"])
			require.Contains(t, events[0]["exception.stacktrace"], "panics_test.go")
			require.Len(t, records, 1)
			require.Equal(t, "ERROR", records[0]["level"])
			require.Equal(t, "index 5 of 3", records[0]["panic"])
			require.Contains(t, records[0]["stack"], "panics_test.go")
		})
	}
	t.Run("tool", func(t *testing.T) {
		t.Parallel()
		l, log := listen(t), &bytes.Buffer{}
		o := l.options()
		o.Logger = slog.New(slog.NewJSONHandler(log, nil))
		tool := tracing.NewTool(o, read)(func(context.Context, middleware.ToolCall) (string, error) { panic(errors.New("no map")) })
		require.PanicsWithError(t, "no map", func() { _, _ = tool(t.Context(), good) })
		s := l.one("execute_tool")
		require.Equal(t, "panic", attrs(s.Attributes)["error.type"])
		events, records := panicsIn(t, s, log)
		require.Len(t, events, 1)
		require.Equal(t, "no map", events[0]["exception.message"])
		require.Contains(t, events[0]["exception.stacktrace"], "panics_test.go")
		require.Len(t, records, 1)
		require.Equal(t, good.Name, records[0]["function"])
	})
	t.Run("not a panic", func(t *testing.T) {
		t.Parallel()
		l, log := listen(t), &bytes.Buffer{}
		o := l.options()
		o.Logger = slog.New(slog.NewJSONHandler(log, nil))
		rule := argsvalidate.RuleFunc(func(context.Context, *argsvalidate.Call) ([]middleware.Issue, error) { return nil, errTool })
		step := middleware.Chain(tracing.New(o), argsvalidate.New(argsvalidate.Options{OnRuleError: argsvalidate.Ignore, Rules: []argsvalidate.Rule{rule}}))(script(answer(good)))
		_, err := step(t.Context(), declared)
		require.NoError(t, err)
		events, records := panicsIn(t, l.one("model_step"), log)
		require.Empty(t, events)
		require.Len(t, records, 1)
		require.Equal(t, "function failed", records[0]["msg"])
		require.NotContains(t, log.String(), "secret-account", "an error's text is content")
	})
}
