//go:build !unix

package ratio

import "time"

var begin = time.Now()

// ProcessorTime returns the time since the start of the process, because the
// system has no portable way to ask for its processor time.
func ProcessorTime() time.Duration { return time.Since(begin) }
