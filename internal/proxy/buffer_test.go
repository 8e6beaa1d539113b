package proxy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/internal/proxy"
)

// TestBuffer holds that a stream that waits keeps a small buffer, and that what has arrived
// is read in large pieces.
func TestBuffer(t *testing.T) {
	const small, large = 4 << 10, 16 << 10
	b := proxy.NewBuffer(-1)
	defer func() { b.Free() }()
	require.Len(t, b.Bytes(), small, "of an unknown size")
	for _, read := range []struct{ n, next int }{
		{100, small},
		{small, large},
		{large, large},
		{small, small}, // that was all
		{small - 10, large},
		{0, small},
	} {
		b.Next(read.n)
		require.Len(t, b.Bytes(), read.next, "after %d bytes", read.n)
	}
	b.Free()
	b = proxy.NewBuffer(small)
	require.Len(t, b.Bytes(), small)
	b.Free()
	b = proxy.NewBuffer(small + 1)
	require.Len(t, b.Bytes(), large)
}
