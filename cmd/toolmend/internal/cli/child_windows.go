package cli

import (
	"os"
	osexec "os/exec"
	"os/signal"
)

// Wait runs a program and returns its exit code. The console sends Ctrl-C to
// both, so toolmend only ignores it.
func Wait(c *osexec.Cmd) (int, error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return 0, err
	}
	if err := c.Wait(); c.ProcessState == nil {
		return 0, err
	}
	return c.ProcessState.ExitCode(), nil
}
