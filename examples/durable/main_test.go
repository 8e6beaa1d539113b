package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// The whole program runs in `make durable`, on a real server. Here the same agent
// runs in one process.
func TestAgent(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.TempDir())
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		agent, err := newAgent(w)
		require.NoError(t, err)
		s := agentloop.NewState(middleware.User("Book me a flight."))
		require.ErrorIs(t, agent.Run(t.Context(), s), agentloop.ErrPending)
		pending := s.Pending()
		require.Len(t, pending, 1)
		require.Equal(t, `{"flight":"DY 1306"}`, pending[0].Call.Arguments, "the null is gone")
		require.NoError(t, s.Approve(pending[0].Call.ID))
		require.NoError(t, agent.Run(t.Context(), s))
		require.Contains(t, s.Answer(), "You fly to London")
	})
	effects, err := w.effects()
	require.NoError(t, err)
	require.Len(t, effects, 5)
}

func TestWorld(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, w.once("run/1/a", "paid"))
	require.NoError(t, w.once("run/1/a", "paid again"))
	require.NoError(t, w.once("run/1/b", "sent"))
	var out bytes.Buffer
	watch := &watcher{out: &out, world: w}
	for range 2 {
		require.NoError(t, watch.show())
	}
	require.Equal(t, 2, watch.seen)
	require.Equal(t, 2, strings.Count(out.String(), "\n"), out.String())
	require.NotContains(t, out.String(), "again")
}

func TestArguments(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(t.Context(), &bytes.Buffer{}, "", "", 3), "-kill must be 0, 1 or 2, got 3")
}
