package main

import (
	"syscall"
	"time"
	"unsafe"
)

// processorTime returns the user and system time that the process has taken. It reads the
// process's clock (clock_getcpuclockid(3)), because /proc counts in ticks of 10 ms.
func (p *process) processorTime() time.Duration {
	var t syscall.Timespec
	if _, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^p.cmd.Process.Pid<<3|2), uintptr(unsafe.Pointer(&t)), 0); errno != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
