package mcpproxy

import "os"

// noFollow is 0: there the permissions of a file do not decide who can read it either.
const noFollow = 0

// awaitReaderGone never returns: Windows does not say whether a pipe has a reader.
func awaitReaderGone(*os.File) { select {} }
