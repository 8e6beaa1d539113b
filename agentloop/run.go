package agentloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/toolmend/toolmend/middleware"
)

// runTools runs the calls at the given places of the turn in hand, at most
// Options.Parallel at once, and puts their results into s. Calls that the end
// of the context cut off, and those after one that ends the run, stay ready.
// The error is the context's, or what a tool gave to Abort.
func (a *Agent) runTools(ctx context.Context, s *State, ready []int) error {
	r := running{a: a, ctx: ctx, s: s, slots: make(chan struct{}, a.o.Parallel), outcomes: make([]outcome, len(ready))}
	for from := 0; from < len(ready); {
		to := from + 1
		if !a.serial(s, ready[from]) {
			for to < len(ready) && !a.serial(s, ready[to]) {
				to++
			}
		}
		r.beside(ready[from:to], r.outcomes[from:to])
		from = to
	}
	var abort error
	for n, i := range ready {
		c, o := &s.Turn[i], r.outcomes[n]
		switch o.kind {
		case cutOff:
		case aborted:
			abort = errors.Join(abort, o.err)
		case suspended:
			c.Status, c.Reason, c.Decided = Waiting, o.result.Text, false
		case returned:
			c.Status, c.Result = Done, o.result
		}
	}
	if abort == nil && ctx.Err() != nil {
		return ended(ctx)
	}
	return abort
}

func (a *Agent) serial(s *State, i int) bool { return a.tools[s.Turn[i].Call.Name].Serial }

// outcome is how a call ended.
type outcome struct {
	kind   outcomeKind
	result Result // of a returned call; the reason of a suspended one
	err    error  // of an aborted one
}

type outcomeKind uint8

const (
	cutOff outcomeKind = iota // or never begun
	returned
	suspended
	aborted
)

// running is the tools of one turn at work.
type running struct {
	a        *Agent
	ctx      context.Context
	s        *State
	slots    chan struct{}
	outcomes []outcome
	over     atomic.Bool // a tool has ended the run: no further one begins
}

// beside runs calls at the same time, at most as many as there are slots, and
// waits for all of them.
func (r *running) beside(ready []int, outcomes []outcome) {
	var wg sync.WaitGroup
	for n, i := range ready {
		r.slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-r.slots }()
			if r.ctx.Err() != nil || r.over.Load() {
				return
			}
			outcomes[n] = r.a.runOne(r.ctx, r.s.RunID, len(r.s.Steps), r.s.Turn[i].Call)
			if outcomes[n].kind == aborted {
				r.over.Store(true)
			}
		})
	}
	wg.Wait()
}

// runOne runs one call on a goroutine of its own, so that a tool that ignores
// its context does not hold the run.
func (a *Agent) runOne(ctx context.Context, runID string, turn int, call middleware.ToolCall) outcome {
	t, ok := a.tools[call.Name]
	// A call of another kind was not judged by the tool's schema.
	if !ok || t.Func == nil || t.Def.Kind == middleware.Function && call.Kind != middleware.Function {
		text := fmt.Sprintf("Tool '%s' does not exist. Available tools: %s.", call.Name, strings.Join(a.names(), ", "))
		return outcome{kind: returned, result: Result{Text: valid(text), IsError: true}}
	}
	info := CallInfo{Call: call, Title: t.title(), Description: t.Def.Description, Key: fmt.Sprintf("%s/%d/%s", runID, turn, call.ID)}
	toolCtx, cancel := context.WithCancel(context.WithValue(ctx, callKey{}, info))
	defer cancel()
	if t.Timeout > 0 {
		toolCtx, cancel = context.WithTimeout(toolCtx, t.Timeout)
		defer cancel()
	}
	done := make(chan returnValues, 1)
	go func() {
		v := returnValues{err: errPanic} // unless the tool returns: it may also end its goroutine
		defer func() {
			_ = recover()
			done <- v
		}()
		result, err := t.Func(toolCtx, call)
		v = returnValues{result, err}
	}()
	select {
	case v := <-done:
		return outcomeOf(ctx, toolCtx, t, v)
	case <-toolCtx.Done():
		select {
		case v := <-done: // it was back just in time
			return outcomeOf(ctx, toolCtx, t, v)
		default:
			return outcomeOf(ctx, toolCtx, t, returnValues{err: toolCtx.Err()})
		}
	}
}

// returnValues is what a tool returned.
type returnValues struct {
	result Result
	err    error
}

// errPanic is what the model is told of a tool that panicked: not where.
var errPanic = errors.New("the tool failed unexpectedly")

func outcomeOf(ctx, toolCtx context.Context, t Tool, v returnValues) outcome {
	failed := func(text string) outcome {
		return outcome{kind: returned, result: Result{Text: cmp.Or(valid(text), "The tool failed."), Value: v.result.Value, IsError: true}}
	}
	var abort *abortError
	var suspend *suspendError
	switch {
	case v.err == nil:
		v.result.Text = valid(v.result.Text)
		return outcome{kind: returned, result: v.result}
	case errors.As(v.err, &abort):
		return outcome{kind: aborted, err: abort.err}
	case errors.As(v.err, &suspend):
		return outcome{kind: suspended, result: Result{Text: valid(suspend.reason)}}
	case ctx.Err() != nil: // the run is over: not the tool's fault
		return outcome{kind: cutOff}
	case toolCtx.Err() != nil:
		return failed(fmt.Sprintf("The tool was not done within %v.", t.Timeout))
	}
	return failed(v.err.Error())
}
