package servertest_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
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
		name   string
		file   bool
		lifted bool
	}{
		{"memory, defaults", false, false},
		{"memory, limit lifted", false, true},
		{"SQLite file, defaults", true, false},
		{"SQLite file, limit lifted", true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			file, settings := "", []string(nil)
			if test.file {
				file = databaseFile(t)
			}
			if test.lifted {
				settings = []string{lifted}
			}
			s := startServer(t, file, settings...)
			c := s.dial()
			w := startWorker(t, workerOptions{address: s.address})
			n := 0
			step := timePerStep(t, steps, func() {
				n++
				p := plan{Name: fmt.Sprintf("cost-%d", n), Turns: turns}
				_, err := temporalagent.Run(ctx, c, options(p), p.message())
				require.NoError(t, err)
			})
			share := float64(alone) / float64(step)
			t.Logf("%s: %.1f ms a step, of which the loop is %.2f%%", test.name, ms(step), 100*share)
			require.Less(t, share, loopShare)
			if test.lifted { // else the limit makes both equal
				bare := timePerStep(t, steps, func() { runBare(ctx, t, c, int(steps)) })
				t.Logf("%s: %.1f ms for an activity without an agent", test.name, ms(bare))
			}
			processes := []*process{s.process, w}
			all, took := cpuOf(processes, func() { atOnce(ctx, t, c) })
			t.Logf("%s: %d agents of ten steps at once: %.1f agents/s, %.0f ms of processor time each", test.name, manyAgents, manyAgents/took.Seconds(), ms(all)/manyAgents)
			all, took = cpuOf(processes, func() { bareAtOnce(ctx, t, c) })
			t.Logf("%s: as many activities without agents: %.1f workflows/s, %.0f ms of processor time each", test.name, manyAgents/took.Seconds(), ms(all)/manyAgents)
		})
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// timePerStep returns the shortest time of three, so that other work on the
// machine counts less. A run before them uses up what the server's limit allows at
// its start.
func timePerStep(t *testing.T, steps float64, run func()) time.Duration {
	t.Helper()
	run()
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

const manyAgents = 200

// atOnce runs many agents of five turns, which are ten steps, at the same time.
func atOnce(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	all := plans(manyAgents)
	for i := range all {
		all[i].Model, all[i].Tool = 0, 0
	}
	_, done := ended(ctx, t, beginAll(ctx, t, c, all))
	<-done
}

// bareAtOnce does the same without agents.
func bareAtOnce(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	runs := make([]client.WorkflowRun, manyAgents)
	for i := range runs {
		var err error
		runs[i], err = c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{TaskQueue: taskQueue}, "bare", 10)
		require.NoError(t, err)
	}
	for _, run := range runs {
		require.NoError(t, run.Get(ctx, nil))
	}
}

// cpuOf returns the processor time that the processes take for run, and how long
// it lasts.
func cpuOf(processes []*process, run func()) (cpu, took time.Duration) {
	for _, p := range processes {
		cpu -= p.cpu()
	}
	began := time.Now()
	run()
	took = time.Since(began)
	for _, p := range processes {
		cpu += p.cpu()
	}
	return cpu, took
}

// cpu is the processor time that the process has taken; 0 if it is not known. It
// says more than the wall clock on a machine that has other work.
func (p *process) cpu() time.Duration {
	const tick = 10 * time.Millisecond // of Linux
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	_, rest, ok := strings.Cut(string(stat), ") ") // behind the name, the third field comes first
	fields := strings.Fields(rest)
	if err != nil || !ok || len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * tick
}
