package argsvalidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/repeat"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/middleware"
)

// step is one request on its way through the middleware. It calls the model
// until all calls are valid or a further attempt must not follow.
type step struct {
	v     *Validator
	next  middleware.ModelCall
	known toolbox
	req   *middleware.Request    // the caller's request; it is not modified
	asked *middleware.Request    // with the failed turns appended
	turns [][]middleware.Message // the failed turns
	tally middleware.Tally

	attempt  int
	last     *middleware.Response // the last response, as sent except for broken ids
	answered int                  // the number of the attempt that returned last
	checked  validation           // the validation of last
	rejected bool                 // an attempt of this step brought an invalid call
	refusal  error                // the provider's error, if the last attempt returned one
	held     *heldBatch           // set with batch.KeepValid
	failed   []middleware.Verdict // the verdicts of the turn before the last one
	failures repeat.Watch         // detects repetitions
	shown    bool                 // the sink has events that were not reset
	free     bool                 // no further attempt is constrained
	demanded bool                 // the model was asked once more for a call
}

// newStep returns the step for req. The sink of the caller is wrapped twice:
// watched sees every event that the caller gets, and withoutCalls keeps the
// model's tool calls away from it until they are validated.
func newStep(ctx context.Context, v *Validator, next middleware.ModelCall, req *middleware.Request) *step {
	s := &step{v: v, next: next, known: v.newToolbox(req), failures: repeat.From(ctx)}
	if req.Sink != nil {
		guarded := *req
		guarded.Sink = s.watched(run.Sink("argsvalidate", req.Sink))
		req = &guarded
	}
	s.req, s.asked = req, req
	if req.Sink != nil {
		quiet := *req
		quiet.Sink = s.withoutCalls(req.Sink)
		s.asked = &quiet
	}
	return s
}

// run makes attempts until one of them ends the step. A response without calls
// to the first attempt is returned without a copy and without a report of this
// middleware: it is the usual end of an agent run.
func (s *step) run(ctx context.Context) (*middleware.Response, error) {
	for {
		s.attempt++
		asked := s.asked
		if model := s.v.o.Escalate; model != "" && asked.Model != "" && s.attempt > 1 && s.attempt == s.v.o.MaxAttempts {
			escalated := *asked
			escalated.Model, asked = model, &escalated
		}
		resp, err := s.call(ctx, middleware.MarkInvalid(asked))
		done, unusable := true, false
		if err == nil {
			_, unusable = resp.Unusable()
		}
		switch {
		case err != nil && errors.Is(err, middleware.ErrInvalidToolCall) && !errors.Is(err, ErrExhausted): // a stack inside has re-asked for the exhausted ones
			done, resp, err = s.refused(ctx, err)
		case err != nil:
			err = s.cut(ctx, err)
		case unusable && s.held == nil:
			return s.tally.Finish(s.unusable(ctx, resp))
		case s.attempt == 1 && len(resp.Message.ToolCalls) == 0 && !othersCall(resp) && !s.lacksCall(resp):
			return resp, nil
		default:
			done, resp, err = s.handle(ctx, resp)
		}
		if done {
			return s.finish(resp, err)
		}
		if err := s.ended(ctx); err != nil {
			return s.tally.Finish(nil, err)
		}
	}
}

// verdicts are those on the calls of the message that envelope returns.
func (s *step) verdicts() []middleware.Verdict {
	if s.held != nil {
		return s.held.verdicts
	}
	return s.checked.verdicts
}

// status is that of the message that envelope returns.
func (s *step) status() middleware.Status { return s.statusOf(s.verdicts()) }

// statusOf returns the status for verdicts. Calls in further choices are not
// validated, so a response that has some is at best unchecked.
func (s *step) statusOf(verdicts []middleware.Verdict) middleware.Status {
	status := middleware.StatusOf(verdicts)
	if status != middleware.Invalid && othersCall(s.last) {
		return middleware.Unchecked
	}
	return status
}

