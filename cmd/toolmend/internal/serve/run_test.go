//go:build !windows

package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	osexec "os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// fakeCommand is the name of a program that is not an agent. FAKE_BASE names the variable that it reads.
const fakeCommand = "some-program"

// fakeAgent is what the test binary does under the name of an agent. It says how
// it was started, sends a model call to where the agent would, and ends as
// FAKE_END says.
func fakeAgent(name string, args []string) int {
	var base string
	path := "/chat/completions"
	switch name {
	case fakeCommand:
		base = os.Getenv(os.Getenv("FAKE_BASE"))
	case "claude":
		base, path = os.Getenv("ANTHROPIC_BASE_URL"), "/v1/chat/completions"
	case "copilot":
		base = os.Getenv("COPILOT_PROVIDER_BASE_URL")
	case "codex":
		base, _ = codexCut(args, "openai_base_url")
	case "qwen":
		base, _ = cutFlag(args, "--openai-base-url")
	case "opencode":
		var c struct {
			Provider map[string]struct{ Options struct{ BaseURL string } }
		}
		_ = json.Unmarshal([]byte(os.Getenv("OPENCODE_CONFIG_CONTENT")), &c)
		base = c.Provider["mine"].Options.BaseURL
	}
	in, _ := io.ReadAll(os.Stdin)
	fmt.Printf("args %q stdin %q NO_PROXY %s\n", args, in, os.Getenv("NO_PROXY"))
	fmt.Printf("keys %q\n", os.Getenv("TOOLMEND_CLIENT_KEY")+os.Getenv("TOOLMEND_ADMIN_KEY"))
	if os.Getenv("FAKE_CALL") != "" {
		resp, err := http.Post(base+path, "application/json", strings.NewReader(modelCall))
		if err != nil {
			fmt.Println(err)
			return 99
		}
		defer resp.Body.Close()
		_, _ = io.Copy(io.Discard, resp.Body)
		fmt.Println("status", resp.StatusCode, resp.Header.Get("X-Toolmend-Status"))
	}
	switch os.Getenv("FAKE_END") {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	case "signals": // until SIGUSR1
		got := make(chan os.Signal, 10)
		signal.Notify(got)
		fmt.Println("waiting")
		for s := range got {
			switch s {
			case syscall.SIGURG, syscall.SIGCHLD, syscall.SIGPIPE, syscall.SIGWINCH: // of the runtime and the terminal
			case syscall.SIGUSR1:
				return 7
			default:
				fmt.Println("got", s)
			}
		}
	}
	return 5
}

// ran is `toolmend run` as a process, with fake agents in PATH and an empty home
// directory.
func ran(t *testing.T, home string, env []string, args ...string) *osexec.Cmd {
	t.Helper()
	bin := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	for _, name := range append(launcherNames(), fakeCommand) {
		require.NoError(t, os.Symlink(self, filepath.Join(bin, name)))
	}
	c := osexec.CommandContext(t.Context(), self, append([]string{"run"}, args...)...)
	c.Dir = home
	c.Env = append([]string{asProgram + "=1", "HOME=" + home, "PATH=" + bin}, env...)
	return c
}

