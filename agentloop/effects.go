package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/middleware"
)

// Effects do what a run does outside of its State: it asks the model, runs
// tools, and waits for decisions. Agent.Run does all three in its own process.
// A workflow engine records what each effect returned, and returns that record
// when a run continues in another process: see [Drive].
//
// One goroutine uses Effects at a time. An error of an effect ends the run, and
// Drive returns it unchanged.
type Effects interface {
	// Ask makes one model step: the Messages of s get the answer, and if it
	// calls tools, the turn of these calls is opened. Ask gets a State that ends
	// with anything but an answer. A Step with Last ends the run.
	Ask(s *State) (Step, error)
	// Tools runs calls, and calls done for each that has ended, by its place in
	// calls, before it returns. The error of done is nil or that of Suspend. A
	// call that done was not called for runs again, in the next call of Tools,
	// unless it is AtMostOnce: then the model is told that its outcome is not
	// known. The order of calls is that of the message.
	Tools(calls []CallInfo, done func(place int, r Result, err error)) error
	// Await is called if no call of the turn can run: calls wait for a decision,
	// or a decision was not validated yet. It returns after a change, or an error
	// such as ErrPending.
	Await(s *State) error
}

// Drive continues s until the conversation ends with an answer, a Step is the
// last one, or an effect returns an error. It is the loop of Agent.Run without
// its effects: it uses no clock, random number, goroutine, or anything else that
// may differ when the same effects are replayed. s may be the end of a longer
// conversation.
func Drive(s *State, e Effects) error {
	for !s.done() {
		if step, err := s.next(e); err != nil || step.Last {
			return err
		}
	}
	return nil
}

// next makes one step.
func (s *State) next(e Effects) (Step, error) {
	if len(s.turn) == 0 {
		return e.Ask(s)
	}
	if s.unchecked() {
		if err := e.Await(s); err != nil {
			return Step{}, err
		}
	}
	if err := s.run(e); err != nil {
		return Step{}, err
	}
	waiting := s.Pending()
	switch {
	case len(s.ready()) > 0:
		return Step{}, nil // an engine could not say how they ended
	case len(waiting) > 0:
		return Step{Pending: waiting}, e.Await(s)
	}
	return Step{Results: s.close(true)}, nil
}

// unchecked reports whether a call of the turn was not validated in this run.
func (s *State) unchecked() bool {
	return slices.ContainsFunc(s.turn, func(c turnCall) bool { return c.open() && !c.Checked })
}

// run runs the calls that are ready.
func (s *State) run(e Effects) error {
	places := s.ready()
	if len(places) == 0 {
		return nil
	}
	calls := make([]CallInfo, len(places))
	for i, place := range places {
		c := &s.turn[place]
		c.Started = c.Once
		key := fmt.Sprintf("%s/%d/%s", s.RunID, len(s.Steps), c.Call.ID)
		calls[i] = CallInfo{Call: c.Call, Key: key, Serial: c.Serial, AtMostOnce: c.Once, Pure: c.Pure, Schema: c.Schema}
	}
	err := e.Tools(calls, func(i int, r Result, err error) { s.turn[places[i]].take(r, err) })
	if err == nil {
		s.lose()
	}
	return err
}

const unknownOutcome = "This call was interrupted: whether it ran is not known. Find out whether it had its effect before you call the tool again."

// lose answers the calls that must not start again and have no result.
func (s *State) lose() {
	for i := range s.turn {
		if c := &s.turn[i]; c.Started && c.Status == callReady {
			c.Status, c.Result = callDone, Result{Text: unknownOutcome, IsError: true}
		}
	}
}

// Effects returns the effects of a for the activities of an engine: each Ask and
// Await is complete in itself, because the next one may happen in another
// process. Ask also validates the calls of a conversation that ends with some,
// and returns the error ErrMaxSteps. Await validates the calls of the turn that
// may still run, and does not wait. Tools does not run a call whose tool has another
// schema in this process than where the call was validated: the model is told to
// call it again. Checkpoint is not called.
func (a *Agent) Effects(ctx context.Context) Effects {
	return activity{&inMemory{agent: a, a: a, ctx: ctx}}
}

// inMemory are the effects of Agent.Run.
type inMemory struct {
	agent   *Agent // as New made it
	a       *Agent // with the tools that its Source has now
	ctx     context.Context
	saved   *State // by Options.Checkpoint; nil: nothing is saved
	refused error  // the edits that were taken back
}

// begin takes the tools that there are now, and makes s ready to go on.
func (e *inMemory) begin(s *State) error {
	if err := e.source(); err != nil {
		return err
	}
	return e.a.resume(e.ctx, s)
}

