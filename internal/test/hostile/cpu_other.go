//go:build !unix

package hostile

import "time"

var began = time.Now()

// processor returns the time since the start: the processor's own is not known.
func processor() time.Duration { return time.Since(began) }
