package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRaiseHeap holds that the collector waits for more garbage, unless the user
// has set how it works.
func TestRaiseHeap(t *testing.T) {
	next := func() uint64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NextGC - m.HeapAlloc
	}
	for _, k := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(k, "100")
		require.Nil(t, raiseHeap())
		require.NoError(t, os.Unsetenv(k))
	}
	before := next()
	heap := raiseHeap()
	require.Greater(t, next(), before+heapFloor/2)
	runtime.KeepAlive(heap)
}
