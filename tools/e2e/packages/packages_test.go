//go:build linux

// Package packages installs the packages of a release in clean environments, and
// does with each what a user does first: version, check, serve with health, and
// run. `make packages` builds the packages and runs it.
package packages

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestMain makes the test binary a scripted agent if its name is that of one.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "claude" {
		os.Exit(agent(os.Args[1:]))
	}
	os.Exit(m.Run())
}

const request = `{"model":"m","messages":[{"role":"user","content":"go"}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"city":{"type":"string"},"units":{"type":"string"}},"required":["city"],"additionalProperties":false}}}]}`

// agent does what AGENT says: "kill" kills its parent, "signals" prints the signals
// that it gets until SIGUSR2, anything else makes a model call.
func agent(args []string) int {
	switch os.Getenv("AGENT") {
	case "kill":
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
		return 5
	case "signals":
		got := make(chan os.Signal, 10)
		signal.Notify(got, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR2)
		fmt.Println("waiting")
		for s := range got {
			if s == syscall.SIGUSR2 {
				return 7
			}
			fmt.Println("got", s)
		}
	}
	in, _ := io.ReadAll(os.Stdin)
	fmt.Printf("args %q stdin %q\n", args, in)
	resp, err := http.Post(os.Getenv("ANTHROPIC_BASE_URL")+"/v1/chat/completions", "application/json", strings.NewReader(request))
	if err != nil {
		fmt.Println(err)
		return 99
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	fmt.Println("status", resp.Header.Get("X-Toolmend-Status"), "body", string(body))
	return 5
}

// provider answers with a call whose optional argument is null.
func provider(t *testing.T) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"look","arguments":"{\"city\":\"Oslo\",\"units\":null}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14}}`)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// packed returns the file of the release whose name has this pattern.
func packed(t *testing.T, pattern string) string {
	t.Helper()
	dir := os.Getenv("PACKAGES")
	if dir == "" {
		t.Skip("PACKAGES is not set: `make packages` builds the packages and installs them")
	}
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

// version returns the version of the packages.
func version(t *testing.T) string {
	name := filepath.Base(packed(t, "npm/toolmend-[0-9]*.tgz"))
	return strings.TrimSuffix(strings.TrimPrefix(name, "toolmend-"), ".tgz")
}

// place is an environment with an empty home directory, and how the command is
// started in it.
type place struct {
	home    string
	path    string
	env     []string
	command []string
}

func newPlace(t *testing.T) *place {
	p := &place{home: t.TempDir(), path: os.Getenv("PATH")}
	bin := filepath.Join(p.home, "agents")
	require.NoError(t, os.Mkdir(bin, 0o755))
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, os.Symlink(self, filepath.Join(bin, "claude")))
	p.path = bin + ":" + p.path
	return p
}

// start returns a program in the place, not started.
func (p *place) start(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir = p.home
	cmd.Env = append([]string{"HOME=" + p.home, "PATH=" + p.path, "TERM=dumb"}, p.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // no terminal
	return cmd
}

// do runs a program in the place, and fails the test if it fails.
func (p *place) do(t *testing.T, args ...string) string {
	t.Helper()
	text, err := p.start(t, args...).CombinedOutput()
	require.NoError(t, err, "%s\n%s", strings.Join(args, " "), text)
	return string(text)
}

// toolmend returns the installed command, not started.
func (p *place) toolmend(t *testing.T, args ...string) *exec.Cmd {
	return p.start(t, append(append([]string{}, p.command...), args...)...)
}

// code returns how a program ended, as a shell says it.
func code(cmd *exec.Cmd) int {
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return cmd.ProcessState.ExitCode()
}

// output runs the installed command and returns its exit code and output.
func (p *place) output(t *testing.T, args ...string) (int, string) {
	cmd := p.toolmend(t, args...)
	text, _ := cmd.CombinedOutput()
	require.NotNil(t, cmd.ProcessState, "%v", p.command)
	return code(cmd), string(text)
}

// lines starts a program and returns the lines that it writes to both outputs.
func lines(t *testing.T, cmd *exec.Cmd) <-chan string {
	t.Helper()
	r, w, err := os.Pipe()
	require.NoError(t, err)
	cmd.Stdout, cmd.Stderr = w, w
	require.NoError(t, cmd.Start())
	require.NoError(t, w.Close())
	return scan(r)
}

func scan(r io.ReadCloser) <-chan string {
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		defer r.Close()
		for s := bufio.NewScanner(r); s.Scan(); {
			out <- strings.TrimSpace(s.Text())
		}
	}()
	return out
}

// await reads lines until one has the text, and returns that line.
func await(t *testing.T, from <-chan string, text string) string {
	t.Helper()
	late := time.After(time.Minute)
	var read []string
	for {
		select {
		case line, ok := <-from:
			read = append(read, line)
			if strings.Contains(line, text) {
				return line
			}
			require.True(t, ok, "no %q in:\n%s", text, strings.Join(read, "\n"))
		case <-late:
			require.Fail(t, "too late", "no %q in:\n%s", text, strings.Join(read, "\n"))
		}
	}
}

// works does with the installed command what a user does first.
func (p *place) works(t *testing.T) {
	t.Helper()
	upstream := provider(t)
	rc, text := p.output(t, "version")
	require.Zero(t, rc, text)
	require.Equal(t, fmt.Sprintf("toolmend v%s %s linux/%s\n", version(t), runtime.Version(), runtime.GOARCH), text)

	calls, err := filepath.Abs("../../../examples/check/calls.jsonl")
	require.NoError(t, err)
	rc, text = p.output(t, "check", calls)
	require.Equal(t, 1, rc, text) // some of the calls are invalid
	require.Contains(t, text, "read_file: invalid (required)")

	serve := p.toolmend(t, "serve", "--upstream", upstream, "--listen", "127.0.0.1:0")
	said := lines(t, serve)
	var ready struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(await(t, said, `"msg":"ready"`)), &ready))
	rc, text = p.output(t, "health", "--url", "http://"+ready.Address)
	require.Zero(t, rc, text)
	require.NoError(t, serve.Process.Signal(syscall.SIGTERM))
	await(t, said, `"msg":"stopped"`)
	_ = serve.Wait()
	require.Zero(t, code(serve))

	run := p.toolmend(t, "run", "--upstream", upstream, "claude", "--", "-p", "two words")
	run.Stdin = strings.NewReader("typed")
	out, _ := run.CombinedOutput()
	require.Equal(t, 5, code(run), string(out))
	require.Contains(t, string(out), `args ["-p" "two words"] stdin "typed"`)
	require.Contains(t, string(out), "1 model call, 1 repaired")
	require.Contains(t, string(out), `"arguments":"{\"city\":\"Oslo\"}"`)

	p.signals(t)
}

