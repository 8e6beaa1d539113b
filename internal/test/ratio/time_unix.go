//go:build unix

package ratio

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that the process has used. Unlike
// the time of day it does not include the time that other processes take.
func ProcessorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
