//go:build !windows

package cli

import (
	"os"
	osexec "os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// Wait runs a program and returns its exit code, 128+n if signal n ended it.
// The program is in the process group of toolmend, so it has the terminal, and
// gets the signals of the terminal from there. Other signals are sent on to it:
// it gets each of them once.
func Wait(c *osexec.Cmd) (int, error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2)
	defer signal.Stop(signals)
	started := inForeground()
	if err := c.Start(); err != nil {
		return 0, err
	}
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for {
		select {
		case s := <-signals:
			if !fromTerminal(s, started) {
				_ = c.Process.Signal(s)
			}
		case err := <-done:
			if c.ProcessState == nil {
				return 0, err
			}
			if status, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
				return EndedBySignal + int(status.Signal()), nil
			}
			return c.ProcessState.ExitCode(), nil
		}
	}
}

// fromTerminal reports whether a terminal sent a signal to the whole process
// group. A terminal that hangs up is gone by now, so for SIGHUP it counts what
// was true at the start.
func fromTerminal(s os.Signal, started bool) bool {
	switch s {
	case unix.SIGINT, unix.SIGQUIT:
		return inForeground()
	case unix.SIGHUP:
		return started
	}
	return false
}

// inForeground reports whether toolmend has a terminal, and is in the process
// group that gets its signals.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
