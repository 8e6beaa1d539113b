package argsvalidate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/loopstate"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// validateStep is one request on its way through the middleware. It calls the model
// until all calls are valid or a further attempt must not follow.
type validateStep struct {
	v     *Validator
	next  middleware.ModelCall
	tools requestTools
	req   *middleware.Request    // the caller's request; it is not modified
	first *middleware.Request    // the request of the first attempt: inner layers do not raise, and its sink gets no calls
	asked *middleware.Request    // the request of the next attempt: first, with the failed turns appended
	turns [][]middleware.Message // the failed turns
	tally middleware.Tally

	attempt       int
	last          *middleware.Response // the last response, as sent except for broken ids
	answered      int                  // the number of the attempt that returned last
	checked       validation           // the validation of last
	rejected      bool                 // an attempt of this step brought an invalid call
	refusal       error                // the provider's error, if the last attempt returned one
	kept          *keptBatch           // set with batch.KeepValid
	previous      []middleware.Verdict // the verdicts of the turn before the last one
	repeats       loopstate.Watch      // detects repetitions
	streamed      bool                 // the sink has events that were not reset
	unconstrained bool                 // no further attempt is constrained
	askedForCall  bool                 // the model was asked once more for a call
}

// newStep returns the step for req. The sink of the caller is wrapped twice:
// watched sees every event that the caller gets, and withoutCalls keeps the
// model's tool calls away from it until they are validated.
func newStep(ctx context.Context, v *Validator, next middleware.ModelCall, req *middleware.Request) *validateStep {
	s := &validateStep{v: v, next: next, tools: v.requestTools(req), repeats: loopstate.From(ctx)}
	if req.Sink != nil {
		guarded := *req
		guarded.Sink = s.trackSink(run.Sink("argsvalidate", req.Sink))
		req = &guarded
	}
	s.req, s.first = req, middleware.MarkInvalid(req)
	if req.Sink != nil {
		s.first.Sink = s.withoutCalls(req.Sink)
	}
	s.asked = s.first
	return s
}

// run makes attempts until one of them ends the step. A response without calls
// to the first attempt is returned without a copy and without a report of this
// middleware: it is the usual end of an agent run.
func (s *validateStep) run(ctx context.Context) (*middleware.Response, error) {
	for {
		s.attempt++
		asked := s.asked
		if model := s.v.o.Escalate; model != "" && asked.Model != "" && s.attempt > 1 && s.attempt == s.v.o.MaxAttempts {
			escalated := *asked
			escalated.Model, asked = model, &escalated
		}
		resp, err := s.callModel(ctx, asked)
		done, unusable := true, false
		if err == nil {
			_, unusable = resp.Unusable()
		}
		switch {
		case err != nil && errors.Is(err, middleware.ErrInvalidToolCall) && !errors.Is(err, ErrExhausted): // a stack inside has re-asked for the exhausted ones
			done, resp, err = s.afterRefusal(ctx, err)
		case err != nil:
			err = s.interrupted(ctx, err)
		case unusable && s.kept == nil:
			return s.tally.Finish(s.unusable(ctx, resp))
		case s.attempt == 1 && len(resp.Message.ToolCalls) == 0 && !choicesHaveCalls(resp) && !s.missingCall(resp):
			return resp, nil
		default:
			done, resp, err = s.handle(ctx, resp)
		}
		if done {
			return s.finish(resp, err)
		}
		if err := s.endedError(ctx); err != nil {
			return s.tally.Finish(nil, err)
		}
	}
}

// outcome is what the step does after a response.
type outcome uint8

const (
	outcomeValid      outcome = iota // return the response
	outcomeReask                     // call the model again, with replies to its calls
	outcomeAskForCall                // call the model again, for the call that the request demands
	outcomeEnded                     // return the error of the context
	outcomeExhausted                 // do what OnExhausted selects
	outcomeNoCall                    // return ErrNoCall
	outcomeRuleError                 // return the error of a rule or of the context
)

