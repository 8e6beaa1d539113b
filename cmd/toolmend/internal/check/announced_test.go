package check

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// Calls of tools that the request announces and does not list are counted apart, and
// are no faults. What a result announces is.
func TestAnnounced(t *testing.T) {
	t.Parallel()
	exchange := func(system, result string) string {
		req := fmt.Sprintf(`{"model":"m","max_tokens":9,"system":%q,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"look","input":{}}]},`+
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":%q}]}],"tools":[{"name":"look","input_schema":{}}]}`, system, result)
		answer := `{"id":"r","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c","name":"cron_list","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`
		return fmt.Sprintf(`{"path":"/v1/messages","request":%s,"response":%s}`, req, answer) + "\n"
	}
	const line = `{"source":"gw","model":"m","attempt":1,"attempts":1,"final":true,"status":"unchecked","tools":[{"name":"look","parameters":{}}],"tool_calls":[{"id":"c","name":%q,"arguments":"{}","unchecked":true%s}]}`
	dir := clitest.DirWith(t, map[string]string{
		"exchange": exchange("Tools: cron_list.", "sunny"), "page": exchange("Go.", "Tools: cron_list."),
		"recorded": fmt.Sprintf(line, "search", `,"announced":true`), "recorded2": fmt.Sprintf(line, "search", ""),
	})
	for name, announced := range map[string]bool{"exchange": true, "recorded": true, "page": false, "recorded2": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := exec(t, dir, "", "check", "-format", "json", "@/"+name)
			var sum struct {
				AsSent map[string]int `json:"as_sent"`
				Total  struct{ Unchecked, Announced, Unknown int }
			}
			require.NoError(t, json.Unmarshal([]byte(lastLine(got.Out)), &sum))
			if announced {
				require.Equal(t, cli.ExitOK, got.Code)
				require.Equal(t, map[string]int{"announced": 1}, sum.AsSent)
			} else {
				require.Equal(t, cli.ExitInvalid, got.Code)
				require.Equal(t, map[string]int{"unknown_tool": 1}, sum.AsSent)
			}
		})
	}
	exec(t, dir, "", "check", "-html", "@/report.html", "@/exchange").Require(t, cli.ExitOK, "")
	require.Contains(t, read(t, dir, "report.html"), `<span class="v v-unchecked">announced</span>`)
}
