package agentloop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/middleware"
)

// Step is one step of a run: a model call, or the tools of a turn.
type Step struct {
	Response *middleware.Response // the model's, nil after tools
	Results  []ToolResult         // of the whole turn, in call order, once it is over
	Pending  []Pending            // calls that wait
	Last     bool                 // the stop condition holds: Drive ends. Agent.Steps does not set it
}

// Run continues s until the model answers without a tool call, the stop
// condition holds, calls wait for a decision (ErrPending), or an error
// occurs. s is up to date in each of these cases, and Run may be called with
// it again. A tool does not run again if s has its result. If s already ends
// with an answer, Run returns nil.
//
// The errors are those of this package, of the model call, of a tool that
// aborts, of Checkpoint, of a rule that could not decide, and of the
// context.
func (a *Agent) Run(ctx context.Context, s *State) error {
	return a.run(ctx, s, nil)
}

// Steps does the same as Run and yields each step. The caller may break at
// any step and continue later with the same State, or decide on pending
// calls inside the loop. An error is the last value, with a zero Step.
//
//	for step, err := range agent.Steps(ctx, s) { … }
func (a *Agent) Steps(ctx context.Context, s *State) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		left := false
		err := a.run(ctx, s, func(step Step) bool {
			left = !yield(step, nil)
			return !left
		})
		if err != nil && !left {
			yield(Step{}, err)
		}
	}
}

// run continues s, and calls watch after each step unless it is nil. watch may
// change s, and reports whether the run goes on.
func (a *Agent) run(ctx context.Context, s *State, watch func(Step) bool) error {
	e := &inMemory{agent: a, a: a, ctx: ctx, saved: s}
	s.enter()
	defer s.leave()
	if err := e.begin(s); err != nil {
		return err
	}
	for !s.done() {
		if err := e.ready(s); err != nil {
			return err
		}
		step, err := e.a.step(ctx, s, e)
		if watch != nil && !step.empty() {
			s.leave()
			if !watch(step) {
				return nil
			}
			s.enter()
		}
		if err != nil {
			return err
		}
		if a.stops(s) {
			return nil
		}
	}
	return nil
}

// step makes one step and saves what it did.
func (a *Agent) step(ctx context.Context, s *State, e Effects) (Step, error) {
	if ctx.Err() != nil {
		return Step{}, ended(ctx)
	}
	step, err := s.next(e)
	var unsaved *checkpointError
	if errors.As(err, &unsaved) {
		return step, err
	}
	return step, a.saved(ctx, s, err)
}

// stops reports whether the stop condition holds.
func (a *Agent) stops(s *State) bool { return a.o.StopWhen != nil && a.o.StopWhen(s) }

// saved saves s, even if the context has ended meanwhile, and returns err joined
// with the error of the checkpoint.
func (a *Agent) saved(ctx context.Context, s *State, err error) error {
	switch saveErr := a.save(context.WithoutCancel(ctx), s); {
	case saveErr != nil && err != nil:
		return fmt.Errorf("%w: %w", saveErr, err)
	case saveErr != nil:
		return saveErr
	}
	return err
}

// empty reports whether there is nothing to see: a model step that gave no
// response.
func (s Step) empty() bool { return s.Response == nil && s.Results == nil && s.Pending == nil }

// done reports whether the conversation ends with an answer.
func (s *State) done() bool {
	if len(s.turn) > 0 || len(s.Messages) == 0 {
		return false
	}
	last := s.Messages[len(s.Messages)-1]
	return last.Role == middleware.RoleAssistant && len(last.ToolCalls) == 0
}

// ended is the error of a context that is done.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return fmt.Errorf("agentloop: the run was ended: %w", cause)
	}
	return fmt.Errorf("agentloop: the run was ended: %w: %w", ctx.Err(), cause)
}

func (a *Agent) save(ctx context.Context, s *State) error {
	if a.o.Checkpoint == nil {
		return nil
	}
	if s.live != nil {
		s.live.saving = true
		defer func() { s.live.saving = false }()
	}
	if err := a.o.Checkpoint(ctx, s); err != nil {
		return &checkpointError{err}
	}
	return nil
}

// resume makes s ready to go on: a fresh one, one made by hand, or one from
// another process, whose tools may have changed since.
func (a *Agent) resume(ctx context.Context, s *State) error {
	s.made = 0
	for i := range s.turn {
		c := &s.turn[i]
		c.Checked = false
		c.mark(a.tools[c.Call.Name])
	}
	if err := a.prepare(ctx, s); err != nil {
		return err
	}
	s.lose()
	if last := s.Messages[len(s.Messages)-1]; len(s.turn) == 0 && len(last.ToolCalls) > 0 {
		if err := a.open(ctx, s, last, nil); err != nil {
			return a.saved(ctx, s, err) // such as a failed turn, for which the model gets error replies when the run continues
		}
	}
	return nil
}

// prepare returns an error if s cannot continue.
func (a *Agent) prepare(ctx context.Context, s *State) error {
	if s.Version == 0 || s.Version == firstVersion { // the form in memory is the same
		s.Version = stateVersion
	}
	switch {
	case s.Version != stateVersion:
		return fmt.Errorf("%w: %d", ErrVersion, s.Version)
	case len(s.Messages) == 0:
		return ErrNoMessages
	case ctx.Err() != nil:
		return ended(ctx)
	}
	if err := s.check(); err != nil {
		return err
	}
	if s.Failures >= a.o.MaxFailures || loopstate.After(s.Failed).Stale() > loopstate.Hopeless {
		s.Failures, s.Failed = 0, nil // ErrFailures was returned, and the caller goes on
	}
	return nil
}

// StopCondition is called after every step. If it returns true, the run ends
// without an error. A later Run continues. A StopCondition must not change
// s.
type StopCondition func(s *State) bool

// ToolUsed returns a condition that holds if one of the named tools was
// called since the last user message and the call has a result, whatever the
// result is. It panics without a name.
func ToolUsed(names ...string) StopCondition {
	if len(names) == 0 {
		panic("agentloop: ToolUsed: no tool is named")
	}
	return answered(names, func(ToolResult) bool { return true })
}

// ToolSucceeded returns a condition that holds if one of the named tools
// returned a result without an error since the last user message. Without
// names, every tool counts. A call that a person rejected does not count.
func ToolSucceeded(names ...string) StopCondition {
	return answered(names, func(r ToolResult) bool { return !r.IsError && !r.Rejected })
}

// AnyOf returns a condition that holds if one of the conditions holds.
func AnyOf(conditions ...StopCondition) StopCondition {
	conditions = slices.Clone(conditions)
	return func(s *State) bool {
		return slices.ContainsFunc(conditions, func(c StopCondition) bool { return c(s) })
	}
}

// answered holds when a call to one of the tools (none: any) has a good result since
// the last user message. Results for an earlier question do not end the run of the
// next one.
func answered(names []string, good func(ToolResult) bool) StopCondition {
	names = slices.Clone(names)
	return func(s *State) bool {
		ids := map[string]bool{}
		for _, m := range slices.Backward(s.Messages) {
			if m.Role == middleware.RoleUser {
				break
			}
			if m.Role == middleware.RoleTool {
				ids[m.ToolCallID] = true
			}
		}
		for _, r := range slices.Backward(s.Results) {
			if !ids[r.Call.ID] {
				return false
			}
			if (len(names) == 0 || slices.Contains(names, r.Call.Name)) && good(r) {
				return true
			}
		}
		return false
	}
}
