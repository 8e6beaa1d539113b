// Package temporalagent runs agents of package agentloop on Temporal, so that a
// run survives the process and the machine it runs on.
//
//	plugin, err := temporalagent.New(temporalagent.WorkerOptions{
//		Agents: map[string]*agentloop.Agent{"support": agent}, Blobs: blobs})
//	w := worker.New(c, "agents", worker.Options{Plugins: []worker.Plugin{plugin}})
//
//	s, err := temporalagent.Run(ctx, c, temporalagent.Options{
//		ID: "ticket-17", TaskQueue: "agents", Agent: "support", Blobs: blobs}, middleware.User("…"))
//
// The loop is a workflow. A model step is one activity, with the whole middleware
// stack in it: hidden attempts are not in the history, and their usage is. Each
// tool call is one activity, unless the tool is marked Pure. Keys, clients and
// functions are in the worker; a run only names its agent.
//
// # What is guaranteed
//
// A step whose end is recorded does not happen again. A step whose worker was
// lost happens again on another worker, with the same idempotency key
// (agentloop.CallInfo.Key), so tools run at least once. A tool marked AtMostOnce
// never starts twice: after a lost worker the model is told that the outcome is
// not known.
//
// A worker counts as lost after HeartbeatTimeout. Only lost workers are retried by
// the engine. Everything else is final: package retry in the agent's stack retries
// providers, and a tool's failure is told to the model.
//
// # Sizes
//
// Contents over 32 kB are kept in a [BlobStore], and the history refers to them.
// So are the older parts of a long conversation: a model step adds at most its last
// 32 kB, and the history grows linearly. Without a BlobStore everything is in the
// history, a model step adds the whole conversation, and a value over 1 MB ends the
// run with ErrTooLarge.
package temporalagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
)

// WorkerOptions configure New: what a worker has and a run only names.
type WorkerOptions struct {
	// Agents are the agents that this worker runs, by the name in Options.Agent.
	// Their Checkpoint is not called, and Parallel has no effect: the worker's own
	// limits apply. Required.
	Agents map[string]*agentloop.Agent
	// Blobs keeps long contents; nil means that there is none. All workers and
	// clients of a task queue must use the same.
	Blobs BlobStore
	// Sink gets what the models stream; nil means that nothing is streamed.
	Sink Sink
	// Heartbeat is the time between two signs of life of an activity; 0 means 10 s.
	// HeartbeatTimeout is the time after which its worker counts as lost; 0 means
	// 30 s. It must be longer than Heartbeat. An activity with a shorter timeout of
	// its own gives three signs of life in it.
	Heartbeat, HeartbeatTimeout time.Duration
	// ModelActivity and ToolActivity, by the tool's name, change the options of
	// activities. A zero field keeps its default. MaximumAttempts counts lost
	// workers, and is 1 for a tool marked AtMostOnce.
	ModelActivity workflow.ActivityOptions
	ToolActivity  map[string]workflow.ActivityOptions
	// Logger gets the warning that there is no BlobStore, errors of Sink, and panics
	// in activities. nil means slog.Default.
	Logger *slog.Logger
}

const (
	defaultHeartbeat        = 10 * time.Second
	defaultHeartbeatTimeout = 30 * time.Second
	defaultStopTimeout      = 10 * time.Second
)

// Validate returns the first option that is invalid as an error, or nil.
func (o WorkerOptions) Validate() error {
	if len(o.Agents) == 0 {
		return errors.New("temporalagent: WorkerOptions.Agents: there is no agent")
	}
	for name, a := range o.Agents {
		if a == nil {
			return fmt.Errorf("temporalagent: WorkerOptions.Agents: agent %q is nil", name)
		}
	}
	if o.Heartbeat < 0 || o.HeartbeatTimeout < 0 {
		return errors.New("temporalagent: WorkerOptions.Heartbeat and HeartbeatTimeout must not be negative")
	}
	if d := o.withDefaults(); d.HeartbeatTimeout <= d.Heartbeat {
		return fmt.Errorf("temporalagent: WorkerOptions.HeartbeatTimeout: %v must be longer than Heartbeat, %v", d.HeartbeatTimeout, d.Heartbeat)
	}
	return nil
}