// valid reports whether the i-th call of the message that envelope returns is
// valid.
func (s *step) valid(i int) bool {
	verdicts := s.verdicts()
	return i < len(verdicts) && verdicts[i].OK()
}

// ended returns the error of a context that is done, together with the issues
// of the last response. It returns nil while ctx is not done.
func (s *step) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("argsvalidate: ended before attempt %d: %w: %w", s.attempt+1, run.ContextError(ctx), s.wrong())
}

// cut adds the issues of the last response to the error of a model call that
// the context interrupted.
func (s *step) cut(ctx context.Context, err error) error {
	if s.attempt == 1 || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, err, s.wrong())
}

// wrong returns the reasons why the last response is invalid, as an error.
func (s *step) wrong() *Error {
	switch {
	case s.refusal != nil && s.held == nil:
		return &Error{Response: s.last, reasons: []error{ErrInvalid, s.refusal}}
	case s.refusal != nil:
		e := s.whole().failure(ErrInvalid, s.refusal)
		e.Response = s.answer()
		return e
	}
	e := s.whole().failure(ErrInvalid)
	e.Response = s.answer()
	return e
}

// handle validates a response. If done is true, resp and err are the outcome.
func (s *step) handle(ctx context.Context, resp *middleware.Response) (done bool, _ *middleware.Response, _ error) {
	s.last, s.answered, s.refusal = s.sound(resp), s.attempt, nil
	s.checked = s.v.newValidation(s.req, &s.known, s.last.Message.ToolCalls)
	s.checked.again = s.attempt > 1
	ruleErr := s.checked.validate(ctx, resp.FinishReason == middleware.FinishLength)
	if ruleErr == nil {
		s.checked.held, s.checked.repeated = s.heldSiblings()
		s.checked.obeyChoice()
		ruleErr = s.checked.rules(ctx)
	}
	s.noteIDs(resp.Message)
	if othersCall(resp) {
		s.tally.Note("not asked again: another choice of the answer holds tool calls, which were not validated")
	}
	if _, unusable := resp.Unusable(); unusable && s.held != nil {
		return s.stillHeld(ctx, errUnusable)
	}
	if ruleErr == nil && s.lacksCall(resp) && !(s.held != nil && s.held.complete()) {
		if done, err := s.demand(ctx); !done || err != nil {
			return done, nil, err
		}
		if s.held != nil {
			return s.stillHeld(ctx, ErrNoCall)
		}
	}
	s.hold()
	if ruleErr == nil {
		ruleErr = s.recheck(ctx)
	}
	var reasons []error
	if ruleErr == nil && s.anyOpen() {
		reasons = s.outOfAttempts()
		if reasons == nil && ctx.Err() == nil {
			s.rejected = s.rejected || s.modelsFault()
			s.ask(ctx, resp.Message)
			return false, nil, nil
		}
	}
	s.record(nil)
	if ruleErr == nil && reasons == nil && s.anyOpen() {
		return false, nil, nil // run ends the step with the error of ctx
	}
	switch {
	case ruleErr != nil && ctx.Err() != nil:
		return true, nil, fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, ruleErr, s.wrong())
	case ruleErr != nil:
		e := s.checked.failure(ErrRule, ruleErr)
		e.Response = s.last
		return true, nil, e
	case reasons != nil:
		out, err := s.exhausted(ctx, reasons)
		return true, out, err
	}
	out := s.envelope()
	if out.Report.Status = s.status(); out.Report.Status == middleware.NoCalls {
		out.Report.Status = resp.Report.Status // of the text, in a layer inside
	}
	if s.rejected && len(out.Message.ToolCalls) == 0 {
		s.tally.Note("the step began with an invalid tool call and ended in an answer without one")
	}
	return true, out, nil
}

