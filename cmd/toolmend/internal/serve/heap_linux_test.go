package serve

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// resident returns the bytes of memory that the process has, but for those of files.
func resident(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(status), "RssAnon:")
	require.True(t, ok)
	kB, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return kB << 10
}

// The memory that raiseHeap takes is not resident, even where Go has used it before.
func TestRaiseHeapTakesNoMemory(t *testing.T) {
	used := make([]byte, 4*heapFloor)
	for i := range used {
		used[i] = 1
	}
	runtime.KeepAlive(used)
	runtime.GC()
	before := resident(t)
	defer raiseHeap()()
	require.Less(t, resident(t), before-heapFloor/2)
}
