package temporalagent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/middleware"
)

// InOptions configure RunIn.
type InOptions struct {
	// Agent is the name of the agent, in WorkerOptions.Agents of the workers.
	Agent string
	// Key tells several runs in one workflow apart. It is part of their idempotency
	// keys, and of the names of their updates and queries: see Options.Key.
	Key string
	// HeartbeatTimeout, ModelActivity and ToolActivity are as in WorkerOptions.
	HeartbeatTimeout time.Duration
	ModelActivity    workflow.ActivityOptions
	ToolActivity     map[string]workflow.ActivityOptions
	// ContinueAsNew lets RunIn return ErrContinueAsNew when the SDK suggests it,
	// because the history has become long. The workflow then continues as new, and
	// gives the Result to RunIn as From.
	ContinueAsNew bool
	From          *Result
}

// ErrContinueAsNew is the error of RunIn with InOptions.ContinueAsNew.
var ErrContinueAsNew = errors.New("temporalagent: the history is long: continue as new with this Result")

// Result is the end of a run, as a workflow returns it, or where RunIn has stopped
// for ErrContinueAsNew. Its JSON form is opaque.
type Result struct{ c ended }

// MarshalJSON writes the stored form.
func (r Result) MarshalJSON() ([]byte, error) { return json.Marshal(r.c) }

// UnmarshalJSON reads it.
func (r *Result) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &r.c) }

// RunIn runs an agent inside a workflow of the user's own, on a worker with the
// plugin. The Result is never nil, and complete also if there is an error: the
// error of the run, for errors.Is with the errors of package agentloop, or of a
// cancellation. The caller may return both.
//
// A Result holds references to long contents. Result.State reads them, in an
// activity or a client. With InOptions.From, msgs are further messages.
func RunIn(ctx workflow.Context, o InOptions, msgs ...middleware.Message) (*Result, error) {
	if o.From != nil {
		from := o.From.c
		from.Inbox = slices.Concat(from.Inbox, msgs)
		return runIn(ctx, o, from)
	}
	doc, err := json.Marshal(&agentloop.State{Messages: msgs})
	if err != nil {
		return &Result{}, err
	}
	return runIn(ctx, o, ended{conversation: conversation{State: doc}})
}

func runIn(ctx workflow.Context, o InOptions, c ended) (*Result, error) {
	r, err := newReplica(c.conversation)
	if err != nil {
		return &Result{c}, err
	}
	if r.RunID == "" {
		r.RunID = runID(workflow.GetInfo(ctx), o.Key)
	}
	l := &loop{ctx: ctx, o: o, r: r, inbox: c.Inbox}
	if err = l.handle(); err == nil {
		err = l.run()
		l.close()
	}
	end, bad := r.conversation()
	if bad != nil {
		return &Result{c}, errors.Join(err, bad)
	}
	return &Result{ended{end, l.inbox}}, err
}

// runID returns the id that begins the idempotency keys of a run. A reset of the
// workflow keeps it. The next run of a cron, and an agent that a workflow starts
// after it continued as new, have another one: their effects are others.
func runID(info *workflow.Info, key string) string {
	id := info.WorkflowExecution.ID + "/" + info.OriginalRunID
	if key != "" {
		id += "/" + key
	}
	return id
}

// run drives the run until it ends and no update is left. Messages that arrive
// with the answer continue the conversation.
func (l *loop) run() error {
	for {
		if err := agentloop.Drive(l.r.State, l); err != nil {
			return err
		}
		if err := workflow.Await(l.ctx, func() bool { return l.deciding == 0 }); err != nil {
			return err
		}
		if len(l.inbox) == 0 {
			return nil
		}
		if l.receive(); len(l.inbox) > 0 { // the stop condition holds, and calls are open
			return nil
		}
	}
}

// close lets the updates return that wait for a decision to hold.
func (l *loop) close() {
	l.over = true
	for _, d := range l.queue {
		d.err, d.done = failureOf(errOver), true
	}
	l.queue = nil
	ctx, cancel := workflow.NewDisconnectedContext(l.ctx)
	defer cancel()
	_ = workflow.Await(ctx, func() bool { return l.deciding == 0 })
}

