package agentloop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// ready returns the places of the calls that may run.
func (s *State) ready() []int {
	var places []int
	for i, c := range s.turn {
		if c.Status == callReady {
			places = append(places, i)
		}
	}
	return places
}

// close answers every call of the turn in hand, in call order. With direct, the
// result of a tool with ReturnDirect is the answer.
func (s *State) close(direct bool) []ToolResult {
	results := make([]ToolResult, len(s.turn))
	var answer *Result
	for i, c := range s.turn {
		reply := middleware.ToolReply(c.Call, c.Result.Text)
		reply.IsError = c.Result.IsError
		s.Messages = append(s.Messages, reply)
		results[i] = ToolResult{Call: c.Call, Raw: string(c.Raw), Changes: c.Changes, Turn: len(s.Steps), Rejected: c.Rejected, Result: c.Result}
		if !c.Result.IsError && !c.Rejected && direct && c.Direct {
			answer = &c.Result
		}
	}
	s.Results = append(s.Results, results...)
	s.turn = nil
	if answer != nil {
		s.Messages = append(s.Messages, middleware.Assistant(answer.Text))
	}
	return results
}

// writeBack puts the calls in hand into the message that made them, so that the
// history holds what runs.
func (s *State) writeBack() {
	last := &s.Messages[len(s.Messages)-1]
	if len(last.ToolCalls) != len(s.turn) {
		return
	}
	m := last.Clone()
	for i, c := range s.turn {
		m.ToolCalls[i] = c.Call
	}
	*last = m
	s.changed()
}

// running holds the tools of one turn while they run. Only the goroutine of the run
// uses it; the tools' goroutines send their outcomes.
type running struct {
	a        *Agent
	ctx      context.Context
	calls    []CallInfo
	next     int  // the first call that has not begun
	count    int  // of the calls that run
	alone    bool // the one call that runs is serial
	over     bool // no further call begins
	outcomes chan outcome
	aborts   []error // in call order
}

// begin begins the calls that may run now.
func (r *running) begin() {
	for r.next < len(r.calls) && r.count < r.a.o.Parallel && !r.over && r.ctx.Err() == nil {
		place := r.next
		info := r.calls[place]
		if r.count > 0 && (r.alone || info.Serial) {
			return
		}
		r.next, r.alone = place+1, info.Serial
		r.count++
		go func() {
			o := r.a.runOne(r.ctx, info)
			o.place = place
			r.outcomes <- o
		}()
	}
}

// collect waits until a call has ended. It calls done for each call that has ended
// meanwhile with a result or suspended, and reports whether there was one.
func (r *running) collect(done func(int, Result, error)) (changed bool) {
	for o := <-r.outcomes; ; o = <-r.outcomes {
		r.count--
		switch err := o.err.(type) {
		case nil, *suspendError:
			done(o.place, o.result, err)
			changed = true
		case *abortError:
			r.aborts[o.place], r.over = err.err, true
		}
		if len(r.outcomes) == 0 {
			return changed
		}
	}
}

// take puts how the call ended into the turn.
func (c *turnCall) take(r Result, err error) {
	var suspend *suspendError
	switch {
	case errors.As(err, &suspend):
		c.Status, c.Reason, c.Decided, c.Started = callWaiting, valid(suspend.reason), false, false
	case err == nil:
		r.Text = valid(r.Text)
		c.Status, c.Result = callDone, r
	}
}

// outcome is how a call ended.
type outcome struct {
	place  int // in running.calls
	result Result
	err    error // nil if there is a result; a *suspendError, with the reason as the result, an *abortError, or errCutOff
}

var errCutOff = errors.New("the run ended before the tool")

// runOne runs one call on a goroutine of its own, so that a tool that ignores
// its context does not hold the run.
func (a *Agent) runOne(ctx context.Context, info CallInfo) outcome {
	call := info.Call
	t, ok := a.tools[call.Name]
	// A call of another kind was not validated with the tool's schema.
	if !ok || t.Func == nil || t.Def.Kind == middleware.KindFunction && call.Kind != middleware.KindFunction {
		text := fmt.Sprintf("Tool '%s' does not exist. Available tools: %s.", call.Name, strings.Join(a.names(), ", "))
		return outcome{result: Result{Text: valid(text), IsError: true}}
	}
	info.Title, info.Description = t.title(), t.Def.Description
	v, err := run.Isolated(context.WithValue(ctx, callKey{}, info), t.Timeout, func(ctx context.Context) (v returnValues, err error) {
		v.result, err = t.Func(ctx, call)
		v.late = ctx.Err()
		return v, err
	})
	return outcomeOf(ctx, t, v, err)
}

// returnValues is what a tool returned beside its error.
type returnValues struct {
	result Result
	late   error // of its context, which had ended
}

func outcomeOf(ctx context.Context, t Tool, v returnValues, err error) outcome {
	failed := func(text string, err error) outcome {
		text = cmp.Or(valid(text), "The tool failed.")
		if v.result.Text != "" {
			text += "\n\n" + valid(v.result.Text)
		}
		return outcome{result: Result{Text: text, Value: v.result.Value, IsError: true, Err: err}}
	}
	var abort *abortError
	var suspend *suspendError
	var panicked *middleware.PanicError
	if timeout, ok := err.(*run.Timeout); ok { // not that of a function inside the tool
		v.late = timeout
	}
	switch {
	case err == nil:
		v.result.Text = valid(v.result.Text)
		return outcome{result: v.result}
	case errors.As(err, &abort):
		return outcome{err: abort}
	case errors.As(err, &suspend):
		return outcome{result: Result{Text: valid(suspend.reason)}, err: suspend}
	case ctx.Err() != nil: // the run is over: the tool has not failed
		return outcome{err: errCutOff}
	case errors.As(err, &panicked), errors.Is(err, run.ErrGone):
		return failed("the tool failed unexpectedly", err) // without details, which are for the program
	case v.late != nil:
		if !errors.Is(err, v.late) {
			err = fmt.Errorf("%w: %w", v.late, err)
		}
		return failed(fmt.Sprintf("The tool was not done within %v.", t.Timeout), err)
	}
	return failed(err.Error(), err)
}
