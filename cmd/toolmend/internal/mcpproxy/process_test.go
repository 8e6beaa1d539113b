//go:build linux

package mcpproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/cli"
)

// roleVariable makes the test program a proxy or a server.
const roleVariable = "MCPPROXY_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "proxy":
		_ = os.Setenv(roleVariable, "server")
		os.Exit(Run(context.Background(), append([]string{"--"}, os.Args...), os.Stdin, os.Stdout, os.Stderr, waitPlain))
	case "server": // it ignores the end of its input, or does not even read
		signal.Ignore(syscall.SIGHUP)
		fmt.Println(os.Getpid())
		if len(os.Args) > 1 {
			select {}
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		select {}
	}
	os.Exit(m.Run())
}

// startProxy starts a proxy with a server that never ends by itself, and returns
// the process id of the server.
func startProxy(t *testing.T, args ...string) (proxy *exec.Cmd, in io.WriteCloser, out io.Closer, server int) {
	t.Helper()
	proxy = exec.Command(os.Args[0], args...)
	proxy.Env = append(os.Environ(), roleVariable+"=proxy")
	stdin, err := proxy.StdinPipe()
	require.NoError(t, err)
	stdout, err := proxy.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, proxy.Start())
	t.Cleanup(func() { _ = proxy.Process.Kill(); _ = proxy.Wait() })
	first, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	server, err = strconv.Atoi(strings.TrimSpace(first))
	require.NoError(t, err)
	require.False(t, gone(server))
	return proxy, stdin, stdout, server
}

// gone reports whether a process has ended, whether its parent knows or not.
func gone(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return errors.Is(err, os.ErrNotExist) || strings.Contains(string(stat), ") Z ")
}

func TestKilledProxyLeavesNoServer(t *testing.T) {
	t.Parallel()
	proxy, _, _, server := startProxy(t)
	require.NoError(t, proxy.Process.Kill())
	require.Eventually(t, func() bool { return gone(server) }, 20*time.Second, 10*time.Millisecond)
}

func TestKilledClientLeavesNoProcess(t *testing.T) {
	t.Parallel()
	proxy, in, out, server := startProxy(t)
	_, _ = in.Close(), out.Close() // as the system does for a process that is killed
	require.Eventually(t, func() bool { return gone(server) && gone(proxy.Process.Pid) }, 20*time.Second, 10*time.Millisecond)
}

// A server that does not read its input never sees the end of it.
func TestKilledClientOfAServerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	proxy, in, out, server := startProxy(t, "deaf")
	sent := make(chan struct{})
	go func() { // more than both pipes hold
		defer close(sent)
		_, _ = io.WriteString(in, strings.Repeat(`{"jsonrpc":"2.0","method":"x"}`+"\n", 10_000))
	}()
	select {
	case <-sent:
		t.Fatal("the server reads")
	case <-time.After(time.Second):
	}
	_, _ = in.Close(), out.Close()
	require.Eventually(t, func() bool { return gone(server) && gone(proxy.Process.Pid) }, 20*time.Second, 10*time.Millisecond)
}

func TestKilledServerEndsTheProxy(t *testing.T) {
	t.Parallel()
	proxy, _, _, server := startProxy(t)
	require.NoError(t, syscall.Kill(server, syscall.SIGKILL))
	require.Eventually(t, func() bool { return gone(proxy.Process.Pid) }, 20*time.Second, 10*time.Millisecond)
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	code, out, errs := runWith(t, "hello\n", "--", "sh", "-c", "cat; echo no >&2; exit 7")
	require.Equal(t, 7, code)
	require.Equal(t, "hello\n", out)
	require.Equal(t, "no\n", errs, "standard error is the server's own")
	code, _, errs = runWith(t, "", "--", "no-such-program-here")
	require.Equal(t, cli.ExitNotFound, code)
	require.Contains(t, errs, "no-such-program-here")
	code, _, _ = runWith(t, "", "--", "./no-such-program-here")
	require.Equal(t, cli.ExitNotFound, code)
	code, _, errs = runWith(t, "", "--", "/dev/null")
	require.Equal(t, cli.ExitFailed, code, "the file is not a program")
	require.Contains(t, errs, "permission denied")
	for _, args := range [][]string{{}, {"--mode", "x", "--", "a"}, {"--upstream", "u", "--", "a"}, {"--upstream", "ftp://x"}, {"--nope"}, {"--write", "--", "a"},
		{"--upstream", "http://x", "--listen", "0.0.0.0:1"}, {"--page", ":80", "--", "a"}, {"--wrap", "f", "--", "a"}} {
		code, _, errs := runWith(t, "", args...)
		require.Equal(t, cli.ExitFailed, code, args)
		require.Contains(t, errs, "See toolmend mcp -h.", args)
	}
	code, out, _ = runWith(t, "", "-h")
	require.Zero(t, code)
	require.Equal(t, Help, out)
}

// Two proxies may write to one file.
func TestRecordIsAppended(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "calls.jsonl")
	server := `read call; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}'`
	for range 2 {
		code, _, _ := runWith(t, callOf("1", "x", "{}")+"\n", "--mode", "observe", "--record", file, "--", "sh", "-c", server)
		require.Zero(t, code)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(text), "the tool returned an error"))
}