// handle validates a response. If done is true, the step returns the response and err.
func (s *validateStep) handle(ctx context.Context, resp *middleware.Response) (done bool, _ *middleware.Response, err error) {
	result, reasons := s.classify(ctx, resp, s.validate(ctx, resp))
	switch result {
	case outcomeReask:
		s.reask(ctx, resp.Message)
		return false, nil, nil
	case outcomeAskForCall:
		s.askForCall()
		return false, nil, nil
	}
	s.record(nil)
	var out *middleware.Response
	switch result {
	case outcomeEnded:
		return false, nil, nil
	case outcomeExhausted:
		out, err = s.exhausted(ctx, reasons)
	case outcomeNoCall:
		err = &Error{Response: s.last, reasons: reasons}
	case outcomeRuleError:
		err = s.ruleError(ctx, reasons)
	default:
		out = s.accepted(resp)
	}
	return true, out, err
}

// validate validates the calls of a response. It returns the error of a rule that could
// not decide, or of ctx.
func (s *validateStep) validate(ctx context.Context, resp *middleware.Response) error {
	s.last, s.answered, s.refusal = s.withIDs(resp), s.attempt, nil
	s.checked = s.v.newValidation(s.req, &s.tools, s.last.Message.ToolCalls)
	s.checked.reasked = s.attempt > 1
	err := s.checked.validate(ctx, resp.FinishReason == middleware.FinishLength)
	if err == nil {
		s.checked.kept, s.checked.repeated = s.keptSiblings()
		s.checked.enforceChoice()
		err = s.checked.runAllRules(ctx)
	}
	s.noteIDs(resp.Message)
	return err
}

// classify returns the outcome of a response that was validated with err, and the reasons
// of an outcome that is an error.
func (s *validateStep) classify(ctx context.Context, resp *middleware.Response, err error) (outcome, []error) {
	if choicesHaveCalls(resp) {
		s.tally.Note("not asked again: another choice of the answer holds tool calls, which were not validated")
	}
	if _, unusable := resp.Unusable(); unusable && s.kept != nil {
		return outcomeExhausted, []error{ErrExhausted, ErrInvalid, errUnusable}
	}
	if err == nil && s.missingCall(resp) && !(s.kept != nil && s.kept.complete()) {
		again, raises := s.afterNoCall()
		switch {
		case again:
			return outcomeAskForCall, nil
		case s.kept != nil: // a response without a call must not give up the held batch
			return outcomeExhausted, []error{ErrExhausted, ErrInvalid, ErrNoCall}
		case raises:
			return outcomeNoCall, []error{ErrExhausted, ErrNoCall}
		}
	}
	s.updateBatch()
	if err == nil {
		err = s.recheckKept(ctx)
	}
	switch {
	case err != nil:
		return outcomeRuleError, []error{ErrRule, err}
	case !s.anyInvalid():
		return outcomeValid, nil
	}
	if reasons := s.outOfAttempts(); reasons != nil {
		return outcomeExhausted, reasons
	}
	if ctx.Err() != nil {
		return outcomeEnded, nil
	}
	return outcomeReask, nil
}

// ruleError returns the error for reasons: ErrRule and the error of a rule or of ctx.
func (s *validateStep) ruleError(ctx context.Context, reasons []error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, reasons[1], s.asError())
	}
	e := s.checked.newError(reasons...)
	e.Response = s.last
	return e
}

// accepted returns the response for valid calls.
func (s *validateStep) accepted(resp *middleware.Response) *middleware.Response {
	out := s.output()
	if out.Report.Status = s.status(); out.Report.Status == middleware.NoCalls {
		out.Report.Status = resp.Report.Status // of the text, in a layer inside
	}
	if s.rejected && len(out.Message.ToolCalls) == 0 {
		s.tally.Note("the step began with an invalid tool call and ended in an answer without one")
	}
	return out
}

// withIDs returns resp, or a copy with the role and the ids that it lacks.
func (s *validateStep) withIDs(resp *middleware.Response) *middleware.Response {
	m := history.FixIDs(s.req.Messages, resp.Message)
	m.Role = cmp.Or(m.Role, middleware.RoleAssistant) // some clients leave the role out
	if m.Role == resp.Message.Role && slices.Equal(m.ToolCalls, resp.Message.ToolCalls) {
		return resp
	}
	fixed := *resp
	fixed.Message = m
	return &fixed
}

