package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/middleware"
)

// checked is the result of validating the calls of one message.
type checked struct {
	verdicts []middleware.Verdict
	told     []string // the error response to each invalid call, at its place
	cause    error    // nil: every call is valid
}

// open validates the calls of a message and makes them the turn in hand. If one is
// invalid none runs: the turn has failed, and the model is sent error responses.
// resp is nil if m is the end of the conversation already.
func (a *Agent) open(ctx context.Context, s *State, m middleware.Message, resp *middleware.Response) error {
	earlier := s.Messages
	if resp == nil {
		n := len(earlier) - 1
		earlier = earlier[:n:n]
	}
	sent := m
	if !s.newIDs(earlier, m) {
		m = history.FixIDs(earlier, m)
	}
	m = m.Clone()
	j, err := a.check(ctx, s, earlier, m, resp)
	if err != nil {
		if resp == nil || resp.Report.Status != middleware.Invalid && resp.FinishReason != middleware.FinishLength {
			s.Messages = append(earlier, m) // it was paid for: it is validated when the run goes on
		}
		return err
	}
	if j.cause != nil {
		s.Messages = a.failedTurn(earlier, m, j)
		var report middleware.Report
		if resp != nil {
			report = resp.Report
		}
		return a.countFailure(s, report, j.verdicts, j.cause)
	}
	s.Failures, s.Failed = 0, nil
	s.turn = make([]turnCall, len(j.verdicts))
	for i, v := range j.verdicts {
		if id := sent.ToolCalls[i].ID; id != v.Call.ID {
			v.Changes = append(slices.Clone(v.Changes), middleware.Change{By: "id", Before: id, After: v.Call.ID})
		}
		m.ToolCalls[i] = v.Call
		s.turn[i] = a.turnCall(v, rawArguments(sent, resp, i))
	}
	s.Messages = append(earlier, m)
	return nil
}

// newIDs reports whether s is live, so that the ids of earlier calls are known, and
// each call of m has an id that is none of those and no other one's of m.
func (s *State) newIDs(history []middleware.Message, m middleware.Message) bool {
	l := s.live
	if l == nil || len(m.ToolCalls) > 8 { // FixIDs has a faster way for many
		return false
	}
	if l.ids == nil || l.seen > len(history) {
		l.ids, l.seen = map[string]bool{}, 0
	}
	for ; l.seen < len(history); l.seen++ {
		for _, c := range history[l.seen].ToolCalls {
			l.ids[c.ID] = true
		}
	}
	for i, c := range m.ToolCalls {
		same := func(o middleware.ToolCall) bool { return o.ID == c.ID }
		if strings.TrimSpace(c.ID) == "" || l.ids[c.ID] || slices.ContainsFunc(m.ToolCalls[:i], same) {
			return false
		}
	}
	return true
}

func (a *Agent) turnCall(v middleware.Verdict, sent string) turnCall {
	c := turnCall{Call: v.Call, Raw: raw(sent), Changes: v.Changes, Notes: v.Notes, Status: callReady, Checked: true}
	t := a.tools[v.Call.Name]
	c.mark(t)
	if t.Approval {
		c.Status, c.Reason = callWaiting, reasonApproval
	}
	return c
}

// rawArguments returns what the model wrote in the i-th call. The call that the
// step returned may be stripped, repaired, or put together from several attempts.
func rawArguments(sent middleware.Message, resp *middleware.Response, i int) string {
	if resp == nil {
		return sent.ToolCalls[i].Arguments
	}
	for _, a := range slices.Backward(resp.Report.Attempts) {
		for n, v := range a.Verdicts {
			if v.Call.ID == sent.ToolCalls[i].ID && n < len(a.Message.ToolCalls) {
				return a.Message.ToolCalls[n].Arguments
			}
		}
	}
	return sent.ToolCalls[i].Arguments
}

// failedTurn returns history with a turn appended whose calls were not run.
func (a *Agent) failedTurn(history []middleware.Message, m middleware.Message, j checked) []middleware.Message {
	next := -1 // Turn asks for the invalid calls, in order
	say := func(middleware.Verdict) string {
		for next++; j.verdicts[next].OK(); next++ {
		}
		return j.told[next]
	}
	return append(history[:len(history):len(history)], batch.Turn(m, a.defs, j.verdicts, batch.ReissueAll, say)...)
}

