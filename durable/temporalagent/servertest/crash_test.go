package servertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
)

// allAgents is how many agents run at once.
const allAgents = 50

func plans(n int) []plan {
	all := make([]plan, n)
	for i := range all {
		all[i] = fiveTurns(i)
	}
	return all
}

// beginAll starts all runs.
func beginAll(ctx context.Context, t *testing.T, c client.Client, all []plan) []*temporalagent.Handle {
	t.Helper()
	handles := make([]*temporalagent.Handle, len(all))
	for i, p := range all {
		handles[i] = begin(ctx, t, c, p)
	}
	return handles
}

// ended is a channel that is closed when all runs have ended, with their states.
func ended(ctx context.Context, t *testing.T, handles []*temporalagent.Handle) (states []*agentloop.State, done chan struct{}) {
	states, done = make([]*agentloop.State, len(handles)), make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		for i, h := range handles {
			all.Go(func() {
				var err error
				if states[i], err = wait(ctx, h); err != nil {
					t.Errorf("agent %d: %v", i, err)
				}
			})
		}
		all.Wait()
	}()
	return states, done
}

// requireUndisturbed compares the final messages with those of runs in one
// process that nothing has happened to.
func requireUndisturbed(t *testing.T, all []plan, states []*agentloop.State) {
	t.Helper()
	want := undisturbed(t, all)
	for i, p := range all {
		require.NotNil(t, states[i], p.Name)
		require.Equal(t, want[p.Name], text(states[i].Messages), p.Name)
	}
}

// TestKilledAtRandom kills one of two workers again and again, and the server
// once, while fifty agents run.
func TestKilledAtRandom(t *testing.T) {
	const kills = 12
	ctx, w, s, c := setUp(t, 10*time.Minute, databaseFile(t))
	o := workerOptions{address: s.address, world: w.url, heartbeat: 10 * time.Second}
	workers := []*process{startWorker(t, o), startWorker(t, o)}

	all := plans(allAgents)
	for i := range all {
		all[i].Turns, all[i].Model = 8, 500*time.Millisecond // so that they last longer than the kills
	}
	began := time.Now()
	states, done := ended(ctx, t, beginAll(ctx, t, c, all))
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for n := 0; ; n++ {
		select {
		case <-done:
			require.GreaterOrEqual(t, n, kills, "the agents were done before the workers had been killed often enough")
		case <-time.After(time.Duration(250+random.IntN(2250)) * time.Millisecond):
			if n == kills/2 {
				s.kill()
				s.start()
			}
			i := random.IntN(len(workers))
			workers[i].kill()
			workers[i] = startWorker(t, o)
			if n+1 < kills {
				continue
			}
			<-done
		}
		break
	}
	t.Logf("%d agents, %d kills of a worker, 1 of the server, seed %d: %.1f s on %s", allAgents, kills, seed, time.Since(began).Seconds(), machine())
	requireEffects(ctx, t, c, w, all)
	requireUndisturbed(t, all, states)
}

// TestMovesAgain kills all workers at once, starts them again, and measures how
// long the last agent stands still.
func TestMovesAgain(t *testing.T) {
	for _, test := range []struct{ heartbeat, limit time.Duration }{
		{0, 45 * time.Second}, // the default of 30 s
		{10 * time.Second, 15 * time.Second},
	} {
		t.Run(fmt.Sprint("heartbeat ", test.heartbeat), func(t *testing.T) {
			ctx, w, s, c := setUp(t, 5*time.Minute, databaseFile(t))
			o := workerOptions{address: s.address, world: w.url, heartbeat: test.heartbeat}
			workers := []*process{startWorker(t, o), startWorker(t, o)}
			all := plans(allAgents)
			for i := range all {
				all[i].Model = time.Second // so that many are in flight
			}
			states, done := ended(ctx, t, beginAll(ctx, t, c, all))
			w.until(ctx, func(es []entry) bool { return len(es) > 2*allAgents })
			killed := time.Now()
			dead := map[string]bool{}
			for _, p := range workers {
				p.kill()
				dead[strconv.Itoa(p.cmd.Process.Pid)] = true
			}
			for range workers {
				startWorker(t, o)
			}
			<-done

			still := map[string]bool{} // agents that had not ended
			for _, p := range all {
				still[p.Name] = true
			}
			var first, last time.Duration
			for _, e := range w.entries() {
				if d := e.At.Sub(killed); d > 0 && e.What == began && still[e.Agent] && !dead[e.Worker] {
					delete(still, e.Agent)
					if last = d; first == 0 {
						first = d
					}
				}
			}
			t.Logf("after a kill of all workers the first of %d agents moved again after %.1f s, the last one after %.1f s, on %s", allAgents, first.Seconds(), last.Seconds(), machine())
			require.Empty(t, still, "all agents were at work")
			require.LessOrEqual(t, last, test.limit)
			requireEffects(ctx, t, c, w, all)
			requireUndisturbed(t, all, states)
		})
	}
}

