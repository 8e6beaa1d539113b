package e2e

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"
)

// limit is how long a client may take.
const limit = 150 * time.Second

// output is what a program wrote, and how it ended.
type output struct {
	text    string
	code    int
	expired bool // it was killed at the limit
}

// execute runs the command of a client and kills all of its process group at
// the end.
func execute(ctx context.Context, p place, c command) (output, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env = p.dir, p.environment(c)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return output{}, err
	}
	err := cmd.Wait()
	_ = kill() // what it left behind; an error says that nothing is
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && ctx.Err() == nil && !errors.Is(err, exec.ErrWaitDelay) {
		return output{}, err
	}
	return output{out.String(), cmd.ProcessState.ExitCode(), ctx.Err() != nil}, nil
}