// check returns the verdicts of the step if they are on these very calls, else the
// Validator's. A message that the step found invalid stays invalid. A function or
// custom call that was cut off never runs. Calls of other kinds are not validated.
//
// The error is the context's, or that of a rule that could not decide. If the
// context ended during validation, calls look invalid that may be valid, so their
// verdicts must not reach the model.
func (a *Agent) check(ctx context.Context, s *State, history []middleware.Message, m middleware.Message, resp *middleware.Response) (checked, error) {
	if ctx.Err() != nil && resp != nil && resp.Report.Status == middleware.Invalid {
		return checked{}, ended(ctx) // perhaps validation was cut off: that says nothing about the calls
	}
	if verdicts := stepVerdicts(m, resp); verdicts != nil {
		return a.explain(verdicts, nil), nil
	}
	cut := resp != nil && resp.Report.Status != middleware.Valid && resp.FinishReason == middleware.FinishLength
	verdicts, invalid, err := a.validate(ctx, s, history, argsvalidate.Turn{Calls: m.ToolCalls, Truncated: cut})
	if err != nil {
		return checked{}, err
	}
	if resp != nil && resp.Report.Status == middleware.Invalid && !slices.ContainsFunc(verdicts, notOK) {
		for i, c := range m.ToolCalls {
			verdicts[i] = refused(c, "invalid", "a layer of the program found a call of this message invalid")
		}
	}
	return a.explain(verdicts, invalid), nil
}

// validate is the only place where the agent validates calls. Rules see the request
// for this conversation, and the siblings. invalid is nil if every call is valid.
// The error is the context's, or that of a rule that could not decide.
func (a *Agent) validate(ctx context.Context, s *State, history []middleware.Message, t argsvalidate.Turn) (verdicts []middleware.Verdict, invalid *argsvalidate.Error, err error) {
	t.Request = a.request(s, history)
	verdicts, err = a.o.Validator.ValidateTurn(ctx, t)
	switch {
	case ctx.Err() != nil: // the verdicts may depend on where it was cut off
		return nil, nil, ended(ctx)
	case err != nil && (!errors.As(err, &invalid) || errors.Is(err, argsvalidate.ErrRule)):
		return nil, nil, err
	}
	return verdicts, invalid, nil
}

func notOK(v middleware.Verdict) bool { return !v.OK() }

func refused(c middleware.ToolCall, code, message string) middleware.Verdict {
	return middleware.Verdict{Call: c, Issues: []middleware.Issue{{Code: code, Message: message}}}
}

// stepVerdicts returns the verdicts of the step on the calls of m. It returns nil
// if there are none, if they are on other calls, or if they contradict the status
// of the report.
func stepVerdicts(m middleware.Message, resp *middleware.Response) []middleware.Verdict {
	if resp == nil || resp.Report.Final < 0 || resp.Report.Final >= len(resp.Report.Attempts) {
		return nil
	}
	final := resp.Report.Attempts[resp.Report.Final]
	if len(final.Verdicts) != len(m.ToolCalls) {
		return nil
	}
	for i, v := range final.Verdicts {
		if c := m.ToolCalls[i]; v.Call.ID != c.ID || v.Call.Name != c.Name || v.Call.Arguments != c.Arguments || v.Call.Kind != c.Kind {
			return nil
		}
	}
	bad := slices.ContainsFunc(final.Verdicts, notOK)
	if status := resp.Report.Status; (status == middleware.Valid || status == middleware.Unchecked) && !bad || status == middleware.Invalid && bad {
		return slices.Clone(final.Verdicts)
	}
	return nil
}

// explain puts verdicts into words: the validator's own where it gave some.
func (a *Agent) explain(verdicts []middleware.Verdict, own *argsvalidate.Error) checked {
	j := checked{verdicts: verdicts}
	if !slices.ContainsFunc(verdicts, notOK) {
		return j
	}
	j.told, j.cause = make([]string, len(verdicts)), argsvalidate.ErrInvalid
	if own != nil {
		j.cause = own
	}
	for i, v := range verdicts {
		if own != nil && len(own.Replies) == len(verdicts) {
			j.told[i] = own.Replies[i].Text()
			continue
		}
		if v.OK() {
			continue
		}
		t, declared := a.tools[v.Call.Name]
		j.told[i] = argsvalidate.DefaultFeedback(argsvalidate.FeedbackInput{Verdict: v, Tool: t.Def, Declared: declared, Available: a.names(), Attempt: 1})
		if v.Issues[0].Code == "too_many_calls" {
			break // the calls behind it are not sent back
		}
	}
	return j
}

// recheck validates the calls in hand: the tools of this process may differ from
// those of the process that saved the state, and edits were not validated yet. All
// calls that may still run are validated together, because rules see siblings. A
// call that a person has decided runs as it was shown, waits again, or gets an error
// response. A call that its tool has suspended is not validated, because it has
// begun. refused is an error for each edit that is not valid.
func (a *Agent) recheck(ctx context.Context, s *State) (refused, err error) {
	defer s.writeBack()
	for {
		open, t := s.openCalls()
		if !a.validated {
			refused = errors.Join(refused, a.refuseEdits(open))
			_, t = s.openCalls()
		}
		verdicts, invalid, err := a.validate(ctx, s, s.Messages[:len(s.Messages)-1], t)
		if err != nil {
			if ctx.Err() == nil {
				undecided(open)
			}
			return refused, err
		}
		taken := takeBack(open, verdicts, invalid)
		if taken == nil {
			a.settle(open, a.explain(verdicts, invalid))
			return refused, nil
		}
		refused = errors.Join(refused, taken)
	}
}

