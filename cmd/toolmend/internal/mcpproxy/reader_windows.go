package mcpproxy

import "os"

// awaitReaderGone never returns: Windows does not say whether a pipe has a reader.
func awaitReaderGone(*os.File) { select {} }
