package agentloop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/argsvalidate"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/middleware"
)

// ask makes one model step and opens the turn of its calls.
func (a *Agent) ask(ctx context.Context, s *State) (Step, error) {
	if err := s.void(); err != nil {
		return Step{}, err
	}
	s.repair()
	req := a.request(s, s.Messages)
	req.Sink = s.sink()
	inner, chain := loopstate.With(ctx, s.Failed)
	resp, err := a.call(inner, req)
	if err == nil && a.validated && chain.HasOtherValidator(a.o.Validator) {
		resp, err = nil, ErrValidator // a person's edits would bypass the rules of the chain
	}
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
	if why, unusable := resp.Unusable(); unusable {
		return step, a.unread(s, resp.Message, why, report, errUnread)
	}
	if len(resp.Message.ToolCalls) == 0 {
		s.Failures, s.Failed = 0, nil
		s.Messages = append(s.Messages, resp.Message.Clone())
		return step, nil
	}
	if chain.HasOtherTools(req.Tools) { // a middleware has replaced the tools: the verdicts are not on those that would run
		other := *resp
		other.Report.Final = -1
		resp = &other
	}
	err = a.open(ctx, s, resp.Message, resp)
	step.Pending = s.Pending()
	return step, err
}

// repair repairs the history. If s is live it looks only at what is new in it.
func (s *State) repair() {
	from := 0
	if s.live != nil {
		from = s.live.sound
	}
	if !isPaired(s.Messages[from:]) {
		s.Messages = CloseCalls(s.Messages)
		s.changed()
	}
	if s.live != nil {
		s.live.sound = len(s.Messages)
	}
}

// request returns the request for a conversation, which is the beginning of the
// messages of s or all of them: the template, then the messages. The requests of a
// live State share an array that only grows, which is not the array of the State.
func (a *Agent) request(s *State, conversation []middleware.Message) *middleware.Request {
	req := a.o.Request.Clone()
	if l := s.live; l == nil {
		req.Messages = append(req.Messages, conversation...)
	} else {
		template := len(req.Messages)
		if l.sent == nil {
			l.sent = req.Messages
		}
		if n := len(l.sent) - template; n < len(conversation) {
			l.sent = append(l.sent, conversation[n:]...)
		}
		n := template + len(conversation)
		req.Messages = l.sent[:n:n]
	}
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

// void resets what the sink saw of a model step that ended in an error and is now
// made again under the same number.
func (s *State) void() error {
	step := len(s.Steps) + 1
	if s.Sink == nil || s.shown != step {
		return nil
	}
	s.shown = 0
	return s.Sink(middleware.Event{Kind: middleware.EventReset, Step: step})
}

// failed handles a model step without a response. If the model sent no valid
// message, it gets a reply that says so, and another turn. Any other error ends the run.
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
		j := a.explain(invalid.Verdicts, invalid)
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

// refusal is what the model is sent after its provider refused a call: there is no
// assistant message to reply to. It offers an answer without a tool only after an
// earlier failure.
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

// countFailure ends the run at the limit, or if the model has made no progress for
// too long, with the reason of the last failure. own are the verdicts of the agent,
// which count if report has none.
func (a *Agent) countFailure(s *State, report middleware.Report, own []middleware.Verdict, cause error) error {
	s.Failures++
	w, seen := loopstate.After(s.Failed), false
	for _, at := range report.Attempts {
		switch {
		case errors.Is(at.Err, middleware.ErrInvalidToolCall):
			w.Failed(loopstate.Refusal(at.Err))
		case slices.ContainsFunc(at.Verdicts, notOK):
			w.Failed(loopstate.Calls(at.Verdicts))
		case notUsed(at):
			w.Failed(loopstate.Text(at.Message.Text()))
		default:
			continue
		}
		seen = true
	}
	if !seen {
		w.Failed(loopstate.Calls(own))
	}
	s.Failed = w.Failures()
	switch {
	case w.Stale() > loopstate.Hopeless && !errors.Is(cause, argsvalidate.ErrRepeated):
		return fmt.Errorf("%w: %d: %w: %w", ErrFailures, s.Failures, cause, argsvalidate.ErrRepeated)
	case w.Stale() > loopstate.Hopeless || s.Failures >= a.o.MaxFailures:
		return fmt.Errorf("%w: %d: %w", ErrFailures, s.Failures, cause)
	}
	return nil
}

var errUnread = errors.New("it holds neither a tool call that can be read nor an answer")

// unreadIn returns the response in err whose text could not be used, and why;
// nil if err is another error.
func unreadIn(err error) (resp *middleware.Response, why string) {
	var unread interface{ UnreadResponse() *middleware.Response }
	var invalid *argsvalidate.Error
	switch {
	case errors.As(err, &unread):
		resp = unread.UnreadResponse()
	case errors.As(err, &invalid) && errors.Is(err, argsvalidate.ErrExhausted) && invalid.Response != nil:
		if why, unusable := invalid.Response.Unusable(); unusable {
			return invalid.Response, why
		}
	}
	attempts := middleware.ReportOf(nil, err).Attempts
	if n := len(attempts); resp != nil && n > 0 && len(attempts[n-1].Issues) > 0 {
		return resp, attempts[n-1].Issues[0].Message
	}
	return resp, errUnread.Error()
}

// unread makes a failed turn of a message that is neither a call nor an answer. Such a
// message never becomes the answer of the run.
func (a *Agent) unread(s *State, m middleware.Message, why string, report middleware.Report, cause error) error {
	told := middleware.User("Your last message could not be used: " + why + ". Nothing was executed.")
	s.Messages = append(s.Messages[:len(s.Messages):len(s.Messages)], history.Text(strings.TrimSpace(m.Text())), told)
	return a.countFailure(s, report, nil, cause)
}

// notUsed reports whether a layer such as textcall could not use the text of an
// attempt.
func notUsed(at middleware.Attempt) bool { return len(at.Issues) > 0 && !at.Answer }
