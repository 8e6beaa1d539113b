package simulate_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/test/simulate"
)

// TestFaultsApply: each fault of `make simulate-faults` can be planted, and each invariant has two or
// more.
func TestFaultsApply(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for _, f := range simulate.Faults {
		_, err := f.Plant("../../..")
		require.NoError(t, err)
		count[f.Invariant]++
	}
	for _, invariant := range []string{"(i)", "(ii)", "(iii)", "(iv)", "(v)"} {
		require.GreaterOrEqual(t, count[invariant], 2, invariant)
	}
}
