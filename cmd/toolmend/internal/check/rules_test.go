package check

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRules holds that the rules of a gateway's configuration give verdicts, those for an upstream or a client with
// their flag, and that the hook is asked with its flag only.
func TestRules(t *testing.T) {
	t.Parallel()
	const call = `{"tool_calls":[{"name":"refund","arguments":"{\"amount\":5000}"}],"tools":[{"name":"refund","parameters":{"type":"object","properties":{"amount":{"type":"number"}}}}]}`
	const limit = "tool = 'ref*'\nschema.properties.amount.maximum = 1000\n"
	const rest = "[[client]]\nname = 'team'\nkey_file = 'none'\n[[upstream]]\nname = 'up'\nurl = 'http://127.0.0.1:1'\n"
	for name, c := range map[string]struct {
		rules string
		args  []string
		code  int
		want  string
		asked int64
	}{
		"no rules":         {rules: "[[rule]]\n" + limit},
		"a limit":          {rules: "[[rule]]\n" + limit, args: []string{"-rules"}, code: 1, want: "wanted a number of at most 1000; sent number 5000"},
		"forbidden":        {rules: "[[rule]]\nforbid = true\nmessage = 'not here'\n", args: []string{"-rules"}, code: 1, want: "not here"},
		"another client":   {rules: "[[rule]]\nclient = 'team'\n" + limit, args: []string{"-rules"}},
		"the client":       {rules: "[[rule]]\nclient = 'team'\n" + limit, args: []string{"-client", "team", "-rules"}, code: 1, want: "at most 1000"},
		"the upstream":     {rules: "[[rule]]\nupstream = 'up'\n" + limit, args: []string{"-upstream", "up", "-rules"}, code: 1, want: "at most 1000"},
		"no hook":          {rules: "[hook]\nurl = 'HOOK'\n", args: []string{"-rules"}},
		"hook":             {rules: "[hook]\nurl = 'HOOK'\n", args: []string{"-hook", "-rules"}, code: 1, want: "no money", asked: 2},
		"a wrong rule":     {rules: "[[rule]]\ntool = 'x'\nforbit = true\n", args: []string{"-rules"}, code: 2, want: "rules.toml:3:1: unknown key rule.forbit"},
		"a wrong schema":   {rules: "[[rule]]\nschema.maximum = 'x'\n", args: []string{"-rules"}, code: 2, want: `rules.toml:2: rule "1": schema: schema is not valid`},
		"no file of rules": {args: []string{"-hook"}, code: 2, want: "-upstream, -client and -hook need -rules FILE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int64
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				_, _ = io.WriteString(w, `{"findings": [{"pointer": "/amount", "message": "no money"}]}`)
			}))
			t.Cleanup(h.Close)
			dir := t.TempDir()
			if len(c.args) > 0 && c.args[len(c.args)-1] == "-rules" {
				c.args = append(c.args, filepath.Join(dir, "rules.toml"))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "rules.toml"), []byte(strings.Replace(c.rules, "HOOK", h.URL, 1)+rest), 0o600))
			got := exec(t, dir, call, append(append([]string{"check", "-json"}, c.args...), "-")...)
			require.Equal(t, c.code, got.Code, got.Out+got.ErrOut)
			require.Contains(t, got.Out+got.ErrOut, c.want)
			require.Equal(t, c.asked, asked.Load())
		})
	}
}
