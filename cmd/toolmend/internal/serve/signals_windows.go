package serve

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// addressInUse is WSAEADDRINUSE, the error of an address that another program
// listens on.
const addressInUse = syscall.Errno(10048)

// listenForSignals returns the signals to stop. stop ends this. Windows has no
// signal to reload.
func listenForSignals(bool) (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 8)
	signal.Notify(c, os.Interrupt, syscall.SIGTERM)
	return c, func() { signal.Stop(c) }
}

func isReload(os.Signal) bool { return false }

// watchConfig tells when the file changes.
func watchConfig(path string) (changed <-chan struct{}, stop func()) {
	return watchFile(path, 2*time.Second)
}
