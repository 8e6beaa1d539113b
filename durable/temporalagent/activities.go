package temporalagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// model makes one model step.
func (p *Plugin) model(ctx context.Context, in stepInput) (stepOutput, error) {
	return p.step(ctx, in, func(ctx context.Context, e agentloop.Effects, s *agentloop.State) (agentloop.Step, error) {
		p.stream(ctx, s)
		step, err := e.Ask(s)
		s.Sink = nil
		return step, err
	})
}

// check validates the calls that were decided on. It has no effect, so it is tried
// again if a rule could not decide.
func (p *Plugin) check(ctx context.Context, in stepInput) (stepOutput, error) {
	var undecided error
	out, err := p.step(ctx, in, func(_ context.Context, e agentloop.Effects, s *agentloop.State) (agentloop.Step, error) {
		err := e.Await(s)
		if errors.Is(err, argsvalidate.ErrRule) {
			undecided = err
		}
		return agentloop.Step{}, err
	})
	return out, errors.Join(err, undecided)
}

// step is an activity that changes a State. Its error is retried: a worker stops, or
// a blob could not be read. Every other error is data.
func (p *Plugin) step(ctx context.Context, in stepInput, do func(context.Context, agentloop.Effects, *agentloop.State) (agentloop.Step, error)) (out stepOutput, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	defer p.recovered(ctx, func(f *failure) { out, err = stepOutput{Error: f}, nil })
	a := p.o.Agents[in.Agent]
	if a == nil {
		return stepOutput{Error: failureOf(fmt.Errorf("%w: %q", ErrAgent, in.Agent))}, nil
	}
	s, err := p.blobs.open(ctx, in.conversation)
	if err != nil {
		return stepOutput{}, err
	}
	was := extentOf(s)
	step, err := do(ctx, a.Effects(ctx), s)
	if err != nil && stopped(ctx) {
		return stepOutput{}, err
	}
	saving, cancel := saving(ctx)
	defer cancel()
	out, bad := p.blobs.difference(saving, in.conversation, was, s)
	if bad != nil { // the model is not asked again because of the store
		return stepOutput{Error: failureOf(errors.Join(bad, err))}, nil
	}
	out.Last = step.Last
	switch {
	case err == nil:
	case errors.Is(context.Cause(ctx), errOvertime):
		out.Error = failureOf(fmt.Errorf("%w: %w: %w", ErrLost, errOvertime, err))
	case ctx.Err() != nil:
		out.Canceled = true
	default:
		out.Error = failureOf(err)
	}
	if len(out.State) > maxValue {
		return stepOutput{Error: failureOf(tooLarge(fmt.Sprintf("the answer of the model in turn %d", len(s.Steps)), len(out.State)))}, nil
	}
	return out, nil
}

// tool runs one call.
func (p *Plugin) tool(ctx context.Context, in toolInput) (out toolOutput, err error) {
	ctx, end := p.begin(ctx)
	defer end()
	defer p.recovered(ctx, func(f *failure) { out, err = toolOutput{Error: f}, nil })
	a := p.o.Agents[in.Agent]
	if a == nil {
		return toolOutput{Error: failureOf(fmt.Errorf("%w: %q", ErrAgent, in.Agent))}, nil
	}
	call := in.Call
	if call.Arguments, err = p.blobs.unpackString(ctx, call.Arguments); err != nil {
		if in.Marks.AtMostOnce && !stopped(ctx) && ctx.Err() == nil { // there is no second attempt, and the outcome is known
			return toolOutput{Text: "The tool did not run, because its arguments could not be read. You may call it again.", IsError: true}, nil
		}
		return toolOutput{}, err
	}
	info := agentloop.CallInfo{Call: call, Key: in.Key, Serial: in.Marks.Serial, AtMostOnce: in.Marks.AtMostOnce, Pure: in.Marks.Pure, Schema: in.Schema}
	ended := false
	err = a.Effects(ctx).Tools([]agentloop.CallInfo{info}, func(_ int, r agentloop.Result, err error) {
		ended = true
		out = toolOutput{Text: r.Text, IsError: r.IsError, Suspended: err != nil}
	})
	switch {
	case ended: // just in time, if the context has ended
	case stopped(ctx):
		return toolOutput{}, err
	case errors.Is(context.Cause(ctx), errOvertime):
		return toolOutput{Text: "The tool was not done in time.", IsError: true}, nil
	case ctx.Err() != nil:
		return toolOutput{Canceled: true}, nil
	case err != nil:
		return toolOutput{Error: failureOf(err)}, nil
	}
	saving, cancel := saving(ctx)
	defer cancel()
	size := len(out.Text)
	if out.Text, err = p.blobs.packString(saving, out.Text, cmp.Or(in.Room, p.blobs.limit)); err != nil {
		// The tool must not run again because of the store.
		return toolOutput{Error: failureOf(fmt.Errorf("the result of tool %s, %d bytes: %w", call.Name, size, err))}, nil
	}
	if size := sizeOf(out.Text); size > maxValue {
		return toolOutput{Error: failureOf(tooLarge("the result of tool "+call.Name, size))}, nil
	}
	return out, nil
}