// sound returns resp, or a copy with the role and the ids that it lacks.
func (s *step) sound(resp *middleware.Response) *middleware.Response {
	m := history.FixIDs(s.req.Messages, resp.Message)
	m.Role = cmp.Or(m.Role, middleware.RoleAssistant) // some clients leave the role out
	if m.Role == resp.Message.Role && slices.Equal(m.ToolCalls, resp.Message.ToolCalls) {
		return resp
	}
	fixed := *resp
	fixed.Message = m
	return &fixed
}

// record adds the verdicts and the notes to the report.
func (s *step) record(replies []middleware.Message) {
	s.tally.SetVerdicts(s.checked.verdicts, replies)
	s.noteAll(&s.checked)
	s.failed = s.checked.verdicts
}

// noteAll adds the notes of j to the report, and the failures of the last
// validation. It clears the failures, because it may run again for one attempt.
func (s *step) noteAll(j *validation) {
	for _, n := range j.notes {
		s.tally.Note(n)
	}
	for _, err := range s.checked.failures {
		s.tally.Fail(err)
	}
	s.checked.failures = nil
}

// refused re-asks after a tool call that the provider itself refused. Since
// there is no message of the model to reply to, a user message says what was
// wrong.
func (s *step) refused(ctx context.Context, err error) (done bool, _ *middleware.Response, _ error) {
	reasons := []error{ErrExhausted, ErrInvalid, err}
	if s.repeated(repeat.Refusal(err), s.v.o.MaxAttempts) {
		reasons = append(reasons, ErrRepeated)
	}
	if s.attempt >= s.v.o.MaxAttempts || len(reasons) > 3 {
		if s.last == nil {
			return true, nil, &Error{Response: s.last, reasons: reasons, attempts: s.attempt}
		}
		out, err := s.exhausted(ctx, reasons)
		return true, out, err
	}
	s.refusal, s.rejected = err, true
	reply := middleware.User(refusedText(err, s.known.available(), s.attempt))
	s.tally.SetVerdicts(nil, []middleware.Message{reply})
	s.extend([]middleware.Message{reply})
	return false, nil, nil
}

// turn returns the messages that the next request appends: the failed message
// and the replies to its calls. Replaced ids are numbered across the failed
// turns, so that they stay unique.
func (s *step) turn(ctx context.Context, sent middleware.Message) []middleware.Message {
	n := len(s.checked.calls)
	echo := s.last.Message
	sent.ToolCalls, echo.ToolCalls = sent.ToolCalls[:n], echo.ToolCalls[:n]
	echo = echo.Clone()
	for i, c := range history.FixIDs(s.asked.Messages, sent).ToolCalls {
		if sent.ToolCalls[i].ID != echo.ToolCalls[i].ID {
			echo.ToolCalls[i].ID = c.ID
		}
	}
	tools := append(s.v.o.Tools[:len(s.v.o.Tools):len(s.v.o.Tools)], s.req.Tools...)
	turn := batch.Turn(echo, tools, s.checked.verdicts, s.v.o.Batch, s.v.render(ctx, &s.checked, s.attempt, s.failures.Same() > 1, false))
	if left := s.held.left(); left != "" {
		last := &turn[len(turn)-1]
		last.Parts[0].Text += "\n\nStill to be corrected: " + left + "."
	}
	return turn
}

// envelope returns a copy of the response, with its valid calls as validated
// and its other calls as sent.
func (s *step) envelope() *middleware.Response {
	out, message := *s.last, written(s.last.Message, s.checked.verdicts)
	if s.held != nil {
		out, message = *s.held.resp, s.held.message
		out.FinishReason, out.Choices = s.last.FinishReason, s.last.Choices
		if len(s.last.Message.ToolCalls) == 0 {
			out.FinishReason = middleware.FinishToolCalls
		}
	}
	out.Message = message
	return &out
}

// answer returns the response for errors: the last one as sent, or the held
// batch with its corrections.
func (s *step) answer() *middleware.Response {
	if s.held == nil {
		return s.last
	}
	return s.envelope()
}
