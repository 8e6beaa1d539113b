package agentloop

import (
	"context"
	"errors"
	"slices"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// judgement is what is known about the calls of one message.
type judgement struct {
	verdicts []middleware.Verdict
	told     []string // what the model is told of each invalid call, at its place
	cause    error    // nil: every call is valid
}

// open judges the calls of a message and makes them the turn in hand. If one
// is invalid none runs: the turn is a failed one, and the model is told. resp
// is nil where m stands at the end of the conversation already.
func (a *Agent) open(ctx context.Context, s *State, m middleware.Message, resp *middleware.Response) error {
	history := s.Messages
	if resp == nil {
		history = history[:len(history)-1]
	}
	history = history[:len(history):len(history)]
	sent := m
	m = batch.FixIDs(history, m).Clone()
	j, err := a.judge(ctx, history, m, resp)
	if err != nil {
		if resp == nil || resp.Report.Status != middleware.Invalid && resp.FinishReason != middleware.FinishLength {
			s.Messages = append(history, m) // paid for: judged when the run goes on
		}
		return err
	}
	if j.cause != nil {
		s.Messages = a.failedTurn(history, m, j)
		var report middleware.Report
		if resp != nil {
			report = resp.Report
		}
		return a.countFailure(s, report, j.verdicts, j.cause)
	}
	s.Failures, s.Failed = 0, nil
	s.Turn = make([]TurnCall, len(j.verdicts))
	for i, v := range j.verdicts {
		if id := sent.ToolCalls[i].ID; id != v.Call.ID {
			v.Changes = append(slices.Clone(v.Changes), middleware.Change{By: "id", Before: id, After: v.Call.ID})
		}
		m.ToolCalls[i] = v.Call
		s.Turn[i] = a.turnCall(v, rawArguments(sent, resp, i))
	}
	s.Messages = append(history, m)
	return nil
}

func (a *Agent) turnCall(v middleware.Verdict, raw string) TurnCall {
	c := TurnCall{Call: v.Call, Raw: raw, Changes: v.Changes, Notes: v.Notes, Status: Ready, judged: true}
	if a.tools[v.Call.Name].Approval {
		c.Status, c.Reason = Waiting, reasonApproval
	}
	return c
}

// rawArguments returns what the model wrote in the i-th call: what came out of
// the step may be stripped and mended, or put together from several attempts.
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

func finalAttempt(resp *middleware.Response) *middleware.Attempt {
	if resp == nil || resp.Report.Final < 0 || resp.Report.Final >= len(resp.Report.Attempts) {
		return nil
	}
	return &resp.Report.Attempts[resp.Report.Final]
}

// failedTurn returns history with a turn appended whose calls were not run.
func (a *Agent) failedTurn(history []middleware.Message, m middleware.Message, j judgement) []middleware.Message {
	next := -1 // Turn asks for the invalid calls, in order
	say := func(middleware.Verdict) string {
		for next++; j.verdicts[next].OK(); next++ {
		}
		return j.told[next]
	}
	return append(history[:len(history):len(history)], batch.Turn(m, a.defs, j.verdicts, batch.ReissueAll, say)...)
}

// judge returns the verdicts of the step, if they are on these very calls,
// else the agent's own. What the step has called invalid stays invalid, and a
// function or custom call that was cut off never runs; other kinds are not looked at.
//
// The error is a rule's that could not decide, or the context's: a check that
// the end of the context has cut off looks like a refusal of the call, and must
// not be told to the model as one.
func (a *Agent) judge(ctx context.Context, history []middleware.Message, m middleware.Message, resp *middleware.Response) (judgement, error) {
	if ctx.Err() != nil && resp != nil && resp.Report.Status == middleware.Invalid {
		return judgement{}, ended(ctx) // perhaps a check was cut off: that says nothing about the calls
	}
	if verdicts := stepVerdicts(m, resp); verdicts != nil {
		return a.judgement(verdicts, nil), nil
	}
	cut := resp != nil && resp.Report.Status != middleware.Valid && resp.FinishReason == middleware.FinishLength
	verdicts, invalid, err := a.validate(ctx, history, argsvalidate.Turn{Calls: m.ToolCalls, Truncated: cut})
	if err != nil {
		return judgement{}, err
	}
	if resp != nil && resp.Report.Status == middleware.Invalid && !slices.ContainsFunc(verdicts, notOK) {
		for i, c := range m.ToolCalls {
			verdicts[i] = refused(c, "invalid", "a layer of the program found a call of this message invalid")
		}
	}
	return a.judgement(verdicts, invalid), nil
}

// validate is the one way in which calls are validated outside of a step: rules
// see the request that the conversation stands for, and the siblings. invalid is
// nil if every call is valid. The error is a rule's that could not decide, or
// the context's.
func (a *Agent) validate(ctx context.Context, history []middleware.Message, t argsvalidate.Turn) (verdicts []middleware.Verdict, invalid *argsvalidate.Error, err error) {
	t.Request = a.request(history)
	verdicts, err = a.o.Validator.ValidateTurn(ctx, t)
	switch {
	case ctx.Err() != nil: // the verdicts may hang on where it was cut off
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

// stepVerdicts returns the verdicts of the step on the calls of m; nil if it
// has none, or on other calls, or none that fit what the report says.
func stepVerdicts(m middleware.Message, resp *middleware.Response) []middleware.Verdict {
	final := finalAttempt(resp)
	if final == nil || len(final.Verdicts) != len(m.ToolCalls) {
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

// judgement puts verdicts into words: the validator's own where it gave some.
func (a *Agent) judgement(verdicts []middleware.Verdict, own *argsvalidate.Error) judgement {
	j := judgement{verdicts: verdicts}
	if !slices.ContainsFunc(verdicts, notOK) {
		return j
	}
	if own != nil && len(own.Replies) == len(verdicts) {
		j.told, j.cause = texts(own.Replies), own
		return j
	}
	j.told, j.cause = make([]string, len(verdicts)), argsvalidate.ErrInvalid
	if own != nil {
		j.cause = own
	}
	for i, v := range verdicts {
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
