package mcpproxy

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the system end the server if toolmend is killed. SIGTERM lets
// a server that is a container or a launcher end what it has started.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
}