var errOver = errors.New("temporalagent: the run has ended")

// workflow is the workflow of a run of its own.
func (p *Plugin) workflow(ctx workflow.Context, in startInput) (*Result, error) {
	o := InOptions{Agent: in.Agent, HeartbeatTimeout: p.o.HeartbeatTimeout, ModelActivity: p.o.ModelActivity, ToolActivity: p.o.ToolActivity, ContinueAsNew: true}
	result, err := runIn(ctx, o, in.ended)
	// A result that the server refuses would block the workflow for ever.
	size := sizeOf(result)
	fits, again := size <= maxResult, errors.Is(err, ErrContinueAsNew)
	if (err == nil || again) && !fits || again && len(result.c.State) > maxValue {
		err = tooLarge("the conversation", size)
	}
	var details []any
	if fits {
		details = []any{*result}
	}
	switch {
	case err == nil:
		return result, nil
	case errors.Is(err, ErrContinueAsNew):
		return nil, workflow.NewContinueAsNewError(ctx, workflowName, startInput{in.Agent, result.c})
	case temporal.IsCanceledError(err):
		return nil, temporal.NewCanceledError(details...)
	}
	return nil, final(err, details...)
}

// loop are the effects of a run in a workflow.
type loop struct {
	ctx   workflow.Context
	o     InOptions
	r     *replica
	queue []*decision // that were not applied yet
	// deciding is how many updates with a decision have not returned. Handlers of
	// the user's workflow do not count.
	deciding int
	inbox    []middleware.Message // that are not in the conversation yet
	stays    bool                 // it does not continue as new
	over     bool                 // the run has ended: handlers refuse everything
	steps    int                  // activities of this workflow run that have changed the State
}

// Ask makes a model step in an activity.
func (l *loop) Ask(*agentloop.State) (agentloop.Step, error) {
	if err := l.renew(); err != nil {
		return agentloop.Step{}, err
	}
	l.receive()
	out, err := l.step(modelActivity, l.o.ModelActivity)
	return agentloop.Step{Last: out.Last}, err
}

// renew returns ErrContinueAsNew if the history has become long and no update is
// left. A run that met a long history before this package had that goes on.
func (l *loop) renew() error {
	if !l.long() {
		return nil
	}
	if workflow.GetVersion(l.ctx, "toolmend.continue-as-new", workflow.DefaultVersion, 1) == workflow.DefaultVersion {
		l.stays = true
		return nil
	}
	if err := workflow.Await(l.ctx, func() bool { return len(l.queue) > 0 || l.deciding == 0 }); err != nil {
		return err
	}
	if len(l.queue) > 0 {
		return nil
	}
	return ErrContinueAsNew
}

// long reports whether the run should continue as new. It makes at least one step
// before.
func (l *loop) long() bool {
	return l.o.ContinueAsNew && !l.stays && l.steps > 0 && workflow.GetInfo(l.ctx).GetContinueAsNewSuggested()
}

// step runs an activity that changes the State, and applies the changes.
func (l *loop) step(name string, own workflow.ActivityOptions) (stepOutput, error) {
	var out stepOutput
	c, err := l.r.conversation()
	if err != nil {
		return out, err
	}
	if len(c.State) > maxValue {
		return out, tooLarge("the conversation", len(c.State))
	}
	ctx := workflow.WithActivityOptions(l.ctx, l.options(own))
	if err := workflow.ExecuteActivity(ctx, name, stepInput{l.o.Agent, c}).Get(ctx, &out); err != nil {
		return out, l.lost(err)
	}
	if err := l.r.apply(out); err != nil {
		return out, err
	}
	l.steps++
	switch {
	case out.Canceled:
		return out, temporal.NewCanceledError()
	case out.Error != nil:
		return out, out.Error
	}
	return out, nil
}

// lost is the error of an activity that was given up. Cancellation stays what it is.
func (l *loop) lost(err error) error {
	if temporal.IsCanceledError(err) || l.ctx.Err() != nil {
		return temporal.NewCanceledError()
	}
	return fmt.Errorf("%w: %w", ErrLost, err)
}

