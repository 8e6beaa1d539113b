package mcp

import (
	"context"
	"crypto/sha256"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// What comes after the end of the context is not lost: a late session has to be
// closed.
func TestWaitingDropsWhatIsLate(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	late, dropped := make(chan int), make(chan int)
	cancel()
	_, err := waiting(ctx, func() (int, error) { return <-late, nil }, func(n int) { dropped <- n })
	require.ErrorIs(t, err, context.Canceled)
	late <- 7
	require.Equal(t, 7, <-dropped)
}

// Schemas that take long to compile are given up when the context ends.
func TestMakingAListEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := newServer(Options{}.withDefaults())
	require.ErrorIs(t, s.publish(ctx, pages{tools: []*sdk.Tool{{Name: "a"}}, sum: sha256.Sum256(nil)}, 0), context.Canceled)
	require.Nil(t, s.list.Load())
}
