package servertest_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
)

// lifted takes away the server's limit of 20 reads of its queue a second, which
// holds up a single fast agent on a server with one shard.
const lifted = "history.transferProcessorMaxPollRPS=2000"

// loopShare is the largest part of a step on Temporal that the loop may take.
const loopShare = 0.05

// TestCost prints what a step costs. The effects take no time here.
func TestCost(t *testing.T) {
	const turns = 20
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	t.Logf("on %s", machine())
	steps := float64(2*turns - 1) // a model step and a tool, and the answer
	alone := timePerStep(t, steps, func() {
		agent, err := newAgent("")
		require.NoError(t, err)
		require.NoError(t, agent.Run(ctx, agentloop.NewState(plan{Name: "alone", Turns: turns}.message())))
	})
	t.Logf("in memory: %.3f ms a step", ms(alone))

	for _, test := range []struct {
		name     string
		file     bool
		settings []string
	}{
		{"memory, defaults", false, nil},
		{"memory, limit lifted", false, []string{lifted}},
		{"SQLite file, defaults", true, nil},
		{"SQLite file, limit lifted", true, []string{lifted}},
	} {
		t.Run(test.name, func(t *testing.T) {
			file := ""
			if test.file {
				file = filepath.Join(t.TempDir(), "temporal.db")
			}
			s := startServer(t, file, test.settings...)
			c := s.dial()
			startWorker(t, workerOptions{address: s.address})
			bare := timePerStep(t, steps, func() { runBare(ctx, t, c, int(steps)) })
			n := 0
			step := timePerStep(t, steps, func() {
				n++
				p := plan{Name: fmt.Sprintf("cost-%d", n), Turns: turns}
				_, err := temporalagent.Run(ctx, c, options(p), p.message())
				require.NoError(t, err)
			})
			perSecond := atOnce(ctx, t, c)
			share := float64(alone) / float64(step)
			t.Logf("%s: %.1f ms a step, of which the loop is %.2f %%; %.1f ms for an activity without an agent; 100 agents at once: %.1f agents/s",
				test.name, ms(step), 100*share, ms(bare), perSecond)
			require.Less(t, share, loopShare)
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timePerStep returns the shortest time of three, so that other work on the
// machine counts less.
func timePerStep(t *testing.T, steps float64, run func()) time.Duration {
	t.Helper()
	shortest := time.Duration(1<<63 - 1)
	for range 3 {
		began := time.Now()
		run()
		shortest = min(shortest, time.Since(began))
	}
	return time.Duration(float64(shortest) / steps)
}

func runBare(ctx context.Context, t *testing.T, c client.Client, steps int) {
	t.Helper()
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: taskQueue}, "bare", steps)
	require.NoError(t, err)
	require.NoError(t, run.Get(ctx, nil))
}

// atOnce runs a hundred agents of five turns at the same time.
func atOnce(ctx context.Context, t *testing.T, c client.Client) (perSecond float64) {
	t.Helper()
	const n = 100
	all := plans(n)
	for i := range all {
		all[i].Model, all[i].Tool = 0, 0
	}
	began := time.Now()
	_, done := ended(ctx, t, beginAll(ctx, t, c, all))
	<-done
	return n / time.Since(began).Seconds()
}
