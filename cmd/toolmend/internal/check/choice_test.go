package check

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

// A record of the gateway says what its request forbids.
func TestForbiddenCallsOfServed(t *testing.T) {
	t.Parallel()
	line := `{"attempt":1,"attempts":1,"final":true,%s"tool_calls":[{"id":"1","name":"a","arguments":"{}"}],"tools":[{"name":"a","parameters":{"type":"object"}}]}` + "\n"
	got := exec(t, t.TempDir(), fmt.Sprintf(line, `"limits":{"tool_choice":{"mode":"none"}},`), "check", "-")
	require.Equal(t, cli.ExitInvalid, got.Code)
	require.Contains(t, got.Out, "(tool_choice)")
	require.Equal(t, cli.ExitOK, exec(t, t.TempDir(), fmt.Sprintf(line, ""), "check", "-").Code)
}

// Calls that the recorded request forbids are invalid, and no option is a hint against them.
func TestForbiddenCalls(t *testing.T) {
	t.Parallel()
	calls := `{"id":"1","type":"function","function":{"name":"a","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"b","arguments":"{}"}}`
	for name, c := range map[string]struct {
		member  string
		invalid int
		message string
	}{
		"no limit": {`"n":1`, 0, ""},
		"none":     {`"tool_choice":"none"`, 2, "(tool_choice)"},
		"a list":   {`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"b"}}]}}`, 1, "(tool_choice)"},
		"one call": {`"parallel_tool_calls":false`, 1, "(parallel_calls)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			line := fmt.Sprintf(`{"path":"/v1/chat/completions","request":{"model":"m","messages":[{"role":"user","content":"go"}],%s,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},{"type":"function","function":{"name":"b","parameters":{"type":"object"}}}]},`+
				`"response":{"id":"r","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[%s]},"finish_reason":"tool_calls"}]}}`, c.member, calls)
			got := exec(t, t.TempDir(), line+"\n", "check", "-hints", "-")
			require.NotContains(t, got.Out, "turn on")
			require.Contains(t, got.Out, c.message)
			got = exec(t, t.TempDir(), line+"\n", "check", "-format", "json", "-")
			var sum struct {
				AsSent map[string]int `json:"as_sent"`
			}
			require.NoError(t, json.Unmarshal([]byte(lastLine(got.Out)), &sum))
			require.Equal(t, c.invalid, sum.AsSent["invalid"])
			require.Equal(t, map[bool]int{true: cli.ExitOK, false: cli.ExitInvalid}[c.invalid == 0], got.Code)
		})
	}
}