// afterRefusal re-asks after a tool call that the provider itself refused. Since
// there is no message of the model to reply to, a user message says what was
// wrong.
func (s *validateStep) afterRefusal(ctx context.Context, err error) (done bool, _ *middleware.Response, _ error) {
	reasons := []error{ErrExhausted, ErrInvalid, err}
	if s.isRepeating(loopstate.Refusal(err), s.v.o.MaxAttempts) {
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
	reply := middleware.User(refusedText(err, s.tools.available(), s.attempt))
	s.tally.SetVerdicts(nil, []middleware.Message{reply})
	s.extend([]middleware.Message{reply})
	return false, nil, nil
}

// outOfAttempts returns the reasons against a further attempt, or nil.
func (s *validateStep) outOfAttempts() []error {
	limit := 0
	for v := range s.invalid() {
		limit = max(limit, s.v.o.forTool(v.Call.Name).MaxAttempts)
	}
	if s.isRepeating(loopstate.Calls(s.outputVerdicts(), s.outputValidation().docs...), limit) {
		return []error{ErrExhausted, ErrInvalid, ErrRepeated}
	}
	if s.attempt >= limit {
		return []error{ErrExhausted, ErrInvalid}
	}
	for _, c := range s.checked.calls {
		if c.Kind == middleware.KindBuiltin {
			s.tally.Note(fmt.Sprintf("not asked again: the turn holds a call that is answered in a form of its own (%s)", text.Label(c.Name)))
			return []error{ErrExhausted, ErrInvalid}
		}
	}
	if choicesHaveCalls(s.last) || s.last.Report.Status == middleware.Invalid { // a stack inside has re-asked already
		return []error{ErrExhausted, ErrInvalid}
	}
	return nil
}

// isRepeating records the failure of this attempt. It reports whether the step
// ends before the limit: after the third failure in a row that repeats earlier
// ones. Failures of earlier steps of an agent loop count.
func (s *validateStep) isRepeating(what string, limit int) bool {
	s.repeats.Failed(what)
	why := s.repeats.Ended(s.attempt, "invalid calls")
	if why == "" || s.attempt >= limit {
		return false
	}
	s.tally.Note(why)
	return true
}

// exhausted does what OnExhausted says; the strictest setting of the tools
// counts.
func (s *validateStep) exhausted(ctx context.Context, reasons []error) (*middleware.Response, error) {
	drop, raise := false, false
	for v := range s.invalid() {
		p := s.v.o.forTool(v.Call.Name).OnExhausted
		drop = drop || p == middleware.DropInvalid
		raise = raise || p != middleware.DropInvalid && p != middleware.Pass
	}
	out := s.output()
	if drop && !raise {
		var valid []middleware.ToolCall
		var dropped []string
		for i, c := range out.Message.ToolCalls {
			if s.validCall(i) {
				valid = append(valid, c)
			} else {
				dropped = append(dropped, text.Label(c.ID))
			}
		}
		if len(valid) > 0 {
			s.tally.Note("invalid calls were dropped: " + listWithMore(dropped[:min(len(dropped), maxNamed)], len(dropped)))
			out.Message.ToolCalls = valid
			out.Report.Status = s.statusOf(slices.DeleteFunc(slices.Clone(s.outputVerdicts()), func(v middleware.Verdict) bool { return !v.OK() }))
			return out, nil
		}
		raise = true
	}
	if raise {
		whole := s.outputValidation()
		e := whole.newError(reasons...)
		e.Response, e.attempts = s.errorResponse(), s.attempt
		e.Replies = s.v.replies(ctx, whole, s.attempt, s.repeats.Same() > 1)
		s.tally.SetStatus(middleware.StatusOf(whole.verdicts)) // under KeepValid the last attempt may hold fewer calls, or none
		s.noteAll(whole)                                       // the replies may have added notes
		return nil, e
	}
	out.Report.Status = middleware.Invalid
	return out, nil
}

// errUnusable is the reason why a message without calls is invalid.
var errUnusable = errors.New("argsvalidate: the message holds neither a call that can be read nor an answer")

// unusable does what OnExhausted says, for a message in whose text an inner layer
// has found no call that it could use. That layer has already re-asked the model.
// There are no calls to drop.
func (s *validateStep) unusable(ctx context.Context, resp *middleware.Response) (*middleware.Response, error) {
	if s.v.o.OnExhausted == middleware.Pass {
		return resp, nil
	}
	return nil, &Error{Response: resp, reasons: []error{ErrExhausted, ErrInvalid, errUnusable}}
}

// endedError returns the error of a context that is done, together with the issues
// of the last response. It returns nil while ctx is not done.
func (s *validateStep) endedError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("argsvalidate: ended before attempt %d: %w: %w", s.attempt+1, run.ContextError(ctx), s.asError())
}