// open reports whether the call may still run, and has not begun.
func (c *turnCall) open() bool {
	return c.Status == callReady || c.Status == callWaiting && c.Reason == reasonApproval
}

// openCalls returns the calls that may still run, and what to validate: they,
// beside the others.
func (s *State) openCalls() (open []*turnCall, t argsvalidate.Turn) {
	for i := range s.turn {
		if c := &s.turn[i]; c.open() {
			open = append(open, c)
			t.Calls = append(t.Calls, c.Call)
		} else {
			t.Beside = append(t.Beside, c.Call)
		}
	}
	return open, t
}

// undecided notes why the calls that are ready do not run. Run validates them
// again, and until then a person may decide otherwise: a rule that fails must not
// block a call for ever.
func undecided(open []*turnCall) {
	for _, c := range open {
		if c.Status == callReady {
			c.Problem = "a rule could not decide whether this call is valid"
		}
	}
}

// refuseEdits takes every edit back: without Options.Validator the rules of the
// chain would not hold for them.
func (a *Agent) refuseEdits(open []*turnCall) (refused error) {
	for _, c := range open {
		if c.Edited {
			c.takeBack("the program has no Options.Validator, so no edit can be validated")
			refused = errors.Join(refused, fmt.Errorf("the edit of call %q was taken back: Options.Validator is not set", c.Call.ID))
		}
	}
	return refused
}

// takeBack takes back the edits that are not valid. If all edits are valid and
// another call is not, it takes all edits back, because that call was valid without
// them. It returns nil if there was no edit to take back.
func takeBack(open []*turnCall, verdicts []middleware.Verdict, invalid *argsvalidate.Error) (taken error) {
	refuse := func(c *turnCall, bad int, what string) {
		c.takeBack(problem(what, verdicts[bad].Issues))
		taken = errors.Join(taken, fmt.Errorf("the edit of call %q was taken back: %w", c.Call.ID, invalid.ForCall(bad)))
	}
	for i, c := range open {
		if c.Edited && !verdicts[i].OK() {
			refuse(c, i, "the edited arguments are not valid:")
		}
	}
	bad := slices.IndexFunc(verdicts, notOK)
	if taken != nil || bad < 0 {
		return taken
	}
	for _, c := range open {
		if c.Edited {
			refuse(c, bad, fmt.Sprintf("with the edited arguments call %q to %s is not valid:", open[bad].Call.ID, open[bad].Call.Name))
		}
	}
	return taken
}

// takeBack puts the call before a person again, as it was before the edit.
func (c *turnCall) takeBack(problem string) {
	last := len(c.Changes) - 1
	c.Call.Arguments, c.Changes = c.Changes[last].Before, c.Changes[:last:last]
	c.wait(problem)
}

// settle accepts the valid calls, and answers the invalid ones.
func (a *Agent) settle(open []*turnCall, j checked) {
	for i, c := range open {
		if j.verdicts[i].OK() {
			a.accept(c, j.verdicts[i])
			continue
		}
		c.Status, c.Reason, c.Problem, c.Checked = callDone, "", "", true
		c.Result = Result{Text: valid(j.told[i]), IsError: true}
	}
}

// accept takes the valid form of a call. The call waits if a person has decided on
// other bytes, or has not decided and the tool needs approval.
func (a *Agent) accept(c *turnCall, v middleware.Verdict) {
	same := v.Call.Name == c.Call.Name && v.Call.Arguments == c.Call.Arguments
	c.Call, c.Changes, c.Notes = v.Call, slices.Concat(c.Changes, v.Changes), v.Notes
	c.mark(a.tools[c.Call.Name])
	if c.Status == callReady {
		c.Problem = ""
	}
	switch decided := c.Decided && c.Status == callReady; {
	case decided && !same:
		c.wait("the arguments were brought into their valid form after the decision; this is what would run")
	case c.Status == callReady && !decided && a.tools[c.Call.Name].Approval:
		c.wait("")
	}
	c.Edited, c.Checked = false, true
}

// wait puts the call before a person again.
func (c *turnCall) wait(problem string) {
	c.Status, c.Reason, c.Problem, c.Decided, c.Edited, c.Checked = callWaiting, reasonApproval, problem, false, false, false
}

// problem tells a person what is wrong with an edit.
func problem(what string, issues []middleware.Issue) string {
	var b strings.Builder
	b.WriteString(what)
	for _, i := range issues {
		fmt.Fprintf(&b, " [%s] %s;", i.Path(), i.Message)
	}
	return strings.TrimSuffix(b.String(), ";")
}
