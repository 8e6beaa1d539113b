//go:build !windows

package serve

import (
	"os"
	"os/signal"
	"syscall"
)

// addressInUse is the error of an address that another program listens on.
const addressInUse = syscall.EADDRINUSE

// listenForSignals returns the signals to stop, and SIGHUP: to reload if there is
// a configuration file, else to stop, because the terminal has gone. nohup turns
// off the latter. stop ends this.
func listenForSignals(file bool) (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	if file || !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(c, syscall.SIGHUP)
	}
	return c, func() { signal.Stop(c) }
}

// isReload reports whether s is the signal to reload a configuration file.
func isReload(s os.Signal) bool { return s == syscall.SIGHUP }

// watchConfig returns nil: SIGHUP says that the file has changed.
func watchConfig(string) (changed <-chan struct{}, stop func()) { return nil, func() {} }
