package mcpproxy

import "os"

// readerGone reports whether what is written to f has no reader any more.
// Windows does not say.
func readerGone(*os.File) bool { return false }