// TestRun holds that an agent is started with its arguments and its input, that
// its model call goes through the gateway to where the agent's requests went
// before, that its exit code is that of toolmend, and that nothing but the
// log is written.
func TestRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env   string // the present base URL, as NAME=
		args  []string
		value string
	}{
		"claude":   {env: "ANTHROPIC_BASE_URL=%s"},
		"qwen":     {env: "OPENAI_BASE_URL=%s/v1"},
		"copilot":  {env: "COPILOT_PROVIDER_BASE_URL=%s/v1"},
		"codex":    {args: []string{"-c", `openai_base_url="%s/v1"`}},
		"opencode": {env: `OPENCODE_CONFIG_CONTENT={"provider":{"mine":{"options":{"baseURL":"%s/v1"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, home := answering(t), t.TempDir()
			record := filepath.Join(t.TempDir(), "calls.jsonl")
			args := []string{"--record", record, name, "--", "-p", "hi"}
			for _, a := range c.args {
				if strings.Contains(a, "%s") {
					a = fmt.Sprintf(a, up)
				}
				args = append(args, a)
			}
			env := []string{"FAKE_CALL=1", "NO_PROXY=internal", "TOOLMEND_CLIENT_KEY=0123456789abcdef", "TOOLMEND_ADMIN_KEY=0123456789abcdef"}
			if c.env != "" {
				env = append(env, fmt.Sprintf(c.env, up))
			}
			cmd := ran(t, home, env, args...)
			var out, errOut bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("typed"), &out, &errOut
			_ = cmd.Run()
			require.Equal(t, 5, cmd.ProcessState.ExitCode(), errOut.String())
			require.Contains(t, out.String(), `"-p" "hi"`)
			require.Contains(t, out.String(), `stdin "typed" NO_PROXY 127.0.0.1,localhost,internal`)
			require.Contains(t, out.String(), `keys ""`)
			require.Contains(t, out.String(), "status 200 valid")

			log, ok := strings.CutPrefix(strings.TrimSpace(errOut.String()), "toolmend: "+name+": 1 model call, none needed a repair\ntoolmend: the log of the gateway is ")
			require.True(t, ok, errOut.String())
			text, err := os.ReadFile(log)
			require.NoError(t, err)
			require.Contains(t, string(text), `"msg":"model call"`)
			require.Regexp(t, `"page":"http://127\.0\.0\.1:[0-9]+/_toolmend/\?token=[a-z2-7]{26}"`, string(text))
			lines, err := os.ReadFile(record)
			require.NoError(t, err)
			require.Contains(t, string(lines), `"name":"f"`)
			var written []string
			require.NoError(t, filepath.WalkDir(home, func(p string, d os.DirEntry, err error) error {
				if !d.IsDir() {
					written = append(written, p)
				}
				return err
			}))
			require.Equal(t, []string{log}, written)
		})
	}
}

// TestRunCommand holds that a program reaches, by each variable, what it reached without toolmend; that
// it gets its arguments unchanged, "--" among them; and that one line on standard error follows it.
func TestRunCommand(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		base, env, flag, file string // %s is the upstream; base is what the program reads
	}{
		"a set variable":            {base: "OPENAI_BASE_URL", env: "OPENAI_BASE_URL=%s/v1"},
		"without a version":         {base: "MISTRAL_BASE_URL", env: "MISTRAL_BASE_URL=%s"},
		"one that is left alone":    {base: "OPENAI_API_BASE", env: "OPENAI_API_BASE=%s/v1/"},
		"a file":                    {base: "OPENROUTER_API_BASE", file: "export OPENROUTER_API_BASE=\"%s/v1\"\n"},
		"the environment is nearer": {base: "OPENAI_BASE_URL", env: "OPENAI_BASE_URL=%s/v1", file: "OPENAI_BASE_URL=http://127.0.0.1:1/v1\n"},
		"--upstream":                {base: "OPENAI_BASE_URL", flag: "%s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up, home := answering(t), t.TempDir()
			args := []string{"--", fakeCommand, "--", "-p", "hi"}
			if c.flag != "" {
				args = append([]string{"--upstream", fmt.Sprintf(c.flag, up)}, args...)
			}
			env := []string{"FAKE_CALL=1", "FAKE_BASE=" + c.base}
			if c.env != "" {
				env = append(env, fmt.Sprintf(c.env, up))
			}
			if c.file != "" {
				require.NoError(t, os.WriteFile(filepath.Join(home, ".env"), fmt.Appendf(nil, c.file, up), 0o600))
			}
			cmd := ran(t, home, env, args...)
			var out, errOut bytes.Buffer
			cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("typed"), &out, &errOut
			_ = cmd.Run()
			require.Equal(t, 5, cmd.ProcessState.ExitCode(), errOut.String())
			require.Contains(t, out.String(), `args ["--" "-p" "hi"] stdin "typed"`)
			require.Contains(t, out.String(), "status 200 valid")
			require.NotContains(t, out.String(), "toolmend")
			require.Regexp(t, `^toolmend: 1 model request, 1 tool call; requests: 0 repaired, 0 re-asked, 0 still invalid, 0 failed; log: \S+run-command-\S+\n$`, errOut.String())
		})
	}
}

func TestRunEnds(t *testing.T) {
	t.Parallel()
	noTLS := strings.Replace(answering(t), "http:", "https:", 1)
	for name, c := range map[string]struct {
		env  []string
		args []string
		code int
		err  string
	}{
		"no request":      {nil, []string{"claude"}, 5, "toolmend: no request of claude reached the gateway, so no tool call was validated. It uses another provider than https://api.anthropic.com"},
		"killed":          {[]string{"FAKE_END=kill"}, []string{"claude"}, 137, "toolmend: the log of the gateway is "},
		"no upstream":     {[]string{"FAKE_CALL=1", "ANTHROPIC_BASE_URL=" + noTLS}, []string{"claude"}, 5, "toolmend: claude: 1 model call, 1 failed\ntoolmend: the upstream " + noTLS + " comes from ANTHROPIC_BASE_URL\n"},
		"not installed":   {[]string{"PATH=" + os.DevNull}, []string{"claude"}, 127, "toolmend run: claude is not installed, or not in PATH\n"},
		"no agent":        {nil, nil, 2, "name an agent: claude, codex, copilot, gemini, opencode, qwen; or a program: toolmend run -- COMMAND\nSee toolmend run -h."},
		"no command":      {nil, []string{"--"}, 2, "or a program: toolmend run -- COMMAND"},
		"unknown agent":   {nil, []string{"vi"}, 2, `unknown agent "vi"; the agents are claude, codex, copilot, gemini, opencode, qwen. For another program: toolmend run -- vi`},
		"no such command": {nil, []string{"--", "no-such-program"}, 127, "toolmend run: no-such-program is not installed, or not in PATH\n"},
		"command killed":  {[]string{"FAKE_END=kill"}, []string{"--mode", "repair", "--", fakeCommand}, 137, "toolmend: no request reached the gateway, so no tool call was validated"},
		"wrong variable":  {[]string{"OPENAI_BASE_URL=localhost:8080"}, []string{"--", fakeCommand}, 2, `OPENAI_BASE_URL must be a URL, such as https://api.openai.com/v1`},
		"mode":            {nil, []string{"--mode", "strict", "claude"}, 2, `toolmend run: mode: must be one of`},
		"upstream":        {nil, []string{"--upstream", "x", "claude"}, 2, `--upstream "x" is not a URL; write https://x`},
		"no cache":        {[]string{"HOME=" + os.DevNull}, []string{"claude"}, 5, "the log of the gateway is " + os.TempDir()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := ran(t, t.TempDir(), c.env, c.args...)
			var errOut bytes.Buffer
			cmd.Stderr = &errOut
			_ = cmd.Run()
			require.Equal(t, c.code, cmd.ProcessState.ExitCode(), errOut.String())
			require.Contains(t, errOut.String(), c.err)
			require.Equal(t, name == "no request" || name == "no cache", strings.Contains(errOut.String(), "no request of"))
			if _, log, ok := strings.Cut(errOut.String(), "the log of the gateway is "+os.TempDir()); ok && name == "no cache" {
				_ = os.Remove(os.TempDir() + strings.TrimSpace(log))
			}
		})
	}
}

// TestRunSignals holds that a signal to toolmend reaches the agent once, and
// that toolmend waits for the agent.
func TestRunSignals(t *testing.T) {
	t.Parallel()
	cmd := ran(t, t.TempDir(), []string{"FAKE_END=signals"}, "claude")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
	out := clitest.NewLines()
	cmd.Stdout, cmd.Stderr = out, io.Discard
	require.NoError(t, cmd.Start())
	out.Await(t, "waiting\n", 1)
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, cmd.Process.Signal(s))
		out.Await(t, "got "+s.String()+"\n", 1)
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	_ = cmd.Wait()
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
	require.Equal(t, 4, strings.Count(out.String(), "got "), out.String())
}

func TestRunLogsAreFew(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	t.Setenv("HOME", dir)
	for range keptLogs + 3 {
		f, err := newRunLog("claude")
		require.NoError(t, err)
		info, err := f.Stat()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		require.NoError(t, f.Close())
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	left, err := os.ReadDir(filepath.Join(cache, "toolmend"))
	require.NoError(t, err)
	require.Len(t, left, keptLogs)
}