// Tools runs the calls in activities. All of them are started at once, except
// that a serial call waits for the calls before it, and the calls after it wait for it.
func (l *loop) Tools(calls []agentloop.CallInfo, done func(int, agentloop.Result, error)) error {
	var errs []error
	for from := 0; from < len(calls) && len(errs) == 0; {
		to := from + 1
		for !calls[from].Serial && to < len(calls) && !calls[to].Serial {
			to++
		}
		pending := make([]workflow.Future, to-from)
		for i := range pending {
			pending[i] = l.start(calls[from+i], room(len(calls)))
		}
		for i, f := range pending {
			if err := l.end(f, calls[from+i], func(r agentloop.Result, err error) { done(from+i, r, err) }); err != nil {
				errs = append(errs, err)
			}
		}
		from = to
	}
	return errors.Join(errs...)
}

// room returns how long each result of a turn may be in the history: all of them
// are in the input of the next model step. 0 means blobSize.
func room(calls int) int {
	if calls*blobSize <= maxValue/2 {
		return 0
	}
	return max(maxValue/2/calls, referenceSize)
}

// start starts the activity of a call.
func (l *loop) start(c agentloop.CallInfo, room int) workflow.Future {
	in := toolInput{l.o.Agent, c.Call, c.Key, marks{c.Serial, c.AtMostOnce, c.Pure}, c.Schema, room}
	in.Call.Native = nil // the tool does not get it, and it may be long
	if c.Pure && !c.AtMostOnce {
		ctx := workflow.WithLocalActivityOptions(l.ctx, workflow.LocalActivityOptions{
			StartToCloseTimeout: pureTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: maxLost}})
		return workflow.ExecuteLocalActivity(ctx, toolActivity, in)
	}
	return workflow.ExecuteActivity(workflow.WithActivityOptions(l.ctx, l.toolOptions(c)), toolActivity, in)
}

func (l *loop) toolOptions(c agentloop.CallInfo) workflow.ActivityOptions {
	o := l.options(l.o.ToolActivity[c.Call.Name])
	o.Summary = c.Call.Name
	if c.AtMostOnce {
		retries := *o.RetryPolicy
		retries.MaximumAttempts = 1
		o.RetryPolicy = &retries
	}
	return o
}

// end waits for a call and reports its result. It reports nothing for a call
// whose outcome is not known.
func (l *loop) end(f workflow.Future, c agentloop.CallInfo, done func(agentloop.Result, error)) error {
	var out toolOutput
	err := f.Get(l.ctx, &out)
	switch {
	case err != nil && (temporal.IsCanceledError(err) || l.ctx.Err() != nil):
		return temporal.NewCanceledError()
	case err != nil && c.AtMostOnce:
		return nil
	case err != nil:
		done(agentloop.Result{Text: "The tool did not end: its worker was lost each time.", IsError: true}, nil)
		return nil
	case out.Error != nil:
		return out.Error
	case out.Canceled:
		return temporal.NewCanceledError()
	case out.Suspended:
		done(agentloop.Result{}, agentloop.Suspend(out.Text))
		return nil
	}
	done(agentloop.Result{Text: out.Text, IsError: out.IsError}, nil)
	return nil
}

const (
	stepTimeout = time.Hour        // of an activity; heartbeats find a lost worker long before
	pureTimeout = 10 * time.Second // of a tool that runs in the workflow's task
	maxLost     = 20               // attempts of a step whose workers are lost
)

// options returns the user's options with defaults for what is not set. Only lost
// workers are retried: every other error is in the output of the activity.
func (l *loop) options(o workflow.ActivityOptions) workflow.ActivityOptions {
	if o.StartToCloseTimeout == 0 && o.ScheduleToCloseTimeout == 0 {
		o.StartToCloseTimeout = stepTimeout
	}
	o.HeartbeatTimeout = cmp.Or(o.HeartbeatTimeout, l.o.HeartbeatTimeout, defaultHeartbeatTimeout)
	if o.RetryPolicy == nil {
		o.RetryPolicy = &temporal.RetryPolicy{InitialInterval: time.Second, MaximumInterval: 10 * time.Second, MaximumAttempts: maxLost}
	}
	o.WaitForCancellation = true
	return o
}
