package agentloop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// Step is what just happened: the model answered, or tools ran.
type Step struct {
	Response *middleware.Response // the model's, nil after tools
	Results  []ToolResult         // of the whole turn, in call order, once it is over
	Pending  []Pending            // calls that wait
}

// Run drives s until the model answers without a tool call, the stop condition
// holds, calls wait for a decision (ErrPending) or an error ends it. s is up to
// date in any case, and Run may be called again with it: nothing that s records
// is done twice. A state that ends with an answer is done already.
func (a *Agent) Run(ctx context.Context, s *State) error {
	for _, err := range a.Steps(ctx, s) {
		if err != nil {
			return err
		}
	}
	return nil
}

// Steps is Run, one step at a time. Leaving the loop is allowed at every step,
// and s can go on from there. An error is the last thing that it yields.
//
//	for step, err := range agent.Steps(ctx, s) { … }
func (a *Agent) Steps(ctx context.Context, s *State) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if err := a.resume(ctx, s); err != nil {
			yield(Step{}, err)
			return
		}
		for made := 0; !s.done(); {
			if err := ctx.Err(); err != nil {
				yield(Step{}, ended(ctx))
				return
			}
			step, err := Step{}, error(nil)
			switch {
			case len(s.Turn) > 0:
				step, err = a.turn(ctx, s)
			case made == a.o.MaxSteps:
				err = fmt.Errorf("%w: %d", ErrMaxSteps, made)
			default:
				made++
				step, err = a.ask(ctx, s)
			}
			// What is done is saved, also when the context has ended meanwhile.
			if saveErr := a.save(context.WithoutCancel(ctx), s); err == nil {
				err = saveErr
			}
			if err != nil {
				if len(step.Pending) > 0 && !yield(step, nil) {
					return
				}
				yield(Step{}, err)
				return
			}
			if !yield(step, nil) || a.o.StopWhen != nil && a.o.StopWhen(s) {
				return
			}
		}
	}
}

