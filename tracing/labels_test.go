package tracing

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLabelsAreKept holds that a set is made once, and that names that clients
// choose do not fill the memory.
func TestLabelsAreKept(t *testing.T) {
	t.Parallel()
	var l labels[string]
	made := 0
	of := func(first string) {
		l.of(labelKey{first: first}, func(k labelKey) string {
			made++
			return k.first
		})
	}
	for range 3 {
		of("model")
	}
	require.Equal(t, 1, made)
	long := strings.Repeat("x", maxKeptKey+1)
	of(long)
	of(long)
	require.Equal(t, 3, made)
	for i := range 2 * maxKept {
		of(fmt.Sprint(i))
	}
	require.Len(t, l.kept, maxKept)
}
