package mcptools

import "os/exec"

// ownGroup does nothing: Windows has no groups that killGroup could end.
func ownGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
