// Package reports gives tests of reports the same steps, and holds the writers of all
// formats to the same laws.
package reports

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Golden compares got with a file of testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

// Tools are the tools of the steps.
var Tools = []middleware.Tool{
	{Name: "get_weather", Parameters: []byte(`{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer","minimum":1},"unit":{"enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}`)},
	{Name: "plan", Parameters: []byte(`{"type":"object","properties":{"steps":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}},"required":["steps"]}`)},
	{Name: "free"},
	{Name: "odd", Parameters: []byte(`{"type":"nonsense"}`)},
}

// Check validates the calls of one message, each a name and arguments.
func Check(t testing.TB, finish middleware.FinishReason, nameArgs ...string) []report.Call {
	t.Helper()
	var calls []middleware.ToolCall
	for i := 0; i < len(nameArgs); i += 2 {
		calls = append(calls, middleware.ToolCall{ID: "c" + string(rune('0'+i/2)), Name: nameArgs[i], Arguments: nameArgs[i+1]})
	}
	got, err := report.NewChecker(argsvalidate.Options{}).Check(t.Context(), Tools, finish, calls...)
	require.NoError(t, err)
	return got
}

// Turn makes a step of one attempt at a line of log.jsonl.
func Turn(line int, model string, calls []report.Call) *report.Step {
	return &report.Step{
		ID: "r", File: "logs/log.jsonl", Line: line, Model: model, Tools: Tools,
		Attempts: []report.Attempt{{Model: model, Calls: calls, FinishReason: middleware.FinishToolCalls, Line: line}},
	}
}

// Steps are steps with every verdict, and one of two attempts.
func Steps(t testing.TB) []*report.Step {
	t.Helper()
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	ok, call := middleware.FinishToolCalls, Check
	out := []*report.Step{
		Turn(1, "model-a", call(t, ok, "get_weather", `{"city":"Oslo"}`, "get_weather", `{"city":"Oslo","days":"3"}`)),
		Turn(2, "model-a", call(t, ok, "get_weather", `{"city":"Oslo","unit":"kelvin"}`)),
		Turn(3, "model-b", call(t, ok, "get_weather", `{'city': 'Oslo', 'days': 3,}`)),
		Turn(4, "model-b", call(t, ok, "get_wether", `{"city":"Oslo"}`, "search", `{"q":"x"}`)),
		Turn(5, "model-b", call(t, ok, "plan", `[1]`)),
		Turn(6, "model-b", call(t, middleware.FinishLength, "plan", `{"steps":[{"na`)),
		Turn(7, "model-c", call(t, ok, "free", `{}`, "odd", `{}`)),
		Turn(8, "model-c", call(t, ok, "plan", `{"steps":[{"name":"a"},{"nam":"b"},{}]}`)),
	}
	two := Turn(9, "model-a", call(t, ok, "get_weather", `{}`))
	two.Attempts[0].Usage, two.Attempts[0].Duration = middleware.Usage{InputTokens: 100, OutputTokens: 20}, 300*time.Millisecond
	two.Attempts[0].Replies = []report.Reply{{Role: middleware.RoleTool, CallID: "c0", Tool: "get_weather", Text: "city is missing"}}
	two.Attempts = append(two.Attempts, report.Attempt{
		Model: "model-a", Calls: call(t, ok, "get_weather", `{"city":"Oslo"}`), Line: 10,
		Usage: middleware.Usage{InputTokens: 130, OutputTokens: 25}, Duration: 500 * time.Millisecond,
	})
	two.Final = 1
	out = append(out, two)
	for i, s := range out {
		s.Time = at.Add(time.Duration(i) * 10 * time.Second)
	}
	return out
}

// Summary returns the figures of steps.
func Summary(t testing.TB, o report.Options) report.Summary {
	t.Helper()
	f := report.NewFigures(o)
	for _, s := range Steps(t) {
		f.Add(s)
	}
	s := f.Summary()
	s.Reading = report.Reading{Files: 1, Skipped: map[string]int{"no tool calls": 2}}
	return s
}
