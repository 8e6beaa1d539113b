//go:build !windows

package mcptools

import (
	"os/exec"
	"syscall"
)

// ownGroup makes a command the first process of a group, so that killGroup ends what it starts:
// a server behind npx, uvx or a script outlives its wrapper.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
