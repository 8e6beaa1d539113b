package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/gateway"
)

// TestLoopsAndEscalation: a call that repeats failures is re-asked once, and the last attempt of
// a step goes to the model of the setting; in mode repair neither happens.
func TestLoopsAndEscalation(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","required":["a"]}}}]`
	const failed = `{"role":"assistant","content":null,"tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},{"role":"tool","tool_call_id":"x","content":"Error: no"}`
	answer := func(arguments string) string {
		return `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"` + arguments + `"}}]},"finish_reason":"tool_calls"}]}`
	}
	for name, c := range map[string]struct {
		settings  gateway.Settings
		tool      gateway.ToolRule
		history   int
		arguments string
		models    string
	}{
		"a loop":             {gateway.Settings{LoopAfter: 3}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small small"},
		"polling":            {gateway.Settings{LoopAfter: 3}, gateway.ToolRule{Name: "f", Polling: true}, 3, `{\"a\":1}`, "small"},
		"off":                {gateway.Settings{}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small"},
		"repair":             {gateway.Settings{LoopAfter: 3, Escalate: "large", Mode: gateway.Repair}, gateway.ToolRule{}, 3, `{\"a\":1}`, "small"},
		"another model":      {gateway.Settings{Escalate: "large"}, gateway.ToolRule{}, 0, `{}`, "small small large"},
		"no further attempt": {gateway.Settings{Escalate: "large", Attempts: 1}, gateway.ToolRule{}, 0, `{}`, "small"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var models []string
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				_, model, _ := strings.Cut(string(b), `"model":"`)
				model, _, _ = strings.Cut(model, `"`)
				models = append(models, model)
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer(c.arguments))
			}))
			t.Cleanup(s.Close)
			u := gateway.Upstream{URL: s.URL}
			if c.tool.Name != "" {
				u.ToolRules = []gateway.ToolRule{c.tool}
			}
			url := serve(t, gateway.Config{Settings: c.settings, Upstreams: []gateway.Upstream{u}})
			status, _, _ := post(t, url+"/v1/chat/completions", `{"model":"small","messages":[{"role":"user","content":"?"}`+strings.Repeat(","+failed, c.history)+`],`+tools+`}`)
			require.Equal(t, http.StatusOK, status)
			require.Equal(t, c.models, strings.Join(models, " "))
		})
	}
	require.ErrorContains(t, gateway.Config{Settings: gateway.Settings{LoopAfter: -1}, Upstreams: []gateway.Upstream{{URL: "http://127.0.0.1:1"}}}.Validate(), "loop_after")
}
