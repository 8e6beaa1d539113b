//go:build !windows

package mcpproxy

import (
	"os"

	"golang.org/x/sys/unix"
)

// noFollow makes opening a symbolic link fail.
const noFollow = unix.O_NOFOLLOW

// awaitReaderGone returns when what is written to f has no reader any more.
func awaitReaderGone(f *os.File) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLHUP}}
	for err := error(unix.EINTR); err == unix.EINTR || err == unix.EAGAIN; {
		_, err = unix.Poll(fds, -1)
	}
}