// TestKilledForGood kills one of two workers and starts none in its place.
func TestKilledForGood(t *testing.T) {
	ctx, w, s, c := setUp(t, 5*time.Minute, "")
	o := workerOptions{address: s.address, world: w.url, heartbeat: 10 * time.Second}
	victim := startWorker(t, o)
	startWorker(t, o)
	all := plans(allAgents)
	states, done := ended(ctx, t, beginAll(ctx, t, c, all))
	w.until(ctx, func(es []entry) bool { return len(es) > allAgents })
	victim.kill()
	<-done
	v := requireEffects(ctx, t, c, w, all)
	require.Positive(t, v.cut, "the worker had nothing in hand")
	requireUndisturbed(t, all, states)
}

// TestStopped stops a worker as a deployment does: the others need not wait until
// it counts as lost.
func TestStopped(t *testing.T) {
	ctx, w, s, c := setUp(t, 2*time.Minute, "")
	o := workerOptions{address: s.address, world: w.url} // the default heartbeat timeout of 30 s
	old := startWorker(t, o)
	p := plan{Name: "deployed", Turns: 1, Model: 20 * time.Second}
	h := begin(ctx, t, c, p)
	w.until(ctx, func(es []entry) bool { return len(es) > 0 })
	startWorker(t, o)
	asked := time.Now()
	old.stop()
	t.Logf("the worker ended after %.1f s", time.Since(asked).Seconds())
	w.until(ctx, func(es []entry) bool { return es[len(es)-1].What == began && len(es) > 1 })
	t.Logf("the next worker began after %.1f s", time.Since(asked).Seconds())
	require.Less(t, time.Since(asked), 15*time.Second)
	_, err := wait(ctx, h)
	require.NoError(t, err)
}

// TestAtMostOnce kills the worker while a tool runs that must not start twice.
func TestAtMostOnce(t *testing.T) {
	ctx, w, s, c := setUp(t, 2*time.Minute, "")
	o := workerOptions{address: s.address, world: w.url, heartbeat: 3 * time.Second}
	victim := startWorker(t, o)
	p := plan{Name: "pays", Turns: 2, Once: 1, Tool: time.Minute}
	h := begin(ctx, t, c, p)
	pays := p.toolKey(1, "a1")
	w.until(ctx, func(es []entry) bool { return count(es, began, pays) > 0 })
	victim.kill()
	startWorker(t, o)
	state, err := wait(ctx, h)
	require.NoError(t, err)
	require.Equal(t, "done: pays", state.Answer())
	require.Len(t, state.Results, 1)
	require.True(t, state.Results[0].IsError)
	t.Log("the model is told:", state.Results[0].Text)
	require.Equal(t, 1, count(w.entries(), began, pays))
}

// TestCancelled cancels a run whose model call is in flight.
func TestCancelled(t *testing.T) {
	const heartbeat = 3 * time.Second // so a sign of life every second
	ctx, w, s, c := setUp(t, 2*time.Minute, "")
	startWorker(t, workerOptions{address: s.address, world: w.url, heartbeat: heartbeat})
	p := plan{Name: "cancelled", Turns: 1, Model: time.Minute}
	h := begin(ctx, t, c, p)
	w.until(ctx, func(es []entry) bool { return len(es) > 0 })
	asked := time.Now()
	require.NoError(t, c.CancelWorkflow(ctx, p.Name, ""))
	_, err := wait(ctx, h)
	require.ErrorIs(t, err, context.Canceled)
	w.until(ctx, func(es []entry) bool { return es[len(es)-1].What == cut })
	t.Logf("the model call ended %.1f s after the cancellation", time.Since(asked).Seconds())
	require.Less(t, time.Since(asked), heartbeat)
}