// interrupted adds the issues of the last response to the error of a model call that
// the context interrupted.
func (s *validateStep) interrupted(ctx context.Context, err error) error {
	if s.attempt == 1 || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, err, s.asError())
}

// asError returns the reasons why the last response is invalid, as an error.
func (s *validateStep) asError() *Error {
	switch {
	case s.refusal != nil && s.kept == nil:
		return &Error{Response: s.last, reasons: []error{ErrInvalid, s.refusal}}
	case s.refusal != nil:
		e := s.outputValidation().newError(ErrInvalid, s.refusal)
		e.Response = s.errorResponse()
		return e
	}
	e := s.outputValidation().newError(ErrInvalid)
	e.Response = s.errorResponse()
	return e
}

// output returns a copy of the response, with its valid calls as validated
// and its other calls as sent.
func (s *validateStep) output() *middleware.Response {
	out, message := *s.last, withValidCalls(s.last.Message, s.checked.verdicts)
	if s.kept != nil {
		out, message = *s.kept.resp, s.kept.message
		out.FinishReason, out.Choices = s.last.FinishReason, s.last.Choices
		if len(s.last.Message.ToolCalls) == 0 {
			out.FinishReason = middleware.FinishToolCalls
		}
	}
	out.Message = message
	return &out
}

// errorResponse returns the response for errors: the last one as sent, or the held
// batch with its corrections.
func (s *validateStep) errorResponse() *middleware.Response {
	if s.kept == nil {
		return s.last
	}
	return s.output()
}

// outputValidation returns the validation of the message that envelope returns.
func (s *validateStep) outputValidation() *validation {
	if s.kept == nil {
		return &s.checked
	}
	j := s.checked
	j.calls, j.excess, j.notes = s.kept.message.ToolCalls, nil, nil
	j.verdicts, j.plans, j.docs = s.kept.verdicts, s.kept.plans, nil
	return &j
}

// withValidCalls returns m with the valid calls as they would run.
func withValidCalls(m middleware.Message, verdicts []middleware.Verdict) middleware.Message {
	copied := false
	for i := range verdicts {
		if v := &verdicts[i]; v.OK() && v.Call != m.ToolCalls[i] {
			if !copied {
				m, copied = m.Clone(), true
			}
			m.ToolCalls[i] = v.Call
		}
	}
	return m
}

// outputVerdicts are those on the calls of the message that envelope returns.
func (s *validateStep) outputVerdicts() []middleware.Verdict {
	if s.kept != nil {
		return s.kept.verdicts
	}
	return s.checked.verdicts
}

// status is that of the message that envelope returns.
func (s *validateStep) status() middleware.Status { return s.statusOf(s.outputVerdicts()) }

// statusOf returns the status for verdicts. Calls in further choices are not
// validated, so a response that has some is at best unchecked.
func (s *validateStep) statusOf(verdicts []middleware.Verdict) middleware.Status {
	status := middleware.StatusOf(verdicts)
	if status != middleware.Invalid && choicesHaveCalls(s.last) {
		return middleware.Unchecked
	}
	return status
}

// validCall reports whether the i-th call of the message that envelope returns is
// valid.
func (s *validateStep) validCall(i int) bool {
	verdicts := s.outputVerdicts()
	return i < len(verdicts) && verdicts[i].OK()
}

