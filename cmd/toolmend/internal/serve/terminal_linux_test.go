package serve

import (
	"fmt"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/toolmend/toolmend/cmd/toolmend/internal/test/clitest"
)

// terminal opens a terminal and its other side.
func terminal(t *testing.T) (keyboard, tty *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals")
	}
	t.Cleanup(func() { _ = keyboard.Close() })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tty.Close() })
	return keyboard, tty
}

// TestRunInATerminal holds that Ctrl-C reaches the agent once, from the
// terminal, and a signal to toolmend alone too.
func TestRunInATerminal(t *testing.T) {
	t.Parallel()
	keyboard, tty := terminal(t)
	cmd := ran(t, t.TempDir(), []string{"FAKE_END=signals"}, "claude")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	require.NoError(t, cmd.Start())
	seen := clitest.NewLines()
	go func() { _, _ = io.Copy(seen, keyboard) }()
	_, err := keyboard.Write([]byte{4}) // the end of the agent's input
	require.NoError(t, err)
	seen.Await(t, "waiting", 1)
	_, err = keyboard.Write([]byte{3}) // Ctrl-C
	require.NoError(t, err)
	seen.Await(t, "got interrupt", 1)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	seen.Await(t, "got terminated", 1)
	require.NoError(t, cmd.Process.Signal(syscall.SIGUSR1))
	_ = cmd.Wait()
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
	text := seen.Await(t, "the log of the gateway is", 1)
	require.Contains(t, text, "got interrupt")
	require.NotRegexp(t, `(?s)got interrupt.*got interrupt`, text)
}
