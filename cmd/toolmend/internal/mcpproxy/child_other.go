//go:build !linux

package mcpproxy

import "os/exec"

// endWithParent does nothing: the server reads the end of its input if toolmend is
// killed.
func endWithParent(*exec.Cmd) {}