// signals holds that signals reach the agent once, and that the end of the command is
// seen outside.
func (p *place) signals(t *testing.T) {
	t.Helper()
	p.env = append(p.env, "AGENT=signals")
	run := p.toolmend(t, "run", "claude")
	said := lines(t, run)
	await(t, said, "waiting")
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, run.Process.Signal(s))
		await(t, said, "got "+s.String())
	}
	require.NoError(t, run.Process.Signal(syscall.SIGUSR2))
	for line := range said {
		require.NotContains(t, line, "got ")
	}
	_ = run.Wait()
	require.Equal(t, 7, code(run))

	p.terminal(t)

	p.env[len(p.env)-1] = "AGENT=kill"
	rc, text := p.output(t, "run", "claude")
	require.Equal(t, 128+int(syscall.SIGKILL), rc, text)
	p.env = p.env[:len(p.env)-1]
}

// terminal holds that Ctrl-C in a terminal reaches the gateway once: a second one would
// end the request that has begun.
func (p *place) terminal(t *testing.T) {
	t.Helper()
	begun, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = io.WriteString(w, "whole")
	}))
	defer upstream.Close()
	ours, theirs := pty(t)
	serve := p.toolmend(t, "serve", "--upstream", upstream.URL, "--listen", "127.0.0.1:0")
	serve.Stdin, serve.Stdout, serve.Stderr = theirs, theirs, theirs
	serve.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	require.NoError(t, serve.Start())
	require.NoError(t, theirs.Close())
	said := scan(ours)
	var ready struct{ Address string }
	require.NoError(t, json.Unmarshal([]byte(await(t, said, `"msg":"ready"`)), &ready))
	answer := make(chan string)
	go func() {
		resp, err := http.Get("http://" + ready.Address + "/v1/models")
		if err != nil {
			answer <- err.Error()
			return
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		answer <- string(body)
	}()
	<-begun
	_, err := ours.Write([]byte{3})
	require.NoError(t, err)
	await(t, said, "stopping")
	_, _ = p.output(t, "version") // time enough for a second signal
	close(release)
	require.Equal(t, "whole", <-answer)
	await(t, said, `"msg":"stopped"`)
	_ = serve.Wait()
	require.Zero(t, code(serve))
}

// pty returns the two ends of a new terminal.
func pty(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	raw, err := ours.SyscallConn()
	require.NoError(t, err)
	var number int
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0))
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		require.NoError(t, err)
	}))
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	return ours, theirs
}

func TestArchive(t *testing.T) {
	p := newPlace(t)
	p.do(t, "tar", "-xzf", packed(t, "toolmend_*_linux_"+runtime.GOARCH+".tar.gz"))
	p.command = []string{filepath.Join(p.home, "toolmend")}
	p.works(t)
	sums := p.start(t, "sha256sum", "--quiet", "-c", "checksums.txt")
	sums.Dir = os.Getenv("PACKAGES")
	text, err := sums.CombinedOutput()
	require.NoError(t, err, string(text))
}

