package servertest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
)

const (
	taskQueue = "agents"
	agentName = "scripted"
)

// workerOptions are what a worker process is started with.
type workerOptions struct {
	address   string // of the server
	world     string
	blobs     string        // a directory; "" means none
	heartbeat time.Duration // the timeout; 0 means the default
}

// startWorker starts a worker process and waits until it polls.
func startWorker(t *testing.T, o workerOptions) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleVariable+"=worker", "SERVERTEST_ADDRESS="+o.address, "SERVERTEST_WORLD="+o.world,
		"SERVERTEST_BLOBS="+o.blobs, "SERVERTEST_HEARTBEAT="+o.heartbeat.String())
	return start(t, cmd)
}

// runWorker is the worker process.
func runWorker() error {
	agent, err := newAgent(os.Getenv("SERVERTEST_WORLD"))
	if err != nil {
		return err
	}
	o := temporalagent.WorkerOptions{Agents: map[string]*agentloop.Agent{agentName: agent}}
	if o.HeartbeatTimeout, err = time.ParseDuration(os.Getenv("SERVERTEST_HEARTBEAT")); err != nil {
		return err
	}
	o.Heartbeat = o.HeartbeatTimeout / 3
	if dir := os.Getenv("SERVERTEST_BLOBS"); dir != "" {
		if o.Blobs, err = blobdir.Open(dir); err != nil {
			return err
		}
	}
	plugin, err := temporalagent.New(o)
	if err != nil {
		return err
	}
	logger := log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	c, err := client.Dial(client.Options{HostPort: os.Getenv("SERVERTEST_ADDRESS"), Logger: logger})
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{Plugins: []worker.Plugin{plugin}})
	w.RegisterWorkflowWithOptions(bareWorkflow, workflow.RegisterOptions{Name: "bare"})
	w.RegisterActivityWithOptions(bareStep, activity.RegisterOptions{Name: "bare step"})
	if err := w.Start(); err != nil {
		return err
	}
	fmt.Println("working")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test ends
	w.Stop()
	return nil
}

// bareWorkflow runs as many activities as it is told, one after the other: what
// Temporal costs without an agent.
func bareWorkflow(ctx workflow.Context, steps int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range steps {
		if err := workflow.ExecuteActivity(ctx, "bare step").Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func bareStep(context.Context) error { return nil }
