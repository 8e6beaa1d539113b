package serve

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

func none(string) string { return "" }

// TestGuides holds what each agent's user reads.
func TestGuides(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, agent := range agentNames() {
		text, err := guide([]string{"--shell", "sh", "--url", "http://127.0.0.1:8000/v1/", agent}, none)
		require.NoError(t, err)
		require.NotContains(t, text, "{{")
		require.True(t, strings.Contains(text, "http://127.0.0.1:8000") || strings.Contains(text, "toolmend mcp --wrap"), agent)
		all.WriteString("== " + agent + "\n" + text)
	}
	clitest.Golden(t, "guides.txt", all.String())
	for _, agent := range agentNames() {
		require.Contains(t, envHelp, agent)
	}
}

// TestGuideIsForEval holds that a shell that evaluates the output has the
// variables, with those for a proxy.
func TestGuideIsForEval(t *testing.T) {
	t.Parallel()
	if _, err := osexec.LookPath("sh"); err != nil {
		t.Skip("there is no sh on this machine")
	}
	proxied := func(name string) string {
		return map[string]string{"HTTPS_PROXY": "http://proxy:1", "no_proxy": "internal"}[name]
	}
	for agent, want := range map[string]string{
		"claude":        "http://127.0.0.1:7777||127.0.0.1,localhost,internal|127.0.0.1,localhost,internal",
		"qwen":          "|http://127.0.0.1:7777/v1|127.0.0.1,localhost,internal|127.0.0.1,localhost,internal",
		"openai-python": "|http://127.0.0.1:7777/v1|127.0.0.1,localhost,internal|127.0.0.1,localhost,internal",
	} {
		text, err := guide([]string{"--shell", "sh", agent}, proxied)
		require.NoError(t, err)
		sh := osexec.CommandContext(t.Context(), "sh", "-c", `eval "$1"; printf %s "$ANTHROPIC_BASE_URL|$OPENAI_BASE_URL|$NO_PROXY|$no_proxy"`, "sh", text)
		sh.Env = []string{}
		got, err := sh.CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, want, string(got), agent)
	}
}

func TestGuideShells(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{
		"sh": "export ANTHROPIC_BASE_URL='http://127.0.0.1:7777'\n", "fish": "set -gx ANTHROPIC_BASE_URL 'http://127.0.0.1:7777'\n",
		"powershell": "$env:ANTHROPIC_BASE_URL = 'http://127.0.0.1:7777'\n",
	} {
		text, err := guide([]string{"--shell", shell, "claude"}, none)
		require.NoError(t, err)
		require.Contains(t, text, want)
	}
}

func TestEnvErrors(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"":                            "name one agent: anthropic-python, claude-agent-sdk, claude-desktop, claude, ",
		"claude codex":                "name one agent, not 2: claude codex\n",
		"zed":                         `unknown agent "zed"; the agents are anthropic-python, claude-agent-sdk, `,
		"../env":                      "unknown agent",
		"--shell csh claude":          `--shell is sh, fish or powershell, not "csh"`,
		"--url 127.0.0.1:1 claude":    "--url is the gateway's address, such as http://127.0.0.1:7777, not",
		"--url http://a/$(id) claude": "--url is the gateway's address",
	} {
		got := exec(t, t.TempDir(), "", append([]string{"env"}, strings.Fields(args)...)...)
		require.Equal(t, cli.ExitFailed, got.Code)
		require.Contains(t, got.ErrOut, want)
		require.Empty(t, got.Out)
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	s := startServe(t, "--upstream", upstreamSaying(t, "u"))
	sick := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(sick.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, port, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	cert, key, _ := certificate(t)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	secure := file("secure.toml", "tls_cert = '"+cert+"'\ntls_key = '"+key+"'\n[[upstream]]\nurl = 'http://127.0.0.1:1'\n")
	_, securePort, err := net.SplitHostPort(startServe(t, "--config", secure).address)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		args []string
		code int
		err  string
	}{
		"file":     {[]string{"--config", file("any.toml", "listen = ':"+port+"'")}, cli.ExitOK, ""},
		"TLS":      {[]string{"--config", file("tls.toml", "listen = '[::]:"+securePort+"'\ntls_cert = 'c'")}, cli.ExitOK, ""},
		"no file":  {[]string{"--config", "none.toml"}, cli.ExitFailed, "cannot read the configuration: open none.toml"},
		"alive":    {[]string{"--url", "http://" + s.address}, cli.ExitOK, ""},
		"ready":    {[]string{"-ready", "--url", "http://" + s.address + "/"}, cli.ExitOK, ""},
		"status":   {[]string{"--url", sick.URL}, cli.ExitInvalid, "another program than a Toolmend gateway answers at " + sick.URL + "/_toolmend/healthz (status 404)"},
		"page":     {[]string{"--url", upstreamSaying(t, "hello")}, cli.ExitInvalid, "another program than a Toolmend gateway"},
		"no one":   {[]string{"--url", gone.URL}, cli.ExitInvalid, "; start it with toolmend serve, or name its address with --url"},
		"argument": {[]string{"now"}, cli.ExitFailed, `unexpected argument "now"`},
		"url":      {[]string{"--url", "x"}, cli.ExitFailed, "--url is the gateway's address"},
	} {
		t.Run(name, func(t *testing.T) {
			got := exec(t, t.TempDir(), "", append([]string{"health"}, c.args...)...)
			require.Equal(t, c.code, got.Code, got.ErrOut)
			require.Contains(t, got.ErrOut, c.err)
			require.Equal(t, c.code == cli.ExitOK, got.Out == "ok\n")
		})
	}
}
