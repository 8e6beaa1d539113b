package agentloop

import (
	"context"
	"fmt"

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
	return Step{Results: s.close(func(name string) bool { return a.tools[name].ReturnDirect })}, nil
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

// close answers every call of the turn in hand, in call order. direct says
// whether the result of a tool is the answer.
func (s *State) close(direct func(tool string) bool) []ToolResult {
	results := make([]ToolResult, len(s.Turn))
	var answer *Result
	for i, c := range s.Turn {
		reply := middleware.ToolReply(c.Call, c.Result.Text)
		reply.IsError = c.Result.IsError
		s.Messages = append(s.Messages, reply)
		results[i] = ToolResult{Call: c.Call, Raw: c.Raw, Changes: c.Changes, Turn: len(s.Steps), Rejected: c.Rejected, Result: c.Result}
		if !c.Result.IsError && !c.Rejected && direct(c.Call.Name) {
			answer = &c.Result
		}
	}
	s.Results = append(s.Results, results...)
	s.Turn = nil
	if answer != nil {
		s.Messages = append(s.Messages, middleware.Assistant(answer.Text))
	}
	return results
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