func (o WorkerOptions) withDefaults() WorkerOptions {
	o.Heartbeat = cmp.Or(o.Heartbeat, defaultHeartbeat)
	o.HeartbeatTimeout = cmp.Or(o.HeartbeatTimeout, defaultHeartbeatTimeout)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// Plugin is a worker.Plugin that registers the workflow of a run and its
// activities. It is safe for concurrent use, by several workers too.
type Plugin struct {
	worker.PluginBase
	o      WorkerOptions
	blobs  *blobs
	warned sync.Once
	grace  atomic.Int64 // of steps whose worker stops, a time.Duration
}

var _ worker.Plugin = (*Plugin)(nil)

// The names of what the plugin registers. They are a stored format.
const (
	workflowName  = "toolmend.agent"
	modelActivity = "toolmend.model"
	toolActivity  = "toolmend.tool"
	checkActivity = "toolmend.check"
)

// New returns the plugin for worker.Options.Plugins. It returns the error of
// o.Validate.
func New(o WorkerOptions) (*Plugin, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	return &Plugin{o: o.withDefaults(), blobs: newBlobs(o.Blobs)}, nil
}

// Registry is what the plugin registers at: a worker, or the test environments of
// the SDK.
type Registry interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, o activity.RegisterOptions)
}

// Register registers the workflow and the activities. A worker with the plugin
// does that by itself; test environments run no plugins.
func (p *Plugin) Register(r Registry) {
	p.registerWorkflow(r)
	r.RegisterActivityWithOptions(p.model, activity.RegisterOptions{Name: modelActivity})
	r.RegisterActivityWithOptions(p.check, activity.RegisterOptions{Name: checkActivity})
	r.RegisterActivityWithOptions(p.tool, activity.RegisterOptions{Name: toolActivity})
}

func (p *Plugin) registerWorkflow(r interface {
	RegisterWorkflowWithOptions(w any, o workflow.RegisterOptions)
}) {
	r.RegisterWorkflowWithOptions(p.workflow, workflow.RegisterOptions{Name: workflowName})
}

// Name returns the name of the plugin.
func (p *Plugin) Name() string { return "github.com/toolmend/toolmend/durable/temporalagent" }

// ConfigureWorker lets heartbeats reach the server at the interval Heartbeat: the
// SDK holds them back for up to 24 s by default. Cancellations arrive with them.
//
// A WorkerStopTimeout that is not set becomes 10 s. When the worker stops, its
// steps have three quarters of that time to end. What is left is handed to other
// workers, which need not wait until this one counts as lost.
func (p *Plugin) ConfigureWorker(_ context.Context, o worker.PluginConfigureWorkerOptions) error {
	if o.WorkerOptions.MaxHeartbeatThrottleInterval == 0 {
		o.WorkerOptions.MaxHeartbeatThrottleInterval = p.o.Heartbeat
	}
	if o.WorkerOptions.WorkerStopTimeout == 0 {
		o.WorkerOptions.WorkerStopTimeout = defaultStopTimeout
	}
	p.grace.Store(int64(o.WorkerOptions.WorkerStopTimeout * 3 / 4))
	return nil
}

// StartWorker registers everything, and warns once if there is no BlobStore.
func (p *Plugin) StartWorker(ctx context.Context, o worker.PluginStartWorkerOptions, next func(context.Context, worker.PluginStartWorkerOptions) error) error {
	p.warn()
	p.Register(o.WorkerRegistry)
	return next(ctx, o)
}

func (p *Plugin) warn() {
	if p.o.Blobs != nil {
		return
	}
	p.warned.Do(func() {
		p.o.Logger.Warn("temporalagent: WorkerOptions.Blobs is not set: each model step writes the whole conversation to the history, and a value over 1 MB ends its run")
	})
}

// ReplayWorkflow registers the workflow.
func (p *Plugin) ReplayWorkflow(ctx context.Context, o worker.PluginReplayWorkflowOptions, next func(context.Context, worker.PluginReplayWorkflowOptions) error) error {
	p.registerWorkflow(o.WorkflowReplayRegistry)
	return next(ctx, o)
}
