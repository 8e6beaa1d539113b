package transport

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPipeLetsGo looks inside: a reader that is always a little late costs
// memory for what it has not read, not for all there was.
func TestPipeLetsGo(t *testing.T) {
	t.Parallel()
	p := newPipe(t.Context(), func() {})
	piece := make([]byte, 64<<10)
	p.put(piece, false)
	for range 1000 {
		p.put(piece, false)
		n, err := p.Read(piece)
		require.NoError(t, err)
		require.Equal(t, len(piece), n)
	}
	require.Less(t, cap(p.buf), 16*len(piece))
	require.NoError(t, p.Close())
}
