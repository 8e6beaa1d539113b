package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/middleware"
)

// turn runs the calls in hand that may run, and closes the turn once every
// call has its result.
func (a *Agent) turn(ctx context.Context, s *State) (Step, error) {
	refused, err := a.recheck(ctx, s)
	if err != nil {
		return Step{}, err
	}
	if ready := s.ready(); len(ready) > 0 {
		if err := a.save(ctx, s); err != nil {
			return Step{}, err
		}
		if err := a.runTools(ctx, s, ready); err != nil {
			return Step{}, err
		}
	}
	if waiting := s.Pending(); len(waiting) > 0 {
		if refused != nil {
			return Step{Pending: waiting}, fmt.Errorf("%w: %w", ErrPending, refused)
		}
		return Step{Pending: waiting}, ErrPending
	}
	return Step{Results: a.close(s)}, nil
}

// ready returns the places of the calls that may run.
func (s *State) ready() []int {
	var places []int
	for i, c := range s.Turn {
		if c.Status == Ready {
			places = append(places, i)
		}
	}
	return places
}

// close answers every call of the turn in hand, in call order.
func (a *Agent) close(s *State) []ToolResult {
	results := make([]ToolResult, len(s.Turn))
	var direct *Result
	for i, c := range s.Turn {
		reply := middleware.ToolReply(c.Call, c.Result.Text)
		reply.IsError = c.Result.IsError
		s.Messages = append(s.Messages, reply)
		results[i] = ToolResult{Call: c.Call, Raw: c.Raw, Changes: c.Changes, Turn: len(s.Steps), Rejected: c.Rejected, Result: c.Result}
		if a.tools[c.Call.Name].ReturnDirect && !c.Result.IsError && !c.Rejected {
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

// recheck judges the calls in hand that nobody has judged in this run: the
// tools of this process may differ from those of the one that saved the state,
// and edits were not judged yet. What a person has decided runs as it was
// shown, or waits again, or the model is told why it cannot run. A call that
// its tool has suspended is not judged: it has begun. refused says which edits
// are not valid.
func (a *Agent) recheck(ctx context.Context, s *State) (refused, err error) {
	changed := false
	for i := range s.Turn {
		c := &s.Turn[i]
		if c.judged || c.Status == Done || c.Status == Waiting && c.Reason != reasonApproval {
			continue
		}
		why, err := a.rejudge(ctx, c)
		if err != nil {
			return nil, err
		}
		refused = errors.Join(refused, why)
		changed = true
	}
	if changed {
		s.writeBack()
	}
	return refused, nil
}

// rejudge judges one call in hand. refused is why an edit was taken back.
func (a *Agent) rejudge(ctx context.Context, c *TurnCall) (refused, err error) {
	verdicts, err := a.o.Validator.Validate(ctx, a.defs, c.Call)
	var invalid *argsvalidate.Error
	switch {
	case ctx.Err() != nil:
		return nil, ended(ctx)
	case err == nil:
		a.accept(c, verdicts[0])
		return nil, nil
	case !errors.As(err, &invalid) || errors.Is(err, argsvalidate.ErrRule):
		return nil, err
	case !c.Edited:
		c.Status, c.Reason, c.Problem, c.judged = Done, "", "", true
		c.Result = Result{Text: invalid.Replies[0].Text(), IsError: true}
		return nil, nil
	}
	// The call as it was before the edit is shown again, if it still is valid.
	last := len(c.Changes) - 1
	c.Call.Arguments, c.Changes = c.Changes[last].Before, c.Changes[:last:last]
	c.wait(problem(invalid.Verdicts[0].Issues))
	if _, err := a.rejudge(ctx, c); err != nil {
		return nil, err
	}
	return fmt.Errorf("the edit of call %q was taken back: %w", c.Call.ID, invalid), nil
}

// accept takes the valid form of a call. What a person has not seen in these
// very bytes, or must now be asked about, waits.
func (a *Agent) accept(c *TurnCall, v middleware.Verdict) {
	same := v.Call.Name == c.Call.Name && v.Call.Arguments == c.Call.Arguments
	c.Call, c.Changes, c.judged = v.Call, slices.Concat(c.Changes, v.Changes), true
	switch decided := c.Decided && c.Status == Ready; {
	case decided && !same:
		c.wait("the arguments were brought into their valid form after the decision; this is what would run")
		c.judged = true
	case c.Status == Ready && !decided && a.tools[c.Call.Name].Approval:
		c.wait("")
		c.judged = true
	}
	c.Edited = false
}

// wait puts the call before a person again.
func (c *TurnCall) wait(problem string) {
	c.Status, c.Reason, c.Problem, c.Decided, c.Edited, c.judged = Waiting, reasonApproval, problem, false, false, false
}

// problem says to a person what is wrong with an edit.
func problem(issues []middleware.Issue) string {
	var b strings.Builder
	b.WriteString("the edited arguments are not valid:")
	for _, i := range issues {
		fmt.Fprintf(&b, " [%s] %s;", i.Path(), i.Message)
	}
	return strings.TrimSuffix(b.String(), ";")
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
