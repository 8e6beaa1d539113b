// Package servertest runs durable agents against a real Temporal server, and
// kills workers and the server while they run: `make durable`.
//
// The tests build the server from its source (devserver), which takes about ten
// minutes the first time. So `make check` leaves this module out. The workers
// are processes of the test binary. The outside world, which models and tools
// have their effects on, is the process of the test: it keeps a ledger that no
// kill can change.
package servertest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// The test binary is a worker if this is in its environment.
const roleVariable = "SERVERTEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "worker" {
		if err := runWorker(); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	code := m.Run()
	if devserver.dir != "" {
		_ = os.RemoveAll(devserver.dir)
	}
	os.Exit(code)
}

// devserver is the program of the server, which the first test builds.
var devserver struct {
	once      sync.Once
	dir, path string
	err       error
}

func buildDevserver(t *testing.T) string {
	t.Helper()
	devserver.once.Do(func() {
		if devserver.dir, devserver.err = os.MkdirTemp("", "servertest"); devserver.err != nil {
			return
		}
		devserver.path = filepath.Join(devserver.dir, "devserver")
		t.Log("building the server; the first time takes ten minutes")
		out, err := exec.Command("go", "build", "-C", "devserver", "-trimpath", "-ldflags=-s -w", "-o", devserver.path, ".").CombinedOutput()
		if err != nil {
			devserver.err = fmt.Errorf("%w: %s", err, out)
		}
	})
	require.NoError(t, devserver.err)
	return devserver.path
}

// process is a program that the test may kill. It also ends when the test does,
// because its standard input is closed then.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	first string // the first line that it wrote
	ended chan struct{}
}

// start starts a program and waits for its first line.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = &prefixed{t: t, prefix: filepath.Base(cmd.Path)}
	require.NoError(t, cmd.Start())
	p := &process{cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	lines := bufio.NewReader(stdout)
	p.first, err = lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		_ = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		p.kill()
	})
	require.NoError(t, err, "%s has not started", cmd.Path)
	return p
}

// kill ends the process at once, as kill -9 does, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	<-p.ended
}

// stop lets the process end in its own way, and waits for that.
func (p *process) stop() {
	_ = p.stdin.Close()
	<-p.ended
}

// prefixed writes what a process has to say into the log of the test.
type prefixed struct {
	t      *testing.T
	prefix string
	mu     sync.Mutex
	n      int
}

const maxLines = 200 // of a process

func (w *prefixed) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		if w.n++; w.n <= maxLines {
			fmt.Fprintf(w.t.Output(), "%s: %s", w.prefix, line)
		}
	}
	return len(b), nil
}

// server is a Temporal server that can be killed and started again with its data.
type server struct {
	t       *testing.T
	args    []string
	address string
	*process
}

// startServer starts a server. Without a file its data are in memory.
func startServer(t *testing.T, file string, settings ...string) *server {
	t.Helper()
	s := &server{t: t, address: "127.0.0.1:0"}
	if file != "" {
		s.args = append(s.args, "-db", file)
	}
	for _, setting := range settings {
		s.args = append(s.args, "-set", setting)
	}
	s.start()
	return s
}

func (s *server) start() {
	s.t.Helper()
	args := append([]string{"-until-eof", "-addr", s.address}, s.args...)
	s.process = start(s.t, exec.Command(buildDevserver(s.t), args...))
	var ok bool
	s.address, ok = strings.CutPrefix(strings.TrimSpace(s.first), "listening on ")
	require.True(s.t, ok, "%q", s.first)
}

// dial returns a client of the server. It may be used while the server is down.
func (s *server) dial() client.Client {
	s.t.Helper()
	c, err := client.Dial(client.Options{HostPort: s.address, Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	require.NoError(s.t, err)
	s.t.Cleanup(c.Close)
	return c
}

// setUp starts a server and the world. The context ends with the test or after
// the limit.
func setUp(t *testing.T, limit time.Duration, file string, settings ...string) (context.Context, *world, *server, client.Client) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	w := newWorld(t)
	s := startServer(t, file, settings...)
	return ctx, w, s, s.dial()
}

// databaseFile is a file for the data of a server that is killed.
func databaseFile(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "temporal.db")
}

// machine is what absolute times are printed with.
func machine() string {
	name := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	loads, _ := os.ReadFile("/proc/loadavg")
	load, _, _ := strings.Cut(string(loads), " ")
	return fmt.Sprintf("%s, %d cores, %s, load %s", name, runtime.NumCPU(), runtime.Version(), load)
}
