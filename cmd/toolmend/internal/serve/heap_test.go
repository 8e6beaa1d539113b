package serve

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRaiseHeap holds that the collector waits for more garbage where little is kept, and
// for less where much is, unless the user has set how it works.
func TestRaiseHeap(t *testing.T) {
	garbage := func() uint64 {
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.NextGC - m.HeapAlloc
	}
	unset := garbage()
	for _, k := range []string{"GOGC", "GOMEMLIMIT"} {
		t.Setenv(k, "100")
		raiseHeap()()
		require.Equal(t, 100, debug.SetGCPercent(100))
		require.NoError(t, os.Unsetenv(k))
	}
	lower := raiseHeap()
	require.Greater(t, garbage(), max(unset, heapFloor*garbagePercent/100))
	kept := make([]byte, 4*heapFloor)
	require.Less(t, garbage(), uint64(len(kept)))
	runtime.KeepAlive(kept)
	lower()
	require.Less(t, garbage(), uint64(heapFloor*garbagePercent/100))
	require.Equal(t, 100, debug.SetGCPercent(100))
}
