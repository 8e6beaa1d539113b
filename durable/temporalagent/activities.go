package temporalagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/toolmend/toolmend/agentloop"
	"github.com/toolmend/toolmend/argsvalidate"
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

// step is an activity that changes a State. An error of it is retried: that of a
// worker that stops, and of a blob that could not be read. Every other error is
// data.
func (p *Plugin) step(ctx context.Context, in stepInput, do func(context.Context, agentloop.Effects, *agentloop.State) (agentloop.Step, error)) (stepOutput, error) {
	ctx, end := p.begin(ctx)
	defer end()
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
	out, bad := p.blobs.difference(context.WithoutCancel(ctx), in.conversation, was, s)
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
func (p *Plugin) tool(ctx context.Context, in toolInput) (toolOutput, error) {
	ctx, end := p.begin(ctx)
	defer end()
	a := p.o.Agents[in.Agent]
	if a == nil {
		return toolOutput{Error: failureOf(fmt.Errorf("%w: %q", ErrAgent, in.Agent))}, nil
	}
	call := in.Call
	var err error
	if call.Arguments, err = p.blobs.unpackString(ctx, call.Arguments); err != nil {
		return toolOutput{}, err
	}
	info := agentloop.CallInfo{Call: call, Key: in.Key, Serial: in.Marks.Serial, AtMostOnce: in.Marks.AtMostOnce, Pure: in.Marks.Pure, Schema: in.Schema}
	var out toolOutput
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
	size := len(out.Text)
	if out.Text, err = p.blobs.packString(context.WithoutCancel(ctx), out.Text); err != nil {
		// The tool must not run again because of the store.
		return toolOutput{Error: failureOf(fmt.Errorf("the result of tool %s, %d bytes: %w", call.Name, size, err))}, nil
	}
	if len(out.Text) > maxValue {
		return toolOutput{Error: failureOf(tooLarge("the result of tool "+call.Name, size))}, nil
	}
	return out, nil
}

// errOvertime is the cause of a context that ended because of StartToCloseTimeout.
var errOvertime = errors.New("temporalagent: StartToCloseTimeout has passed")

// begin gives signs of life every Heartbeat until end is called, from entry to exit
// of an activity: set-up inside of it may take long too. The context ends a little
// before StartToCloseTimeout, so that the worker says how the activity ended, and
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
		beat := time.NewTicker(p.o.Heartbeat)
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