// done reports whether the conversation ends with an answer.
func (s *State) done() bool {
	if len(s.Turn) > 0 || len(s.Messages) == 0 {
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
	if err := a.o.Checkpoint(ctx, s); err != nil {
		return fmt.Errorf("agentloop: checkpoint: %w", err)
	}
	return nil
}

// resume makes s ready to go on: a fresh one, one made by hand, or one from
// another process, whose tools may have changed since.
func (a *Agent) resume(ctx context.Context, s *State) error {
	if s.Version == 0 {
		s.Version = stateVersion
	}
	if s.Version > stateVersion {
		return fmt.Errorf("%w: %d", ErrVersion, s.Version)
	}
	if len(s.Messages) == 0 {
		return ErrNoMessages
	}
	if len(s.Turn) == 0 {
		last := s.Messages[len(s.Messages)-1]
		if last.Role == middleware.RoleAssistant && len(last.ToolCalls) > 0 {
			_, err := a.open(ctx, s, last, nil)
			return err
		}
		return nil
	}
	return a.recheck(ctx, s)
}

// ask makes one model step and opens the turn of its calls.
func (a *Agent) ask(ctx context.Context, s *State) (Step, error) {
	s.Messages = Repair(s.Messages)
	resp, err := a.call(ctx, a.request(s))
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	report := middleware.ReportOf(resp, err)
	usage := report.Usage()
	if err == nil && len(resp.Report.Attempts) == 0 {
		usage = resp.Usage
	}
	s.Usage = s.Usage.Add(usage)
	record := StepRecord{Attempts: len(report.Attempts), Status: report.Status, Usage: usage}
	if err != nil {
		return a.failed(ctx, s, record, err)
	}
	record.Model = resp.Model
	s.Steps = append(s.Steps, record)
	if len(resp.Message.ToolCalls) == 0 {
		s.Failures = 0
		s.Messages = append(s.Messages, resp.Message)
		return Step{Response: resp}, nil
	}
	results, err := a.open(ctx, s, resp.Message, &resp.Report)
	return Step{Response: resp, Results: results, Pending: s.Pending()}, err
}

// failed handles a model step without a response. A model that did not manage
// a valid message is told so and gets another turn; any other error ends the
// run.
func (a *Agent) failed(ctx context.Context, s *State, record StepRecord, err error) (Step, error) {
	var invalid *argsvalidate.Error
	if ctx.Err() != nil || !errors.As(err, &invalid) || !errors.Is(err, argsvalidate.ErrExhausted) {
		return Step{}, err
	}
	record.Status = middleware.Invalid
	s.Steps = append(s.Steps, record)
	if invalid.Response == nil || len(invalid.Replies) != len(invalid.Response.Message.ToolCalls) {
		return Step{}, a.countFailure(s, err)
	}
	echo := batch.Echo(invalid.Response.Message, a.defs)
	s.Messages = append(append(s.Messages, echo), invalid.Replies...)
	for i := range echo.ToolCalls {
		s.Messages[len(s.Messages)-len(echo.ToolCalls)+i].ToolName = echo.ToolCalls[i].Name
	}
	return Step{}, a.countFailure(s, err)
}

// countFailure ends the run at the limit; cause says why, if there is one.
func (a *Agent) countFailure(s *State, cause error) error {
	s.Failures++
	if s.Failures < a.o.MaxFailures {
		return nil
	}
	if cause == nil {
		return fmt.Errorf("%w: %d", ErrFailures, s.Failures)
	}
	return fmt.Errorf("%w: %d: %w", ErrFailures, s.Failures, cause)
}

// judged returns the verdicts on the calls of a message: those of the step's
// report, if they are on these very bytes, else the agent's own.
func (a *Agent) judged(ctx context.Context, m middleware.Message, report *middleware.Report) ([]middleware.Verdict, []middleware.Message, error) {
	if report != nil && report.Status == middleware.Valid && report.Final >= 0 && report.Final < len(report.Attempts) {
		verdicts := report.Attempts[report.Final].Verdicts
		same := len(verdicts) == len(m.ToolCalls)
		for i := 0; same && i < len(verdicts); i++ {
			c := verdicts[i].Call
			same = verdicts[i].OK() && c.ID == m.ToolCalls[i].ID && c.Name == m.ToolCalls[i].Name && c.Arguments == m.ToolCalls[i].Arguments
		}
		if same {
			return verdicts, nil, nil
		}
	}
	verdicts, err := a.o.Validator.Validate(ctx, a.defs, m.ToolCalls...)
	var invalid *argsvalidate.Error
	if errors.As(err, &invalid) && !errors.Is(err, argsvalidate.ErrRule) {
		return verdicts, invalid.Replies, nil
	}
	return verdicts, nil, err
}

// open judges the calls of a message and makes them the turn in hand. If one
// is invalid none runs: the turn is a failed one, and the model is told.
func (a *Agent) open(ctx context.Context, s *State, m middleware.Message, report *middleware.Report) ([]ToolResult, error) {
	history := s.Messages
	if n := len(history); n > 0 && report == nil {
		history = history[:n-1] // resumed: m stands at the end already
	}
	sent := m
	m = batch.FixIDs(history, m).Clone()
	verdicts, replies, err := a.judged(ctx, m, report)
	if err != nil {
		return nil, err
	}
	if replies != nil {
		turn := batch.Turn(m, a.defs, verdicts, batch.ReissueAll, func(v middleware.Verdict) string {
			i := slices.IndexFunc(verdicts, func(w middleware.Verdict) bool { return w.Call.ID == v.Call.ID })
			return replies[i].Text()
		})
		s.Messages = append(history[:len(history):len(history)], turn...)
		return nil, a.countFailure(s, nil)
	}
	s.Failures = 0
	s.Turn = make([]TurnCall, len(verdicts))
	for i, v := range verdicts {
		m.ToolCalls[i] = v.Call
		s.Turn[i] = a.turnCall(v, rawArguments(sent, report, i))
	}
	s.Messages = append(history[:len(history):len(history)], m)
	return nil, nil
}

func (a *Agent) turnCall(v middleware.Verdict, raw string) TurnCall {
	c := TurnCall{Call: v.Call, Raw: raw, Changes: v.Changes, Status: Ready}
	if a.tools[v.Call.Name].Approval {
		c.Status, c.Reason = Waiting, reasonApproval
	}
	return c
}

// rawArguments returns what the model wrote in the i-th call: what came out of
// the step may be stripped and mended.
func rawArguments(sent middleware.Message, report *middleware.Report, i int) string {
	if report != nil && report.Final >= 0 && report.Final < len(report.Attempts) {
		if calls := report.Attempts[report.Final].Message.ToolCalls; len(calls) == len(sent.ToolCalls) {
			return calls[i].Arguments
		}
	}
	return sent.ToolCalls[i].Arguments
}
