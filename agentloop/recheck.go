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

// recheck validates the calls in hand, if one of them was not validated in this
// run: the tools of this process may differ from those of the one that saved the
// state, and edits were not validated yet. All calls that may still run are
// validated together, because rules see siblings. What a person has decided runs
// as it was shown, or waits again, or the model is told why it cannot run. A
// call that its tool has suspended is not validated: it has begun. refused says
// which edits are not valid.
func (a *Agent) recheck(ctx context.Context, s *State) (refused, err error) {
	if !slices.ContainsFunc(s.Turn, func(c TurnCall) bool { return c.open() && !c.judged }) {
		return nil, nil
	}
	defer s.writeBack()
	for {
		open, t := s.openCalls()
		if !a.validated {
			refused = errors.Join(refused, a.refuseEdits(open))
			_, t = s.openCalls()
		}
		verdicts, invalid, err := a.validate(ctx, s.Messages[:len(s.Messages)-1], t)
		if err != nil {
			if ctx.Err() == nil {
				undecided(open)
			}
			return refused, err
		}
		taken := takeBack(open, verdicts, invalid)
		if taken == nil {
			a.settle(open, a.judgement(verdicts, invalid))
			return refused, nil
		}
		refused = errors.Join(refused, taken)
	}
}

// open reports whether the call may still run, and has not begun.
func (c *TurnCall) open() bool {
	return c.Status == Ready || c.Status == Waiting && c.Reason == reasonApproval
}

// openCalls returns the calls that may still run, and what to validate: they,
// beside the others.
func (s *State) openCalls() (open []*TurnCall, t argsvalidate.Turn) {
	for i := range s.Turn {
		if c := &s.Turn[i]; c.open() {
			open = append(open, c)
			t.Calls = append(t.Calls, c.Call)
		} else {
			t.Beside = append(t.Beside, c.Call)
		}
	}
	return open, t
}

// undecided notes why the calls that are ready do not run. Run validates them
// again, and until then a person may decide otherwise: a call must not hang on a
// rule that fails.
func undecided(open []*TurnCall) {
	for _, c := range open {
		if c.Status == Ready {
			c.Problem = "a rule could not decide whether this call is valid"
		}
	}
}

// refuseEdits takes every edit back: without Options.Validator the rules of the
// chain would not hold for them.
func (a *Agent) refuseEdits(open []*TurnCall) (refused error) {
	for _, c := range open {
		if c.Edited {
			c.takeBack("the program has no Options.Validator, so no edit can be validated")
			refused = errors.Join(refused, fmt.Errorf("the edit of call %q was taken back: Options.Validator is not set", c.Call.ID))
		}
	}
	return refused
}

// takeBack takes back the edits that are not valid; all of them, if they are and
// another call is not, which was valid without them. It returns nil if there was
// none to take back.
func takeBack(open []*TurnCall, verdicts []middleware.Verdict, invalid *argsvalidate.Error) (taken error) {
	for i, c := range open {
		if c.Edited && !verdicts[i].OK() {
			c.takeBack(problem("the edited arguments are not valid:", verdicts[i].Issues))
			taken = errors.Join(taken, fmt.Errorf("the edit of call %q was taken back: %w", c.Call.ID, invalid.ForCall(i)))
		}
	}
	bad := slices.IndexFunc(verdicts, notOK)
	if taken != nil || bad < 0 {
		return taken
	}
	for _, c := range open {
		if c.Edited {
			c.takeBack(problem(fmt.Sprintf("with the edited arguments call %q to %s is not valid:", open[bad].Call.ID, open[bad].Call.Name), verdicts[bad].Issues))
			taken = errors.Join(taken, fmt.Errorf("the edit of call %q was taken back: %w", c.Call.ID, invalid.ForCall(bad)))
		}
	}
	return taken
}

// takeBack puts the call before a person again, as it was before the edit.
func (c *TurnCall) takeBack(problem string) {
	last := len(c.Changes) - 1
	c.Call.Arguments, c.Changes = c.Changes[last].Before, c.Changes[:last:last]
	c.wait(problem)
}

// settle takes the valid forms of the calls, and answers the invalid ones.
func (a *Agent) settle(open []*TurnCall, j judgement) {
	for i, c := range open {
		if j.verdicts[i].OK() {
			a.accept(c, j.verdicts[i])
			continue
		}
		c.Status, c.Reason, c.Problem, c.judged = Done, "", "", true
		c.Result = Result{Text: valid(j.told[i]), IsError: true}
	}
}

// accept takes the valid form of a call. What a person has not seen in these
// very bytes, or must now be asked about, waits.
func (a *Agent) accept(c *TurnCall, v middleware.Verdict) {
	same := v.Call.Name == c.Call.Name && v.Call.Arguments == c.Call.Arguments
	c.Call, c.Changes, c.Notes, c.judged = v.Call, slices.Concat(c.Changes, v.Changes), v.Notes, true
	if c.Status == Ready {
		c.Problem = ""
	}
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
func problem(what string, issues []middleware.Issue) string {
	var b strings.Builder
	b.WriteString(what)
	for _, i := range issues {
		fmt.Fprintf(&b, " [%s] %s;", i.Path(), i.Message)
	}
	return strings.TrimSuffix(b.String(), ";")
}