func (e *inMemory) source() error {
	now, err := e.agent.sourced(e.ctx)
	if err == nil {
		e.a = now
	}
	return err
}

// ready prepares a model step if one is next.
func (e *inMemory) ready(s *State) error {
	switch {
	case len(s.turn) > 0:
		return nil
	case s.made == e.a.o.MaxSteps:
		return fmt.Errorf("%w: %d", ErrMaxSteps, s.made)
	}
	if s.made++; s.made > 1 {
		return e.source()
	}
	return nil
}

func (e *inMemory) Ask(s *State) (Step, error) { return e.a.ask(e.ctx, s) }

func (e *inMemory) Await(s *State) (err error) {
	switch {
	case s.unchecked():
		e.refused, err = e.a.recheck(e.ctx, s)
		return err
	case e.refused != nil:
		return fmt.Errorf("%w: %w", ErrPending, e.refused)
	}
	return ErrPending
}

// Tools runs at most Options.Parallel calls at once, and saves the state before
// they run. While other calls run or have yet to begin, it saves the state after
// each result, before it begins the next call: a call begins only after the
// results before it are saved.
//
// The error is the context's, what a tool gave to Abort, or Checkpoint's. After
// each of these no further call begins, and those that run are waited for.
func (e *inMemory) Tools(calls []CallInfo, done func(int, Result, error)) error {
	if err := e.save(); err != nil {
		e.unstart(calls)
		return err
	}
	r := running{a: e.a, ctx: e.ctx, calls: calls, outcomes: make(chan outcome, len(calls)), aborts: make([]error, len(calls))}
	var unsaved error
	for r.begin(); r.count > 0; r.begin() {
		if r.collect(done) && unsaved == nil && e.ctx.Err() == nil && (r.count > 0 || r.next < len(calls) && !r.over) {
			unsaved = e.save()
			r.over = r.over || unsaved != nil
		}
	}
	e.unstart(calls[r.next:])
	abort := errors.Join(r.aborts...)
	switch {
	case unsaved != nil && abort != nil:
		return fmt.Errorf("%w: %w", unsaved, abort)
	case unsaved != nil:
		return unsaved
	case abort == nil && e.ctx.Err() != nil:
		return ended(e.ctx)
	}
	return abort
}

func (e *inMemory) save() error {
	if e.saved == nil {
		return nil
	}
	return e.a.save(e.ctx, e.saved)
}

// unstart notes that these calls did not begin, so they may.
func (e *inMemory) unstart(calls []CallInfo) {
	if e.saved == nil {
		return
	}
	for _, info := range calls {
		for i := range e.saved.turn {
			if c := &e.saved.turn[i]; c.Call.ID == info.Call.ID {
				c.Started = false
			}
		}
	}
}

// activity are the effects of an Agent in an engine.
type activity struct{ *inMemory }

func (e activity) Ask(s *State) (Step, error) {
	if err := e.source(); err != nil {
		return Step{}, err
	}
	if err := e.a.prepare(e.ctx, s); err != nil {
		return Step{}, err
	}
	if last := s.Messages[len(s.Messages)-1]; last.Role == middleware.RoleAssistant && len(last.ToolCalls) > 0 {
		return Step{}, e.a.open(e.ctx, s, last, nil)
	}
	switch {
	case s.made > 0 && e.a.stops(s):
		return Step{Last: true}, nil
	case s.made >= e.a.o.MaxSteps:
		return Step{}, fmt.Errorf("%w: %d", ErrMaxSteps, s.made)
	}
	s.made++
	step, err := e.a.ask(e.ctx, s)
	step.Last = err == nil && len(s.turn) > 0 && e.a.stops(s)
	return step, err
}

func (e activity) Await(s *State) error {
	if err := e.source(); err != nil {
		return err
	}
	_, err := e.a.recheck(e.ctx, s)
	return err
}

func (e activity) Tools(calls []CallInfo, done func(int, Result, error)) error {
	if err := e.source(); err != nil {
		return err
	}
	var run []CallInfo
	var places []int
	for i, c := range calls {
		if t, ok := e.a.tools[c.Call.Name]; ok && c.Schema != "" && c.Schema != t.schemaHash() {
			done(i, Result{Text: fmt.Sprintf(otherSchema, c.Call.Name), IsError: true}, nil)
			continue
		}
		run, places = append(run, c), append(places, i)
	}
	return e.inMemory.Tools(run, func(i int, r Result, err error) { done(places[i], r, err) })
}

const otherSchema = "Tool '%s' was changed after you called it, and did not run. Call it again with arguments that match its present schema."
