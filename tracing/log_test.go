package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

func TestLogOfAReaskedStep(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := tracing.Options{Logger: logger(&b, slog.LevelInfo)}
	_, err := stack(o, script(answer(bad), answer(good)))(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, []map[string]any{
		{
			"level": "WARN", "msg": "invalid tool call", "attempt": 1.0, "tool": "refund", "call_id": "call_refund",
			"codes": []any{"type", "required"}, "pointers": []any{"/amount", ""},
		},
		{"level": "WARN", "msg": "model asked again", "attempt": 1.0, "replies": 1.0},
		{
			"level": "INFO", "msg": "model step", "model": "m-1", "status": "valid", "attempts": 2.0, "final_attempt": 2.0,
			"invalid_calls": 1.0, "finish_reason": "tool_calls", "input_tokens": 200.0, "output_tokens": 40.0,
			"notes": 1.0,
		},
	}, logged(t, &b))
}

func TestLogWithContent(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	o := tracing.Options{Logger: logger(&b, slog.LevelInfo), Content: true}
	_, err := stack(o, script(answer(bad), turn{err: errors.New("no route")}))(t.Context(), request())
	require.Error(t, err)
	records := logged(t, &b)
	require.Equal(t, []any{"must be number, got secret-bad", "currency is missing"}, records[0]["messages"])
	require.Equal(t, `{"amount":"secret-bad"}`, records[0]["arguments"])
	require.Equal(t, "Error: secret-bad is not a number", records[1]["text"])
	require.Equal(t, "no route", records[2]["error"])
}

func TestLogLevelOfTheStep(t *testing.T) {
	t.Parallel()
	fault := turn{err: &middleware.ModelError{StatusCode: 429, Code: "rate_limit_exceeded"}}
	tests := []struct {
		name  string
		model middleware.ModelCall
		level string
		text  string
	}{
		{"valid", script(answer(good)), "INFO", "model step"},
		{"unchecked", script(answer()), "INFO", "model step"},
		{"one attempt went wrong", script(fault, answer(good)), "INFO", "model step"},
		{"two attempts went wrong", script(fault, answer(bad), answer(good)), "WARN", "model step"},
		{"invalid", script(answer(bad)), "WARN", "model step"},
		{"failed", script(fault), "ERROR", "model step failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var b bytes.Buffer
			_, err := stack(tracing.Options{Logger: logger(&b, slog.LevelInfo)}, tt.model)(t.Context(), request())
			records := logged(t, &b)
			last := records[len(records)-1]
			require.Equal(t, tt.level, last["level"])
			require.Equal(t, tt.text, last["msg"])
			if err != nil {
				require.Equal(t, "429", last["error_type"])
				require.Equal(t, "rate_limit_exceeded", last["error_code"])
			}
		})
	}
}

func TestLogOfACancelledStep(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := tracing.New(tracing.Options{Logger: logger(&b, slog.LevelInfo)})(script(turn{err: ctx.Err()}))(ctx, request())
	require.Error(t, err)
	records := logged(t, &b)
	require.Len(t, records, 1)
	require.Equal(t, "INFO", records[0]["level"])
	require.Equal(t, "model step cancelled", records[0]["msg"])
	require.Equal(t, "context_canceled", records[0]["error_type"])
}

func TestLogOfAttemptsIsForDebugging(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	_, err := stack(tracing.Options{Logger: logger(&b, slog.LevelDebug)}, script(answer()))(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, map[string]any{
		"level": "DEBUG", "msg": "model call", "model": "m-1", "attempt": 1.0, "input_tokens": 100.0, "output_tokens": 20.0,
	}, logged(t, &b)[0])
}

func TestLogIsBounded(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	verdicts := make([]middleware.Verdict, 1000)
	for i := range verdicts {
		verdicts[i].Issues = make([]middleware.Issue, 100)
	}
	call := tracing.New(tracing.Options{Logger: logger(&b, slog.LevelInfo)})(
		reported(middleware.Report{Attempts: []middleware.Attempt{{Verdicts: verdicts}}}))
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	records := logged(t, &b)
	require.Len(t, records, 129)
	require.Len(t, records[0]["codes"], 16)
	require.Equal(t, 1000.0, records[128]["invalid_calls"])
}
