package mcpproxy

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

// waitPlain is wait without the signals.
func waitPlain(c *exec.Cmd) (int, error) {
	if err := c.Start(); err != nil {
		return 0, err
	}
	_ = c.Wait()
	return c.ProcessState.ExitCode(), nil
}

// runWith runs the command toolmend mcp.
func runWith(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs sink
	code = Run(t.Context(), args, strings.NewReader(stdin), &out, &errs, waitPlain)
	return code, out.bytes.String(), errs.bytes.String()
}

// printed runs the command and replaces the path of this program.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := runWith(t, "", args...)
	require.Zero(t, code, errs)
	self, err := os.Executable()
	require.NoError(t, err)
	return strings.ReplaceAll(out, self, "/bin/toolmend")
}

func TestPrint(t *testing.T) {
	t.Parallel()
	require.Equal(t, `{
  "mcpServers": {
    "server-filesystem": {"command": "/bin/toolmend", "args": ["mcp", "--mode", "repair", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"]}
  }
}
`, printed(t, "--print", "claude-desktop", "--mode", "repair", "--", "npx", "-y", "@modelcontextprotocol/server-filesystem", "/data"))
	require.Equal(t, `{
  "servers": {
    "x": {"type": "http", "url": "http://127.0.0.1:7778/a/mcp?k=1"}
  }
}
`, printed(t, "--print", "vscode", "--name", "x", "--upstream", "https://example.com/a/mcp?k=1"))
	require.Equal(t, "[mcp_servers.\"git\"]\ncommand = \"/bin/toolmend\"\nargs = [\"mcp\", \"--\", \"git\"]\n", printed(t, "--print", "codex", "--", "git"))
	require.Equal(t, "[mcp_servers.\"x\"]\nurl = \"http://127.0.0.1:7778/mcp\"\n", printed(t, "--print", "codex", "--name", "x", "--upstream", "https://example.com/mcp"))
	code, _, errs := runWith(t, "", "--print", "claude-desktop", "--upstream", "https://example.com/mcp")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, "npx -y mcp-remote https://example.com/mcp")
	code, _, errs = runWith(t, "", "--print", "emacs", "--", "a")
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, errs, `"emacs"`)
}

const desktop = `{
  "theme": "dark", "n": 1.50,
  "mcpServers": {
    "files": { "command": "npx", "args": ["-y", "files", "C:\\data"], "env": {"K": "v"} },
    "time":  {"command":"uvx"},
    "far":   {"url": "https://example.com/mcp"}
  }
}
`

const desktopWrapped = `{
  "theme": "dark", "n": 1.50,
  "mcpServers": {
    "files": { "command": "/bin/toolmend", "args": ["mcp", "--name", "files", "--", "npx", "-y", "files", "C:\\data"], "env": {"K": "v"} },
    "time":  {"command":"/bin/toolmend", "args": ["mcp", "--name", "time", "--", "uvx"]},
    "far":   {"url": "https://example.com/mcp"}
  }
}
`

func TestWrap(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.json")
	require.NoError(t, os.WriteFile(file, []byte(desktop), 0o640))
	require.Equal(t, desktopWrapped, printed(t, "--wrap", file))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, desktop, string(text), "without --write the file stays")
	_, _, errs := runWith(t, "", "--wrap", file)
	require.Contains(t, errs, "far is left as it is")

	link := filepath.Join(t.TempDir(), "link.json")
	require.NoError(t, os.Symlink(file, link))
	require.Contains(t, printed(t, "--wrap", link, "--write"), "2 servers are behind toolmend now")
	text, err = os.ReadFile(file + ".bak")
	require.NoError(t, err)
	require.Equal(t, desktop, string(text))
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	self, _ := os.Executable()
	require.Equal(t, desktopWrapped, strings.ReplaceAll(string(text), self, "/bin/toolmend"))
	require.Equal(t, "nothing to change\n", printed(t, "--wrap", file, "--write"))
	require.NoError(t, os.WriteFile(file, []byte(desktop), 0o640))
	code, _, errs := runWith(t, "", "--wrap", file, "--write")
	require.Equal(t, cli.ExitFailed, code, "a backup is never overwritten")
	require.Contains(t, errs, "config.json.bak")
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, desktop, string(text))
}

// A file is wrapped once, whatever its form is.
func TestWrapForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"servers":{"a":{"command":"b","args":[ 1e0, "\u0063" ]}}}`:                   `"mcp", "--name", "a", "--", "b",  1e0, "\u0063" ]`,
		`{"servers":{"a":{"command":"b","args":[]}}}`:                                  `"mcp", "--name", "a", "--", "b"]`,
		`{"mcp":{"servers":{"a":{"command":"b"}}}}`:                                    `"mcp", "--name", "a", "--", "b"]`,
		`{"mcpServers":{"a":{"command":"/x/toolmend","args":["mcp","--","b"]}}}`:       `"args":["mcp","--","b"]`,
		`{"mcpServers":{"a":{"command":"C:/x/Toolmend.exe","args":["mcp","--","b"]}}}`: `"args":["mcp","--","b"]`,
	} {
		after, _, _, err := settings{mode: modeEnforce}.wrapped(text)
		require.NoError(t, err)
		require.True(t, json.Valid([]byte(after)), after)
		require.Contains(t, after, want)
	}
	for _, text := range []string{`{}`, `{"mcpServers": {} // mine
}`, `[`} {
		_, _, _, err := settings{mode: modeEnforce}.wrapped(text)
		require.Error(t, err)
	}
}

// The page shows the calls, and only to a reader who has its address.
func TestPage(t *testing.T) {
	t.Parallel()
	in, client := io.Pipe()
	var out, errs sink
	done := make(chan struct{})
	go func() {
		defer close(done)
		Run(t.Context(), []string{"--page", "127.0.0.1:0", "--mode", "observe", "--", "cat"}, in, &out, &errs, waitPlain)
	}()
	_, err := client.Write([]byte(callOf("1", "tool_on_the_page", "{}") + "\n" + resultOf("1", `{}`) + "\n"))
	require.NoError(t, err)
	address := ""
	require.Eventually(t, func() bool {
		errs.mu.Lock()
		defer errs.mu.Unlock()
		address = regexp.MustCompile(`http://\S+`).FindString(errs.bytes.String())
		return address != ""
	}, 20e9, 1e6)
	get := func(to string, cookies ...*http.Cookie) (*http.Response, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
		require.NoError(t, err)
		for _, c := range cookies {
			req.AddCookie(c)
		}
		resp, err := http.DefaultTransport.RoundTrip(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body)
		return resp, string(text)
	}
	base, _, _ := strings.Cut(address, "?")
	resp, _ := get(base)
	require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	resp, _ = get(address)
	require.Eventually(t, func() bool {
		_, text := get(base, resp.Cookies()...)
		return strings.Contains(text, "tool_on_the_page")
	}, 20e9, 1e6)
	require.NoError(t, client.Close())
	<-done
}
