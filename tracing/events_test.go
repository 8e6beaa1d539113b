package tracing_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/tracing"
)

func eventNames(events []sdktrace.Event) (names []string) {
	for _, e := range events {
		names = append(names, strings.TrimPrefix(e.Name, "toolmend."))
	}
	return names
}

func TestEventsTellTheStepInOrder(t *testing.T) {
	t.Parallel()
	l := listen(t)
	model := script(turn{err: &middleware.ModelError{StatusCode: 429}}, answer(bad), answer(good))
	_, err := stack(l.options(), model)(t.Context(), request())
	require.NoError(t, err)
	step := l.one("model_step")
	require.Equal(t, []string{"attempt_failed", "issue", "issue", "feedback", "change"}, eventNames(step.Events))
	require.Equal(t, map[string]any{"error.type": "429", "toolmend.attempt": int64(1)}, attrs(step.Events[0].Attributes))
	require.Equal(t, map[string]any{
		"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "call_refund", "toolmend.attempt": int64(2),
		"toolmend.issue.code": "type", "toolmend.pointer": "/amount",
	}, attrs(step.Events[1].Attributes))
	require.Equal(t, map[string]any{
		"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "call_refund", "toolmend.attempt": int64(2),
		"toolmend.issue.code": "required", "toolmend.pointer": "",
	}, attrs(step.Events[2].Attributes))
	require.Equal(t, map[string]any{"toolmend.replies": int64(1), "toolmend.attempt": int64(2)}, attrs(step.Events[3].Attributes))
	require.Equal(t, map[string]any{
		"gen_ai.tool.name": "refund", "gen_ai.tool.call.id": "call_refund", "toolmend.attempt": int64(3),
		"toolmend.change.by": "strip", "toolmend.pointer": "/note",
	}, attrs(step.Events[4].Attributes))
	require.Equal(t, int64(1), attrs(step.Attributes)["toolmend.notes"])
}

// A note may quote a schema or a value: its text is content.
func TestNotesAreContent(t *testing.T) {
	t.Parallel()
	for _, withContent := range []bool{false, true} {
		l := listen(t)
		var b bytes.Buffer
		o := l.options()
		o.Logger, o.Content = logger(&b, slog.LevelInfo), withContent
		o.Redact = func(s string) string { return strings.ReplaceAll(s, "secret", "***") }
		call := tracing.New(o)(reported(middleware.Report{
			Attempts: []middleware.Attempt{{}}, Notes: []string{"a secret pattern", strings.Repeat("x", 9000)},
		}))
		_, err := call(t.Context(), request())
		require.NoError(t, err)
		step := l.one("model_step")
		record := logged(t, &b)[0]
		require.Equal(t, int64(2), attrs(step.Attributes)["toolmend.notes"])
		require.Equal(t, 2.0, record["notes"])
		if !withContent {
			require.Empty(t, step.Events)
			require.NotContains(t, record, "note_texts")
			continue
		}
		cut := strings.Repeat("x", 8<<10) + "…"
		require.Len(t, step.Events, 2)
		require.Equal(t, map[string]any{"toolmend.note": "a *** pattern"}, attrs(step.Events[0].Attributes))
		require.Equal(t, map[string]any{"toolmend.note": cut}, attrs(step.Events[1].Attributes))
		require.Equal(t, []any{"a *** pattern", cut}, record["note_texts"])
	}
}

// reported is a model whose response comes with the given report.
func reported(r middleware.Report) middleware.ModelCall {
	resp := answer().resp
	resp.Report = r
	return script(turn{resp: resp})
}

func TestEventsHaveTheTimeTheirAttemptEnded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	replies := []middleware.Message{middleware.User("again")}
	call := tracing.New(l.options())(reported(middleware.Report{Attempts: []middleware.Attempt{
		{Start: start, Duration: time.Second, Replies: replies},
		{Start: start.Add(time.Minute), Duration: 2 * time.Second, Replies: replies},
		{Replies: replies}, // nobody measured
	}}))
	before := time.Now()
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	events := l.one("model_step").Events
	require.Len(t, events, 3)
	require.Equal(t, start.Add(time.Second), events[0].Time)
	require.Equal(t, start.Add(62*time.Second), events[1].Time)
	require.False(t, events[2].Time.Before(before))
}

func TestEventsAreBounded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	issues := make([]middleware.Issue, 200)
	for i := range issues {
		issues[i] = middleware.Issue{Code: "type", Pointer: fmt.Sprintf("/%d", i)}
	}
	changes := make([]middleware.Change, 10)
	call := tracing.New(l.options())(reported(middleware.Report{
		Status:   middleware.Invalid,
		Attempts: []middleware.Attempt{{Verdicts: []middleware.Verdict{{Issues: issues, Changes: changes}}}},
		Notes:    []string{"a", "b"},
	}))
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	step := l.one("model_step")
	require.Len(t, step.Events, 128)
	require.Equal(t, int64(82), attrs(step.Attributes)["toolmend.events.dropped"])
	require.Equal(t, int64(1), attrs(step.Attributes)["toolmend.invalid_calls"])
}

func TestNamesOfTheModelAreBounded(t *testing.T) {
	t.Parallel()
	l := listen(t)
	long := strings.Repeat("é", 1000) + "\xff"
	call := tracing.New(l.options())(reported(middleware.Report{
		Attempts: []middleware.Attempt{{Verdicts: []middleware.Verdict{{
			Call:   middleware.ToolCall{ID: long, Name: "\xff"},
			Issues: []middleware.Issue{{Code: long, Pointer: long}},
		}}}},
	}))
	_, err := call(t.Context(), request())
	require.NoError(t, err)
	e := attrs(l.one("model_step").Events[0].Attributes)
	want := strings.Repeat("é", 64) + "…"
	require.Equal(t, "?", e["gen_ai.tool.name"])
	for _, key := range []string{"gen_ai.tool.call.id", "toolmend.issue.code", "toolmend.pointer"} {
		require.Equal(t, want, e[key])
	}
}

func TestStepFailedKeepsItsStory(t *testing.T) {
	t.Parallel()
	l := listen(t)
	fault := &middleware.ModelError{StatusCode: 503, Code: "overloaded"}
	_, err := stack(l.options(), script(answer(bad), turn{err: fault}))(t.Context(), request())
	require.ErrorIs(t, err, fault)
	step := l.one("model_step")
	require.Equal(t, codes.Error, step.Status.Code)
	require.Equal(t, "503", step.Status.Description)
	a := attrs(step.Attributes)
	require.Equal(t, "503", a["error.type"])
	require.Equal(t, "overloaded", a["toolmend.error.code"])
	require.Equal(t, int64(3), a["toolmend.attempts"])
	require.Equal(t, int64(100), a["toolmend.usage.input_tokens"])
	require.Equal(t, []string{"issue", "issue", "feedback", "attempt_failed", "attempt_failed"}, eventNames(step.Events))
}
