package main

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/durable/temporalagent"
	"github.com/toolmend/toolmend/durable/temporalagent/blobdir"
)

const (
	taskQueue = "travel"
	agentName = "travel"
)

// work is a worker process. It ends when its standard input does.
func work(address, dir string, in io.Reader) error {
	world, err := newWorld(dir)
	if err != nil {
		return err
	}
	// region: worker
	agent, err := newAgent(world)
	if err != nil {
		return err
	}
	blobs, err := blobdir.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		return err
	}
	defer blobs.Close()
	plugin, err := temporalagent.New(temporalagent.WorkerOptions{
		Agents: map[string]*agentloop.Agent{agentName: agent},
		Blobs:  blobs,
		// Short, so that the example does not last long. The default is 30 s.
		Heartbeat: time.Second, HeartbeatTimeout: 3 * time.Second,
	})
	if err != nil {
		return err
	}
	c, err := dial(address)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{Plugins: []worker.Plugin{plugin}})
	// endregion
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()
	fmt.Println("working")
	_, err = io.Copy(io.Discard, in)
	return err
}

func dial(address string) (client.Client, error) {
	quiet := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	return client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(quiet)})
}

// process is a worker process that this one has started.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
}

// startWorker starts this program as a worker and waits until it works.
func startWorker(address, dir string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-worker", "-dir", dir)
	cmd.Env = append(os.Environ(), "TEMPORAL_ADDRESS="+address)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd, stdin}
	if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
		p.kill()
		return nil, fmt.Errorf("the worker has not started: %w", err)
	}
	return p, nil
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the process as kill -9 does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}
