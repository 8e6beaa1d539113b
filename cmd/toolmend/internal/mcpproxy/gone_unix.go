//go:build !windows

package mcpproxy

import (
	"os"

	"golang.org/x/sys/unix"
)

// readerGone reports whether what is written to f has no reader any more.
func readerGone(f *os.File) bool {
	fds := []unix.PollFd{{Fd: int32(f.Fd())}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0 && fds[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
}
