//go:build unix

package gateway

import "syscall"

// noFollow makes opening a symbolic link fail.
const noFollow = syscall.O_NOFOLLOW

// readableByOthers means that the permissions of a file decide who can read it.
const readableByOthers = true
