//go:build unix

package docpage

import (
	"os/exec"
	"syscall"
	"time"
)

// ownGroup makes the end of the context end the children of the shell too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
}
