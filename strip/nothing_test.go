package strip_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/strip"
)

// Not parallel: AllocsPerRun counts what other tests allocate as well.
func TestNothingToStripAllocatesNothing(t *testing.T) {
	args := `{"city": "Oslo", "days": 3, "near": {"lat": 59.9, "on": true, "tags": ["a", 1e2]}}`
	for _, mode := range []strip.Mode{strip.Optional, strip.WhenInvalid, strip.All, strip.Off} {
		s, err := strip.New([]byte(`{"properties":{"city":{"type":"string"},"days":{},"near":{"properties":{"lat":{}}}}}`), strip.Options{Mode: mode})
		require.NoError(t, err)
		allocs := testing.AllocsPerRun(100, func() {
			if got, removed, err := s.JSON(args); got != args || removed != nil || err != nil {
				t.Error("nothing was to be stripped")
			}
		})
		require.Zero(t, allocs, "%s", mode)
	}
}