func TestDebian(t *testing.T) {
	file := packed(t, "toolmend_*_"+runtime.GOARCH+".deb")
	p := systemPlace(t, "dpkg")
	require.NoError(t, os.MkdirAll(filepath.Join(p.home, "root/var/lib/dpkg/updates"), 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(p.home, "root/var/lib/dpkg/info"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(p.home, "root/var/lib/dpkg/status"), nil, 0o644))
	p.do(t, "dpkg", "--root="+filepath.Join(p.home, "root"), "-i", file)
	p.installed(t)
	p.do(t, "dpkg", "--root="+filepath.Join(p.home, "root"), "-r", "toolmend")
	require.NoFileExists(t, p.command[0])
}

func TestRPM(t *testing.T) {
	file := packed(t, "toolmend-*."+map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]+".rpm")
	p := systemPlace(t, "rpm")
	p.do(t, "rpm", "--root", filepath.Join(p.home, "root"), "--nosignature", "-i", file)
	p.installed(t)
	p.do(t, "rpm", "--root", filepath.Join(p.home, "root"), "-e", "toolmend")
	require.NoFileExists(t, p.command[0])
}

// systemPlace is a place with an empty root directory for a package manager.
func systemPlace(t *testing.T, manager string) *place {
	if _, err := exec.LookPath(manager); err != nil || os.Getuid() != 0 {
		t.Skipf("%s is not installed, or the user is not root", manager)
	}
	p := newPlace(t)
	root := filepath.Join(p.home, "root")
	require.NoError(t, os.Mkdir(root, 0o755))
	p.command = []string{filepath.Join(root, "usr/bin/toolmend")}
	return p
}

// installed holds that a system package works, and has a unit with the right path.
func (p *place) installed(t *testing.T) {
	p.works(t)
	unit, err := os.ReadFile(filepath.Join(p.home, "root/usr/lib/systemd/system/toolmend.service"))
	require.NoError(t, err)
	require.Contains(t, string(unit), "\nExecStart=/usr/bin/toolmend serve --config /etc/toolmend/toolmend.toml\n")
}

// brew is a stand-in for Homebrew: it evaluates a formula as brew does on Linux, and
// checks the archive's hash.
const brew = `
require "digest"; require "fileutils"
class Formula
  Dir_ = Struct.new(:path) do
    def install(*names) = (FileUtils.mkdir_p(path); FileUtils.cp(names, path))
    def to_s = path
  end
  class << self
    attr_reader :chosen
    %i[desc homepage license test].each { |name| define_method(name) { |*| } }
    def version(text) = text
    def on_linux = yield
    def on_macos; end
    def on_intel = (yield if ARGV[3] == "amd64")
    def on_arm = (yield if ARGV[3] == "arm64")
    def url(text) = (@chosen = { url: text })
    def sha256(text) = (@chosen[:sha256] = text)
  end
  def bin = Dir_.new(ARGV[2] + "/bin")
  def doc = Dir_.new(ARGV[2] + "/doc")
end
load ARGV[0]
archive = ARGV[1] + "/" + File.basename(Toolmend.chosen[:url])
abort "hash" unless Digest::SHA256.file(archive).hexdigest == Toolmend.chosen[:sha256]
system("tar", "-xzf", archive, exception: true)
Toolmend.new.install
`

func TestFormula(t *testing.T) {
	formula := packed(t, "homebrew/toolmend.rb")
	if _, err := exec.LookPath("ruby"); err != nil {
		t.Skip("ruby is not installed")
	}
	p := newPlace(t)
	p.do(t, "ruby", "-e", brew, formula, os.Getenv("PACKAGES"), filepath.Join(p.home, "prefix"), runtime.GOARCH)
	p.command = []string{filepath.Join(p.home, "prefix/bin/toolmend")}
	p.works(t)
}

// TestSBOM validates the documents with a validator of CycloneDX, from its registry.
func TestSBOM(t *testing.T) {
	packed(t, "toolmend_*_linux_amd64.cdx.json")
	files, err := filepath.Glob(filepath.Join(os.Getenv("PACKAGES"), "*.cdx.json"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	python := tool(t, "cyclonedx-python-lib[json-validation]", "python")
	const validate = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
for name in sys.argv[1:]:
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(name).read()):
        sys.exit(f"{name}: {error}")
`
	text, err := exec.CommandContext(t.Context(), python, append([]string{"-c", validate}, files...)...).CombinedOutput()
	require.NoError(t, err, string(text))
}

// tool installs a Python package for a test and returns one of its programs.
func tool(t *testing.T, name, program string) string {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"python3", "-m", "venv", dir}, {filepath.Join(dir, "bin/pip"), "install", "--quiet", name}} {
		text, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput()
		require.NoError(t, err, string(text))
	}
	return filepath.Join(dir, "bin", program)
}

// unpack returns the files of a tar by their names.
func unpack(t *testing.T, content []byte) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	tar := exec.CommandContext(t.Context(), "tar", "-xf", "-", "-C", dir)
	tar.Stdin = bytes.NewReader(content)
	text, err := tar.CombinedOutput()
	require.NoError(t, err, string(text))
	files := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[strings.TrimPrefix(name, dir+"/")], err = os.ReadFile(name)
		}
		return err
	}))
	return files
}
