package serve

import (
	"os"
	"runtime"
	"runtime/debug"
)

// With GOGC at its default, Go lets the heap double between two collections. The
// gateway keeps a few MB and makes 40 KB of garbage a request, so Go would collect
// each 4 MB, some seventy times a second under load, which takes a tenth of the
// processor time. With thousands of open streams it would let the garbage grow to
// the size of all that they hold. So the heap counts as heapFloor larger than it is, and
// grows by garbagePercent of that: by 12 MB and half of what is kept.
const (
	heapFloor      = 24 << 20
	garbagePercent = 50
)

// raiseHeap sets how far the heap grows between two collections, until lower is called. The
// memory that it takes for that is address space only, and the collector does not scan it:
// Go may have zeroed it, and giveBack undoes that. raiseHeap does nothing if the user sets
// GOGC or GOMEMLIMIT.
func raiseHeap() (lower func()) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	heap, was := make([]byte, heapFloor), debug.SetGCPercent(garbagePercent)
	giveBack(heap)
	return func() {
		debug.SetGCPercent(was)
		runtime.KeepAlive(heap)
	}
}
