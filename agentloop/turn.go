package agentloop

import (
	"context"
	"errors"
	"fmt"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// turn runs the calls in hand that may run, and closes the turn once every
// call has its result.
func (a *Agent) turn(ctx context.Context, s *State) (Step, error) {
	var ready []int
	for i, c := range s.Turn {
		if c.Status == Ready {
			ready = append(ready, i)
		}
	}
	if len(ready) > 0 {
		if err := a.save(ctx, s); err != nil {
			return Step{}, err
		}
		if err := a.runTools(ctx, s, ready); err != nil {
			return Step{}, err
		}
	}
	if waiting := s.Pending(); len(waiting) > 0 {
		return Step{Pending: waiting}, ErrPending
	}
	return Step{Results: a.close(s)}, nil
}

// close answers every call of the turn in hand, in call order.
func (a *Agent) close(s *State) []ToolResult {
	results := make([]ToolResult, len(s.Turn))
	var direct *Result
	for i, c := range s.Turn {
		reply := middleware.ToolReply(c.Call, c.Result.Text)
		reply.IsError = c.Result.IsError
		s.Messages = append(s.Messages, reply)
		results[i] = ToolResult{Call: c.Call, Raw: c.Raw, Changes: c.Changes, Turn: len(s.Steps), Result: c.Result}
		if a.tools[c.Call.Name].ReturnDirect && !c.Result.IsError && !c.rejected() {
			direct = &c.Result
		}
	}
	s.Results = append(s.Results, results...)
	s.Turn = nil
	if direct != nil {
		s.Messages = append(s.Messages, middleware.Assistant(direct.Text))
	}
	return results
}

// rejected reports whether a person answered the call instead of the tool.
func (c TurnCall) rejected() bool { return c.Decided && !c.Ran }

// recheck judges the calls in hand again: the tools of this process may differ
// from those of the one that saved the state, and edits were not judged yet.
// What a person has approved runs as it was shown, or not at all.
func (a *Agent) recheck(ctx context.Context, s *State) error {
	var problems []error
	for i := range s.Turn {
		c := &s.Turn[i]
		if c.Status != Ready {
			continue
		}
		verdicts, err := a.o.Validator.Validate(ctx, a.defs, c.Call)
		var invalid *argsvalidate.Error
		switch {
		case err == nil && c.Decided && verdicts[0].Call != c.Call:
			c.Call, c.Status, c.Decided = verdicts[0].Call, Waiting, false
			c.Reason = "the arguments were changed after the decision: " + reasonApproval
			c.Changes = append(c.Changes, verdicts[0].Changes...)
		case err == nil:
			c.Call = verdicts[0].Call
			c.Changes = append(c.Changes, verdicts[0].Changes...)
		case errors.As(err, &invalid) && errors.Is(err, argsvalidate.ErrRule):
			return err
		case errors.As(err, &invalid) && c.Decided:
			c.Status, c.Decided, c.Reason = Waiting, false, reasonApproval
			problems = append(problems, fmt.Errorf("call %s is not valid as decided: %w", c.Call.ID, err))
		case errors.As(err, &invalid):
			c.Status, c.Result = Done, Result{Text: invalid.Replies[0].Text(), IsError: true}
		default:
			return err
		}
	}
	s.writeBack()
	if problems != nil {
		return fmt.Errorf("%w: %w", ErrPending, errors.Join(problems...))
	}
	return nil
}

// writeBack puts the calls in hand into the message that made them: what runs
// stands in the history.
func (s *State) writeBack() {
	last := &s.Messages[len(s.Messages)-1]
	if len(last.ToolCalls) != len(s.Turn) {
		return
	}
	m := last.Clone()
	for i, c := range s.Turn {
		m.ToolCalls[i] = c.Call
	}
	*last = m
}