// invalid yields the verdicts on the calls that must still be corrected.
func (s *validateStep) invalid() iter.Seq[middleware.Verdict] {
	verdicts := s.outputVerdicts()
	return func(yield func(middleware.Verdict) bool) {
		for i := range verdicts {
			if !verdicts[i].OK() && !yield(verdicts[i]) {
				return
			}
		}
	}
}

// anyInvalid reports whether a call must still be corrected.
func (s *validateStep) anyInvalid() bool {
	for range s.invalid() {
		return true
	}
	return false
}

// choicesHaveCalls reports whether another choice of the response has tool calls.
// Such a response cannot be re-asked, and those calls are not validated.
func choicesHaveCalls(resp *middleware.Response) bool {
	return slices.ContainsFunc(resp.Choices, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 })
}

// record adds the verdicts and the notes to the report.
func (s *validateStep) record(replies []middleware.Message) {
	s.tally.SetVerdicts(s.checked.verdicts, replies)
	s.noteAll(&s.checked)
	s.previous = s.checked.verdicts
}

// noteAll adds the notes of j to the report, and the failures of the last
// validation. It clears the failures, because it may run again for one attempt.
func (s *validateStep) noteAll(j *validation) {
	for _, n := range j.notes {
		s.tally.Note(n)
	}
	for _, err := range s.checked.failures {
		s.tally.Fail(err)
	}
	s.checked.failures = nil
}

// noteIDs records the ids that were replaced.
func (s *validateStep) noteIDs(sent middleware.Message) {
	for i, c := range sent.ToolCalls[:len(s.checked.calls)] {
		if id := s.checked.calls[i].ID; id != c.ID {
			v := &s.checked.verdicts[i]
			v.Changes = append(v.Changes, middleware.Change{By: "id", Before: c.ID, After: id})
		}
	}
}

// noteLost adds a note if the model corrected its calls and left out valid
// siblings that it was asked to send again.
func (s *validateStep) noteLost() {
	for _, c := range batch.Lost(s.previous, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %s in attempt %d did not come back with the corrected ones", text.Label(c.Name), s.attempt-1))
	}
}

// withoutCalls holds back tool calls from sink, because they are not validated
// yet. The step sends the valid ones later. EventReset is dropped if no event
// was sent before it.
func (s *validateStep) withoutCalls(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		if e.Kind == middleware.EventToolCall || e.Kind == middleware.EventReset && !s.streamed {
			return nil
		}
		return sink(e)
	}
}

// trackSink records whether sink has events that were not reset.
func (s *validateStep) trackSink(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		s.streamed = e.Kind != middleware.EventReset
		return sink(e)
	}
}

// finish sends the valid calls to the sink and completes the report.
func (s *validateStep) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.req.Sink != nil {
		err = s.sendCalls(resp)
	}
	return s.tally.Finish(resp, err)
}

// sendCalls sends the valid calls of the returned response to the sink. If its
// message is not that of the last attempt, EventReset and its text come first.
func (s *validateStep) sendCalls(resp *middleware.Response) error {
	var events []middleware.Event
	if returned := s.returnedAttempt(); returned < s.attempt {
		if s.streamed {
			events = append(events, middleware.Event{Kind: middleware.EventReset})
		}
		for _, p := range resp.Message.Parts {
			switch {
			case p.Kind == middleware.PartText && p.Text != "":
				events = append(events, middleware.Event{Kind: middleware.EventText, Text: p.Text})
			case p.Kind == middleware.PartReasoning && p.Text != "":
				events = append(events, middleware.Event{Kind: middleware.EventReasoning, Text: p.Text})
			}
		}
	}
	for i, c := range resp.Message.ToolCalls {
		if resp.Report.Status != middleware.Invalid || s.validCall(i) {
			events = append(events, middleware.Event{Kind: middleware.EventToolCall, Call: &c})
		}
	}
	for _, e := range events {
		if err := s.req.Sink(e); err != nil {
			return err
		}
	}
	return nil
}

// returnedAttempt is the number of the attempt whose message is returned.
func (s *validateStep) returnedAttempt() int {
	if s.kept != nil {
		return s.kept.attempt
	}
	return s.answered
}
