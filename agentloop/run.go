package agentloop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// runTools runs the calls at the given places of the turn in hand, at most
// Options.Parallel at once, and puts their results into s. Calls that were cut
// off by the end of the context stay ready. The error is the context's, or one
// that a tool made with Abort.
func (a *Agent) runTools(ctx context.Context, s *State, ready []int) error {
	outcomes := make([]outcome, len(ready))
	for from := 0; from < len(ready); {
		to := from + 1
		if !a.tools[s.Turn[ready[from]].Call.Name].Serial {
			for to < len(ready) && !a.tools[s.Turn[ready[to]].Call.Name].Serial {
				to++
			}
		}
		a.runBeside(ctx, s, ready[from:to], outcomes[from:to])
		from = to
	}
	var abort error
	for n, i := range ready {
		c, o := &s.Turn[i], outcomes[n]
		switch {
		case o.abort != nil:
			abort = errors.Join(abort, o.abort)
			fallthrough
		case o.cutOff:
			continue
		case o.suspended != nil:
			c.Status, c.Reason = Waiting, o.suspended.reason
		default:
			c.Status, c.Result, c.Ran = Done, o.result, true
		}
	}
	switch {
	case abort != nil:
		return abort
	case ctx.Err() != nil:
		return ended(ctx)
	}
	return nil
}

// outcome is how a call ended: with a result, unless another field is set.
type outcome struct {
	result    Result
	suspended *suspendError
	abort     error
	cutOff    bool
}

// runBeside runs calls at the same time.
func (a *Agent) runBeside(ctx context.Context, s *State, ready []int, outcomes []outcome) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, a.o.Parallel)
	for n, i := range ready {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			outcomes[n] = a.runOne(ctx, s.RunID, len(s.Steps), s.Turn[i].Call)
		})
	}
	wg.Wait()
}

// runOne runs one call on a goroutine of its own, so that a tool that ignores
// its context does not hold the run.
func (a *Agent) runOne(ctx context.Context, runID string, turn int, call middleware.ToolCall) outcome {
	if ctx.Err() != nil {
		return outcome{cutOff: true}
	}
	t, ok := a.tools[call.Name]
	if !ok || t.Func == nil {
		return outcome{result: Result{IsError: true, Text: fmt.Sprintf("Tool '%s' does not exist. Available tools: %s.", call.Name, strings.Join(a.names(), ", "))}}
	}
	info := CallInfo{Call: call, Title: t.title(), Key: fmt.Sprintf("%s/%d/%s", runID, turn, call.ID)}
	toolCtx, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, info))
	defer cancel()
	if t.Timeout > 0 {
		toolCtx, cancel = context.WithTimeout(toolCtx, t.Timeout)
		defer cancel()
	}
	type returned struct {
		result Result
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		defer func() {
			if recover() != nil {
				done <- returned{err: errPanic}
			}
		}()
		r, err := t.Func(toolCtx, call)
		done <- returned{r, err}
	}()
	select {
	case r := <-done:
		return outcomeOf(ctx, toolCtx, t, r.result, r.err)
	case <-toolCtx.Done():
		select {
		case r := <-done: // it was back just in time
			return outcomeOf(ctx, toolCtx, t, r.result, r.err)
		default:
			return outcomeOf(ctx, toolCtx, t, Result{}, toolCtx.Err())
		}
	}
}

// errPanic is what the model is told of a tool that panicked: not where.
var errPanic = errors.New("the tool failed unexpectedly")

func outcomeOf(ctx, toolCtx context.Context, t Tool, r Result, err error) outcome {
	var abort *abortError
	var suspend *suspendError
	switch {
	case err == nil:
		return outcome{result: r}
	case errors.As(err, &abort):
		return outcome{abort: abort.err}
	case errors.As(err, &suspend):
		return outcome{suspended: suspend}
	case ctx.Err() != nil: // the run is over, not the tool's fault
		return outcome{cutOff: true}
	case toolCtx.Err() != nil:
		return outcome{result: Result{IsError: true, Value: r.Value, Text: fmt.Sprintf("The tool was not done within %v.", t.Timeout)}}
	}
	return outcome{result: Result{IsError: true, Value: r.Value, Text: err.Error()}}
}
