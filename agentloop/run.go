package agentloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/toolmend/toolmend/middleware"
)

// runTools runs the calls at the given places of the turn in hand, at most
// Options.Parallel at once, and puts each result into s as it comes in. While
// other calls run or have yet to begin, it then saves s, before it begins the
// next call: a call begins only after the results before it are saved. Calls
// that the end of the context cut off, and those after one that ends the run,
// stay ready.
//
// The error is the context's, what a tool gave to Abort, or Checkpoint's. After
// each of these no further call begins, and those that run are waited for.
func (a *Agent) runTools(ctx context.Context, s *State, ready []int) error {
	r := running{a: a, ctx: ctx, s: s, ready: ready, outcomes: make(chan outcome, len(ready)), aborts: make([]error, len(s.Turn))}
	var unsaved error
	for r.begin(); r.count > 0; r.begin() {
		if r.collect() && unsaved == nil && ctx.Err() == nil && (r.count > 0 || len(r.ready) > 0 && !r.over) {
			unsaved = a.save(ctx, s)
			r.over = r.over || unsaved != nil
		}
	}
	abort := errors.Join(r.aborts...)
	switch {
	case unsaved != nil && abort != nil:
		return fmt.Errorf("%w: %w", unsaved, abort)
	case unsaved != nil:
		return unsaved
	case abort == nil && ctx.Err() != nil:
		return ended(ctx)
	}
	return abort
}

// running is the tools of one turn at work. Only the goroutine of the run uses
// it and the state; the tools' goroutines send their outcomes.
type running struct {
	a        *Agent
	ctx      context.Context
	s        *State
	ready    []int // the places of the calls that have not begun
	count    int   // of the calls that run
	alone    bool  // the one call that runs is serial
	over     bool  // no further call begins
	outcomes chan outcome
	aborts   []error // in call order
}

// begin begins the calls that may run now.
func (r *running) begin() {
	for len(r.ready) > 0 && r.count < r.a.o.Parallel && !r.over && r.ctx.Err() == nil {
		place := r.ready[0]
		call, turn := r.s.Turn[place].Call, len(r.s.Steps)
		serial := r.a.tools[call.Name].Serial
		if r.count > 0 && (r.alone || serial) {
			return
		}
		r.ready, r.alone = r.ready[1:], serial
		r.count++
		go func() {
			o := r.a.runOne(r.ctx, r.s.RunID, turn, call)
			o.place = place
			r.outcomes <- o
		}()
	}
}

// collect waits for a call to end, puts that and all that have ended meanwhile
// into the state, and reports whether the state has changed.
func (r *running) collect() (changed bool) {
	for o := <-r.outcomes; ; o = <-r.outcomes {
		r.count--
		r.s.Turn[o.place].take(o)
		if o.kind == aborted {
			r.aborts[o.place], r.over = o.err, true
		}
		changed = changed || o.kind == returned || o.kind == suspended
		if len(r.outcomes) == 0 {
			return changed
		}
	}
}

// take puts how the call ended into the turn.
func (c *TurnCall) take(o outcome) {
	switch o.kind {
	case suspended:
		c.Status, c.Reason, c.Decided = Waiting, o.result.Text, false
	case returned:
		c.Status, c.Result = Done, o.result
	}
}

// outcome is how a call ended.
type outcome struct {
	place  int // in the turn
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

// runOne runs one call on a goroutine of its own, so that a tool that ignores
// its context does not hold the run.
func (a *Agent) runOne(ctx context.Context, runID string, turn int, call middleware.ToolCall) outcome {
	t, ok := a.tools[call.Name]
	// A call of another kind was not judged by the tool's schema.
	if !ok || t.Func == nil || t.Def.Kind == middleware.KindFunction && call.Kind != middleware.KindFunction {
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
	var claimed atomic.Bool // by the tool, which begins, or by the end of the context before it
	go func() {
		if !claimed.CompareAndSwap(false, true) {
			return
		}
		v := returnValues{err: errUnexpected} // unless the tool returns: it may also end its goroutine
		defer func() {
			if p := recover(); p != nil {
				v = returnValues{err: middleware.NewPanicError(p)}
			}
			done <- v
		}()
		result, err := t.Func(toolCtx, call)
		v = returnValues{result, err}
	}()
	select {
	case v := <-done:
		return outcomeOf(ctx, toolCtx, t, v)
	case <-toolCtx.Done():
		claimed.Store(true)
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

// errUnexpected is what the model is told of a tool that panicked: not where.
var errUnexpected = errors.New("the tool failed unexpectedly")

func outcomeOf(ctx, toolCtx context.Context, t Tool, v returnValues) outcome {
	failed := func(text string, err error) outcome {
		text = cmp.Or(valid(text), "The tool failed.")
		if v.result.Text != "" {
			text += "\n\n" + valid(v.result.Text)
		}
		return outcome{kind: returned, result: Result{Text: text, Value: v.result.Value, IsError: true, Err: err}}
	}
	var abort *abortError
	var suspend *suspendError
	var panicked *middleware.PanicError
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
	case errors.As(v.err, &panicked):
		return failed(errUnexpected.Error(), v.err)
	case toolCtx.Err() != nil:
		err := v.err
		if !errors.Is(err, toolCtx.Err()) {
			err = fmt.Errorf("%w: %w", toolCtx.Err(), err)
		}
		return failed(fmt.Sprintf("The tool was not done within %v.", t.Timeout), err)
	}
	return failed(v.err.Error(), v.err)
}
