package servertest_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
)

// TestLargeResults runs tools whose results are ten times as large as what the
// server takes.
func TestLargeResults(t *testing.T) {
	ctx, w, s, c := setUp(t, 5*time.Minute, databaseFile(t))
	blobs := t.TempDir()
	startWorker(t, workerOptions{address: s.address, world: w.url, blobs: blobs})

	p := plan{Name: "large", Turns: 4, Bytes: 20_000_000}
	o := options(p)
	o.Blobs = openStore(t, blobs)
	state, err := temporalagent.Run(ctx, c, o, p.message())
	require.NoError(t, err)
	requireUndisturbed(t, []plan{p}, []*agentloop.State{state})
	size := historySize(ctx, t, c, p.Name)
	t.Logf("%d results of 20 MB: the history has %d kB", p.Turns-1, size/1000)
	require.Less(t, size, int64(200_000))
}

// TestTooLarge runs a tool whose result the server would refuse, without a store:
// the run ends, and the tool is not run again.
func TestTooLarge(t *testing.T) {
	ctx, w, s, c := setUp(t, time.Minute, "")
	startWorker(t, workerOptions{address: s.address, world: w.url})
	p := plan{Name: "too-large", Turns: 2, Bytes: 2_200_000}
	_, err := temporalagent.Run(ctx, c, options(p), p.message())
	require.ErrorIs(t, err, temporalagent.ErrTooLarge)
	t.Log(err)
	for _, part := range []string{"fetch", "22000", "WorkerOptions.Blobs"} {
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, 1, count(w.entries(), began, p.toolKey(1, "a1")))
}

// TestHistoryGrowsLinearly doubles the number of turns, and wants a history that
// is about twice as large. The end of a conversation, up to 32 kB, is in each model
// step, so a turn costs more until there are so many.
func TestHistoryGrowsLinearly(t *testing.T) {
	ctx, w, s, c := setUp(t, 20*time.Minute, "", lifted)
	blobs := t.TempDir()
	startWorker(t, workerOptions{address: s.address, world: w.url, blobs: blobs})
	store := openStore(t, blobs)
	for _, test := range []struct {
		size  int // of a result
		turns []int
		most  int64 // bytes a turn
	}{
		{500, []int{20, 40, 80, 160}, 25_000},
		{20_000, []int{20, 40, 80, 160}, 100_000}, // in the history: just too short for the store
		{100_000, []int{20, 40, 80}, 25_000},
	} {
		t.Run(strconv.Itoa(test.size), func(t *testing.T) {
			var last int64
			for _, turns := range test.turns {
				p := plan{Name: fmt.Sprintf("%d-turns-of-%d", turns, test.size), Turns: turns, Bytes: test.size}
				o := options(p)
				o.Blobs = store
				_, err := temporalagent.Run(ctx, c, o, p.message())
				require.NoError(t, err)
				bytes := historySize(ctx, t, c, p.Name)
				t.Logf("results of %d bytes, %d turns: %d kB of history, %.1f kB a turn", test.size, turns, bytes/1000, float64(bytes)/1000/float64(turns))
				require.LessOrEqual(t, bytes, test.most*int64(turns))
				if turns > 80 {
					require.Less(t, float64(bytes), 2.3*float64(last), "%d turns", turns)
				}
				last = bytes
			}
		})
	}
}

// TestContinuesAsNew lets the server suggest a new history after every few turns.
func TestContinuesAsNew(t *testing.T) {
	ctx, w, s, c := setUp(t, 5*time.Minute, "", "limit.historySize.suggestContinueAsNew=100000")
	blobs := t.TempDir()
	startWorker(t, workerOptions{address: s.address, world: w.url, blobs: blobs})
	p := plan{Name: "continues", Turns: 40, Bytes: 5000, Hidden: 7, Both: 9}
	o := options(p)
	o.Blobs = openStore(t, blobs)
	state, err := temporalagent.Run(ctx, c, o, p.message())
	require.NoError(t, err)
	requireUndisturbed(t, []plan{p}, []*agentloop.State{state})
	histories := len(runs(ctx, t, c, p.Name))
	t.Logf("%d turns in %d histories", p.Turns, histories)
	require.Greater(t, histories, 2)
	requireEffects(ctx, t, c, w, []plan{p})
}

func openStore(t *testing.T, dir string) *blobdir.Dir {
	t.Helper()
	store, err := blobdir.Open(dir)
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// historySize returns the bytes of all histories of a workflow.
func historySize(ctx context.Context, t *testing.T, c client.Client, id string) int64 {
	t.Helper()
	var sum int64
	for _, run := range runs(ctx, t, c, id) {
		d, err := c.DescribeWorkflowExecution(ctx, id, run)
		require.NoError(t, err)
		sum += d.WorkflowExecutionInfo.HistorySizeBytes
	}
	return sum
}

// TestDecisionAfterRestart restarts everything while a call waits for a decision.
// The decision is sent before a worker is back.
func TestDecisionAfterRestart(t *testing.T) {
	ctx, w, s, c := setUp(t, 5*time.Minute, databaseFile(t))
	o := workerOptions{address: s.address, world: w.url, heartbeat: 10 * time.Second}
	worker := startWorker(t, o)
	p := plan{Name: "asks", Turns: 3, Approve: 2}
	handle := begin(ctx, t, c, p)
	pending := waiting(ctx, t, handle)
	require.Len(t, pending, 1)
	require.Equal(t, "ship", pending[0].Call.Name)

	worker.kill()
	s.kill()
	s.start()
	c = s.dial() // as another process would
	handle = temporalagent.Attach(c, options(p))
	decided := make(chan error)
	go func() { decided <- handle.Approve(ctx, pending[0].Call.ID) }()
	startWorker(t, o)
	require.NoError(t, <-decided)
	again := handle.Approve(ctx, pending[0].Call.ID)
	if !errors.Is(again, agentloop.ErrUnknownCall) { // the turn of the call may be over
		require.ErrorIs(t, again, agentloop.ErrDecided)
	}

	state, err := wait(ctx, handle)
	require.NoError(t, err)
	require.Equal(t, "done: asks", state.Answer())
	require.Equal(t, 1, count(w.entries(), finished, p.toolKey(2, "a2")))
}

// waiting waits until calls wait for a decision.
func waiting(ctx context.Context, t *testing.T, h *temporalagent.Handle) []agentloop.Pending {
	t.Helper()
	for {
		pending, err := h.Pending(ctx)
		require.NoError(t, err)
		if len(pending) > 0 {
			return pending
		}
		select {
		case <-ctx.Done():
			require.NoError(t, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
