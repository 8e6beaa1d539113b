package temporalagent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// Options name a run, for those who start it, attach to it or decide in it.
type Options struct {
	// ID is the id of the workflow. Two runs of one ID are the same run, also after
	// its end, as long as the namespace keeps it. Required.
	ID string
	// TaskQueue is the task queue of the workers. Required to start a run.
	TaskQueue string
	// Agent is the name of the agent, in WorkerOptions.Agents of the workers.
	Agent string
	// Key is InOptions.Key of a run inside a workflow of the user's own, for a
	// Handle. Start does not use it.
	Key string
	// Blobs is the store of the workers. It is needed if they have one.
	Blobs BlobStore
	// Start holds further options of the workflow, such as a memo or search
	// attributes. ID, TaskQueue and the policies for an ID that is in use are those
	// of this package.
	Start client.StartWorkflowOptions
}

// Run starts the run, or attaches to it if there is one with this ID, and waits
// for its end. Messages count only for a start.
//
// The State is the whole run, also if the run ended with an error;
// errors.Is finds the errors of package agentloop and middleware.ModelError in it,
// and context.Canceled for a run that was canceled. The State is nil if it is not
// known. If ctx ends, Run returns its error, and the run goes on.
func Run(ctx context.Context, c client.Client, o Options, msgs ...middleware.Message) (*agentloop.State, error) {
	h, err := Start(ctx, c, o, msgs...)
	if err != nil {
		return nil, err
	}
	return h.Wait(ctx)
}

// Start is Run without waiting.
func Start(ctx context.Context, c client.Client, o Options, msgs ...middleware.Message) (*Handle, error) {
	if o.ID == "" || o.TaskQueue == "" {
		return nil, errors.New("temporalagent: Options.ID and Options.TaskQueue must be set")
	}
	if len(msgs) == 0 {
		return nil, agentloop.ErrNoMessages
	}
	h := Attach(c, o)
	in, err := h.blobs.begin(ctx, msgs)
	if err != nil {
		return nil, err
	}
	if len(in.State) > maxValue {
		return nil, tooLarge("the conversation that Start got", len(in.State))
	}
	start := o.Start
	start.ID, start.TaskQueue = o.ID, o.TaskQueue
	start.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	start.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	start.WorkflowExecutionErrorWhenAlreadyStarted = false
	if _, err = c.ExecuteWorkflow(ctx, start, workflowName, startInput{o.Agent, ended{conversation: in}}); err != nil {
		return nil, err
	}
	return h, nil
}

// Attach returns a handle of the run with that ID. It does not ask the server.
func Attach(c client.Client, o Options) *Handle {
	return &Handle{client: c, o: o, blobs: newBlobs(o.Blobs)}
}

// Wait waits for the end of the run. It returns what Run returns.
func (h *Handle) Wait(ctx context.Context) (*agentloop.State, error) {
	result := new(Result)
	err := h.client.GetWorkflow(ctx, h.o.ID, "").Get(ctx, result)
	if err == nil {
		return result.open(ctx, h.blobs)
	}
	if ctx.Err() != nil {
		return nil, err
	}
	ran, known := runError(err, result)
	if !known {
		return nil, ran
	}
	s, bad := result.open(ctx, h.blobs)
	if bad != nil {
		return nil, errors.Join(ran, bad)
	}
	return s, ran
}

// runError returns the error of the run in the error of its workflow, and reads the Result that
// comes with it.
func runError(err error, result *Result) (ran error, known bool) {
	var app *temporal.ApplicationError
	var canceled *temporal.CanceledError
	switch {
	case errors.As(err, &canceled):
		known = canceled.HasDetails() && canceled.Details(result) == nil
		return fmt.Errorf("temporalagent: the run was canceled: %w", context.Canceled), known
	case errors.As(err, &app) && app.HasDetails():
		f := new(failure)
		if app.Details(f, result) == nil || app.Details(f) == nil {
			return f, result.c.State != nil // a result that was too large is not there
		}
	}
	return err, false
}

// State returns the whole run. blobs is the store of the workers.
func (r *Result) State(ctx context.Context, blobs BlobStore) (*agentloop.State, error) {
	return r.open(ctx, newBlobs(blobs))
}

func (r *Result) open(ctx context.Context, b *blobs) (*agentloop.State, error) {
	if r.c.State == nil {
		return nil, errors.New("temporalagent: the result is empty")
	}
	s, err := b.open(ctx, r.c.conversation)
	if err != nil || len(r.c.Inbox) == 0 {
		return s, err
	}
	// The run has ended with an error, and had accepted these.
	doc, err := json.Marshal(r.c.Inbox)
	if err != nil {
		return nil, err
	}
	if doc, err = b.unpack(ctx, doc); err != nil {
		return nil, err
	}
	var msgs []middleware.Message
	if err := json.Unmarshal(doc, &msgs); err != nil {
		return nil, err
	}
	_ = s.Append(msgs...) // not where calls are open: they come after the results
	return s, nil
}
