//go:build !windows

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// addressInUse is the error of an address that another program listens on.
const addressInUse = syscall.EADDRINUSE

// listenForSignals returns the signals to stop and to reload. stop ends this.
func listenForSignals() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

func isReload(s os.Signal) bool { return s == syscall.SIGHUP }

// watchConfig returns nil: SIGHUP says that the file has changed.
func watchConfig(string) (changed <-chan struct{}, stop func()) { return nil, func() {} }
