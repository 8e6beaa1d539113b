package serve

import "os"

// heapFloor is about the least garbage between two collections, in bytes. The
// gateway keeps a few MB and makes 40 KB of garbage a request, so Go would collect
// each 4 MB, some seventy times a second under load. That takes a tenth of the
// processor time. A higher floor saves nothing more, because that much memory does not fit
// into the processor's caches. A higher GOGC would multiply the heap of a gateway with
// thousands of open streams, and a memory limit below that heap would make the
// collector run without a pause.
const heapFloor = 10 << 20

// raiseHeap returns memory that makes the collector wait until the heap has grown
// by heapFloor, while the caller keeps it. It takes address space only: the
// memory is never touched, and the collector does not scan it. It is nil if the user
// sets GOGC or GOMEMLIMIT.
func raiseHeap() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, heapFloor)
}
