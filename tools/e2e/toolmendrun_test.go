package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runNames are the names of the agents for `toolmend run`.
var runNames = map[string]string{"claude-code": "claude", "codex": "codex", "opencode": "opencode", "qwen-code": "qwen"}

// logName is the log file that `toolmend run` names at its end.
var logName = regexp.MustCompile(`toolmend: the log of the gateway is (\S+)`)

// TestRun starts each coding agent with `toolmend run`, in the home directory
// of its user: it has the base URL of the provider in a variable or in a file. The
// agent's requests must go through the gateway to there, and its files stay.
func TestRun(t *testing.T) {
	root := os.Getenv("AGENTS")
	if root == "" {
		t.Skip("AGENTS is not set: `make agents` installs the clients and runs them")
	}
	toolmend := built(t)
	for _, c := range chosen() {
		if runNames[c.name] == "" {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			_, err := installed(t, root, c.pkg)
			require.NoError(t, err)
			direct, temp := c.command, t.TempDir()
			var files map[string]string
			c.command = func(p place) command {
				d := direct(p)
				path := filepath.Join(p.home, "bin")
				require.NoError(t, os.MkdirAll(path, 0o755))
				require.NoError(t, os.Symlink(d.args[0], filepath.Join(path, runNames[c.name])))
				d.args = append([]string{toolmend, "run", runNames[c.name], "--"}, d.args[1:]...)
				d.env = append(d.env, "PATH="+path+":"+os.Getenv("PATH"))
				files = d.files
				return d
			}
			r, err := run(t.Context(), root, temp, c, scenarios[0], fronts[0]) // the first call has a misnamed argument
			require.NoError(t, err)
			require.True(t, r.done(), r.output.text)
			require.Zero(t, r.output.code)

			named := logName.FindStringSubmatch(r.output.text)
			require.NotNil(t, named, r.output.text)
			log, err := os.ReadFile(named[1])
			require.NoError(t, err)
			require.Regexp(t, `"msg":"model call".*"status":"valid","attempts":2`, string(log))
			require.NotContains(t, string(log), `"status":"invalid"`)
			for name, before := range files {
				now, err := os.ReadFile(filepath.Join(temp, "home", name))
				require.NoError(t, err)
				// opencode itself puts $schema in front, and qwen indents the file and puts $version behind.
				members := strings.TrimSuffix(unspaced(before)[1:], "}")
				require.Contains(t, unspaced(string(now)), members, name)
			}
		})
	}
}

// built returns the command toolmend: the installed one that TOOLMEND names, such as a package has,
// or one that it builds.
func built(t *testing.T) string {
	if toolmend := os.Getenv("TOOLMEND"); toolmend != "" {
		return toolmend
	}
	toolmend := filepath.Join(t.TempDir(), "toolmend")
	build := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join("..", "..", "cmd", "toolmend"), "-o", toolmend, ".")
	text, err := build.CombinedOutput()
	require.NoError(t, err, string(text))
	return toolmend
}

// unspaced returns a text without its white space.
func unspaced(text string) string { return strings.Join(strings.Fields(text), "") }
