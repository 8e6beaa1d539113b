package agentloop

import (
	"fmt"

	"github.com/toolmend/toolmend/middleware"
)

// check returns an error that wraps ErrState if s cannot have been written by
// this package: a stored state may be damaged, or come from a stranger. The
// calls themselves are validated when they run.
func (s *State) check() error {
	if s.Failures < 0 {
		return fmt.Errorf("%w: failures is %d", ErrState, s.Failures)
	}
	if len(s.Turn) == 0 {
		return nil
	}
	last := s.Messages[len(s.Messages)-1]
	if last.Role != middleware.RoleAssistant || len(last.ToolCalls) != len(s.Turn) {
		return fmt.Errorf("%w: the turn has %d calls, which are not those of the last message", ErrState, len(s.Turn))
	}
	ids := make(map[string]bool, len(s.Turn))
	for i, c := range s.Turn {
		id := c.Call.ID
		switch {
		case id == "" || ids[id] || last.ToolCalls[i].ID != id:
			return fmt.Errorf("%w: the id of call %d is missing, repeated or not that of the last message", ErrState, i)
		case c.Status != Ready && c.Status != Waiting && c.Status != Done:
			return fmt.Errorf("%w: the status of call %q is unknown", ErrState, id)
		case c.Edited && !c.endsInEdit():
			return fmt.Errorf("%w: call %q is edited, but its last change is not an edit that leads to its arguments", ErrState, id)
		}
		ids[id] = true
	}
	return nil
}

// endsInEdit reports whether the arguments of the call are what State.Edit made
// of them.
func (c *TurnCall) endsInEdit() bool {
	if len(c.Changes) == 0 {
		return false
	}
	last := c.Changes[len(c.Changes)-1]
	return last.By == byEdit && last.Pointer == "" && last.After == c.Call.Arguments
}
