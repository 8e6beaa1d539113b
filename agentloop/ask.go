package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/repeat"
	"github.com/toolmend/toolmend/internal/validators"
	"github.com/toolmend/toolmend/middleware"
)

// ask makes one model step and opens the turn of its calls.
func (a *Agent) ask(ctx context.Context, s *State) (Step, error) {
	if err := s.void(); err != nil {
		return Step{}, err
	}
	s.Messages = Repair(s.Messages)
	req := a.request(s.Messages)
	req.Sink = s.sink()
	resp, err := a.askModel(repeat.With(ctx, s.Failed), req)
	if resp == nil && err == nil {
		err = middleware.ErrNoResponse
	}
	report := middleware.ReportOf(resp, err)
	record := StepRecord{Attempts: len(report.Attempts), Status: report.Status, Usage: report.Usage()}
	s.Usage = s.Usage.Add(record.Usage)
	if err != nil {
		return Step{}, a.failed(ctx, s, record, err)
	}
	record.Model = resp.Model
	s.Steps = append(s.Steps, record)
	step := Step{Response: resp}
	if why := unreadable(resp); why != "" {
		return step, a.unread(s, resp.Message, why, report, errUnread)
	}
	if len(resp.Message.ToolCalls) == 0 {
		s.Failures, s.Failed = 0, nil
		s.Messages = append(s.Messages, resp.Message.Clone())
		return step, nil
	}
	err = a.open(ctx, s, resp.Message, resp)
	step.Pending = s.Pending()
	return step, err
}

// askModel makes the model call. A Validator in the chain that is not the one of
// the options would let a person's edits pass rules of the chain.
func (a *Agent) askModel(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
	if !a.validated {
		return a.call(ctx, req)
	}
	ctx, seen := validators.Watch(ctx)
	resp, err := a.call(ctx, req)
	if err == nil && seen.Other(a.o.Validator) {
		return nil, ErrValidator
	}
	return resp, err
}

// request is what the model is asked: the template, then the conversation.
func (a *Agent) request(conversation []middleware.Message) *middleware.Request {
	req := a.o.Request.Clone()
	req.Messages = append(req.Messages, conversation...)
	req.Tools = append(req.Tools, a.defs...)
	req.Sink = nil
	return req
}

// sink returns the sink of the next model step; nil if there is none.
func (s *State) sink() middleware.Sink {
	if s.Sink == nil {
		return nil
	}
	step := len(s.Steps) + 1
	return func(e middleware.Event) error {
		e.Step, s.shown = step, step
		return s.Sink(e)
	}
}

// void takes back what the sink saw of a model step that ended in an error and
// is now made again under the same number.
func (s *State) void() error {
	step := len(s.Steps) + 1
	if s.Sink == nil || s.shown != step {
		return nil
	}
	s.shown = 0
	return s.Sink(middleware.Event{Kind: middleware.EventReset, Step: step})
}

// failed handles a model step without a response. A model that did not manage
// a valid message is told so and gets another turn; any other error ends the
// run.
func (a *Agent) failed(ctx context.Context, s *State, record StepRecord, err error) error {
	if ctx.Err() != nil {
		if errors.Is(err, ctx.Err()) {
			return err
		}
		return fmt.Errorf("%w: %w", ended(ctx), err)
	}
	var invalid *argsvalidate.Error
	exhausted := errors.As(err, &invalid) && errors.Is(err, argsvalidate.ErrExhausted)
	answered := exhausted && invalid.Response != nil && len(invalid.Replies) > 0 &&
		len(invalid.Verdicts) == len(invalid.Response.Message.ToolCalls)
	unread, why := unreadIn(err)
	switch {
	case unread != nil:
		record.Model, record.Status = unread.Model, middleware.Invalid
		s.Steps = append(s.Steps, record)
		return a.unread(s, unread.Message, why, middleware.ReportOf(nil, err), err)
	case answered:
		j := a.judgement(invalid.Verdicts, invalid)
		j.cause = err
		record.Model = invalid.Response.Model
		s.Messages = a.failedTurn(s.Messages, invalid.Response.Message, j)
	case errors.Is(err, middleware.ErrInvalidToolCall):
		s.Messages = append(s.Messages, middleware.User(a.refusal(s.Failures)))
	default:
		return err
	}
	record.Status = middleware.Invalid
	s.Steps = append(s.Steps, record)
	return a.countFailure(s, middleware.ReportOf(nil, err), nil, err)
}

// refusal tells the model of a call that its provider refused: there is no
// message of its own to reply to. An answer without a tool is offered after an
// earlier failure only.
func (a *Agent) refusal(failures int) string {
	text := "The tool call in your last answer was refused, because it could not be read, and nothing was executed.\n"
	if names := a.names(); len(names) > 0 {
		text += "Available tools: " + strings.Join(names, ", ") + ".\n"
	}
	text += "Call a tool by its exact name, with one JSON object as arguments"
	if failures > 0 {
		text += ", or answer without a tool"
	}
	return text + "."
}

// countFailure ends the run at the limit, or where the model has made no progress
// for too long, with the reason of the last failure. own are the verdicts of the
// agent, which count if report has none.
func (a *Agent) countFailure(s *State, report middleware.Report, own []middleware.Verdict, cause error) error {
	s.Failures++
	w, seen := repeat.After(s.Failed), false
	for _, at := range report.Attempts {
		switch {
		case errors.Is(at.Err, middleware.ErrInvalidToolCall):
			w.Failed(repeat.Refusal(at.Err))
		case slices.ContainsFunc(at.Verdicts, notOK):
			w.Failed(repeat.Calls(at.Verdicts))
		case notUsed(at):
			w.Failed(repeat.Text(at.Message.Text()))
		default:
			continue
		}
		seen = true
	}
	if !seen {
		w.Failed(repeat.Calls(own))
	}
	s.Failed = w.Failures()
	switch {
	case w.Stale() > repeat.Hopeless && !errors.Is(cause, argsvalidate.ErrRepeated):
		return fmt.Errorf("%w: %d: %w: %w", ErrFailures, s.Failures, cause, argsvalidate.ErrRepeated)
	case w.Stale() > repeat.Hopeless || s.Failures >= a.o.MaxFailures:
		return fmt.Errorf("%w: %d: %w", ErrFailures, s.Failures, cause)
	}
	return nil
}

func texts(ms []middleware.Message) []string {
	all := make([]string, len(ms))
	for i, m := range ms {
		all[i] = m.Text()
	}
	return all
}