// recovered makes a panic of the user's code data, like every other error: the
// engine would repeat the activity, with a model call or a tool that is done.
func (p *Plugin) recovered(ctx context.Context, fail func(*failure)) {
	v := recover()
	if v == nil {
		return
	}
	info := activity.GetInfo(ctx)
	p.o.Logger.Error("temporalagent: panic in an activity", "run", info.WorkflowExecution.ID, "activity", info.ActivityType.Name, "panic", v, "stack", string(debug.Stack()))
	fail(failureOf(middleware.NewPanicError(v)))
}

// saving returns a context for what an activity stores when its step is done. It
// does not end with the run, but before StartToCloseTimeout: otherwise the server
// would take the worker for lost, and the step would happen again.
func saving(ctx context.Context) (context.Context, context.CancelFunc) {
	kept := context.WithoutCancel(ctx)
	deadline := activity.GetInfo(ctx).Deadline
	if deadline.IsZero() {
		return context.WithCancel(kept)
	}
	return context.WithDeadline(kept, deadline.Add(-min(time.Until(deadline)/5, 2*time.Second)))
}

// beat returns the time between two signs of life.
func (p *Plugin) beat(info activity.Info) time.Duration {
	if info.HeartbeatTimeout == 0 {
		return p.o.Heartbeat
	}
	return min(p.o.Heartbeat, max(info.HeartbeatTimeout/3, 1))
}

// errOvertime is the cause of a context that ended because of StartToCloseTimeout.
var errOvertime = errors.New("temporalagent: StartToCloseTimeout has passed")

// begin gives signs of life every Heartbeat until end is called, from entry to exit
// of an activity: set-up inside of it may take long too. The context ends a little
// before StartToCloseTimeout, so that the worker reports how the activity ended, and
// the server does not take it for lost. For the same reason it ends before a worker
// that stops does.
func (p *Plugin) begin(ctx context.Context) (_ context.Context, end func()) {
	info := activity.GetInfo(ctx)
	stopping := activity.GetWorkerStopChannel(ctx)
	var cancel context.CancelFunc
	if left := time.Until(info.Deadline); info.Deadline.IsZero() {
		ctx, cancel = context.WithCancel(ctx)
	} else {
		ctx, cancel = context.WithDeadlineCause(ctx, info.Deadline.Add(-min(left/10, 5*time.Second)), errOvertime)
	}
	if info.IsLocalActivity {
		return ctx, cancel
	}
	done, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		beat := time.NewTicker(p.beat(info))
		defer beat.Stop()
		var over <-chan time.Time // the grace of a worker that stops
		for {
			select {
			case <-beat.C:
				activity.RecordHeartbeat(ctx)
			case <-stopping:
				stopping, over = nil, time.After(time.Duration(p.grace.Load()))
			case <-over:
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		close(done)
		<-gone // no sign of life is on its way when the activity ends
		cancel()
	}
}

// stopped reports whether the context of an activity has ended because its worker
// stops. Then another worker makes the step.
func stopped(ctx context.Context) bool {
	select {
	case <-activity.GetWorkerStopChannel(ctx):
		return ctx.Err() != nil
	default:
		return false
	}
}
