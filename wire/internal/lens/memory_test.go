package lens

import (
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
)

// What was remembered is freed once nothing references the Native.
func TestMemoryIsFreed(t *testing.T) {
	t.Parallel()
	key := weak.Make(Lens{Dialect: "test"}.Remember("text", "what was read"))
	for range 1000 {
		runtime.GC()
		if _, held := memory.Load(key); !held {
			return
		}
		runtime.Gosched()
	}
	require.Fail(t, "it is still there")
}

func TestMemoryIsHeld(t *testing.T) {
	t.Parallel()
	n := Lens{Dialect: "test"}.Remember("text", "what was read")
	runtime.GC()
	runtime.GC()
	is, ok, err := Again(Lens{Dialect: "test"}, n, func(raw string) (string, error) { return raw, nil })
	require.True(t, ok)
	require.NoError(t, err)
	require.Equal(t, "what was read", is)
}
