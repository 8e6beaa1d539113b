package recorded_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/report"
	"github.com/toolmend/toolmend/middleware"
)

const servedLine = `{"id":"17-1/2","time":"2026-11-22T09:00:00.5Z","source":"u","model":"m","format":"anthropic","path":"/v1/messages","client":"c","mode":"enforce",
"attempt":2,"attempts":3,"final":true,"status":"valid","finish_reason":"tool_calls","duration_ms":20.5,"usage":{"input":10,"output":5},
"tool_calls":[{"id":"a","name":"add","arguments":"{}","issues":[{"code":"required","pointer":"/x"}]}],"tools":[{"name":"add"}],
"answer":{"role":"assistant","parts":[{"text":"hello"}]},"replies":[{"role":"tool","parts":[{"text":"x is missing"}]}]}`

// What the gateway writes beside the calls is read again.
func TestServed(t *testing.T) {
	t.Parallel()
	got := one(t, servedLine)
	took := 20500 * time.Microsecond
	require.Equal(t, &report.Step{
		Time: time.Date(2026, 11, 22, 9, 0, 0, 5e8, time.UTC), Mode: "enforce", Client: "c", Format: "anthropic", Path: "/v1/messages",
		Status: middleware.Valid, Duration: took, Attempts: []report.Attempt{{
			N: 2, Duration: took, Usage: middleware.Usage{InputTokens: 10, OutputTokens: 5}, Text: "hello",
			Replies: []report.Reply{{Role: middleware.RoleTool, Text: "x is missing"}},
		}},
	}, got.Served)
}

// So is what the request allowed, and nothing else of it. A line of another recorder has no limits.
func TestServedLimits(t *testing.T) {
	t.Parallel()
	limits := `"limits":{"model":"x","tool_choice":{"name":"add"},"allowed_tools":[],"no_parallel_calls":true},`
	want := middleware.Request{ToolChoice: middleware.ToolChoice{Name: "add"}, AllowedTools: []string{}, NoParallelCalls: true}
	require.Equal(t, want, one(t, "{"+limits+servedLine[1:]).Limits)
	require.Zero(t, one(t, servedLine).Limits)
	require.Zero(t, one(t, "{"+limits+`"tools":[],"tool_calls":[{"name":"x"}]}`).Limits)
}

// Lines of other recorders have none of it, even if they use its names.
func TestServedByOthers(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"id":"a/1","tools":[],"tool_calls":[{"name":"x"}]}`,
		`{"attempt":1,"tools":[],"tool_calls":[{"name":"x"}]}`,
		`{"attempt":"first","attempts":3,"tools":[],"tool_calls":[{"name":"x"}]}`,
		`{"attempt":0,"attempts":3,"tools":[],"tool_calls":[{"name":"x"}]}`,
		`{"attempt":4,"attempts":3,"tools":[],"tool_calls":[{"name":"x"}]}`,
		`{"attempt":null,"attempts":null,"usage":3,"replies":"no","answer":[],"final":"yes","tools":[],"tool_calls":[{"name":"x"}]}`,
	} {
		require.Nil(t, one(t, text).Served, text)
	}
	odd := one(t, `{"attempt":1,"attempts":1,"time":"yesterday","final":"yes","error":{"no":1},"duration_ms":-1e300,"usage":[],"replies":{},"answer":3,"tools":[],"tool_calls":[{"name":"x"}]}`)
	require.Equal(t, &report.Step{Final: -1, Attempts: []report.Attempt{{N: 1, Replies: []report.Reply{}}}}, odd.Served)
}
