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
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// validateStep handles one request. It calls the model until all calls are valid or
// the attempts are exhausted.
type validateStep struct {
	v     *Validator
	next  middleware.ModelCall
	tools requestTools
	req   *middleware.Request    // the caller's request; it is not modified
	first *middleware.Request    // the request of the first attempt: inner layers do not raise, and its sink gets no calls
	asked *middleware.Request    // the request of the next attempt: first with the failed turns
	turns [][]middleware.Message // the failed turns
	tally middleware.Tally

	attempt       int
	last          *middleware.Response // the last response, as sent except for broken ids
	answered      int                  // the number of the attempt that returned last
	checked       validation           // the validation of last
	rejected      bool                 // the model has sent an invalid call in this step
	refusal       error                // the provider's error, if it refused the last attempt's call
	unread        *middleware.Response // the last answer whose call the provider could not read
	batch         batch.Policy         // Options.Batch, or ReissueAll if a message may have one call
	kept          *keptBatch           // with batch.KeepValid, the valid calls of earlier attempts
	previous      []middleware.Verdict // the verdicts of the attempt before
	repeats       loopstate.Watch      // detects repeated failures
	streamed      bool                 // the caller's sink has events that were not reset
	unconstrained bool                 // no further attempt is constrained
	fault         fault                // of last
	faultReasked  bool                 // the step has re-asked because of a fault
	tokensRaised  bool                 // the length limit was raised
	askedForOne   bool                 // the step has re-asked for one call instead of several
}

// newStep returns the step for req. It wraps the caller's sink twice: trackSink
// tracks the events that the caller gets, and withoutCalls drops the model's tool
// calls, which are not validated yet.
func newStep(ctx context.Context, v *Validator, next middleware.ModelCall, req *middleware.Request) *validateStep {
	s := &validateStep{v: v, next: next, tools: requestTools{v: v, req: req}, batch: v.o.Batch, repeats: loopstate.From(ctx)}
	if req.NoParallelCalls {
		s.batch = batch.ReissueAll
	}
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

// run makes attempts until one of them ends the step. If the first response has no calls and
// no fault, run returns it without a copy and without a report: agent runs usually end so.
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
		case err != nil && errors.Is(err, middleware.ErrInvalidToolCall) && !errors.Is(err, ErrExhausted): // with ErrExhausted, an inner stack has re-asked
			done, resp, err = s.afterRefusal(ctx, err)
		case err != nil:
			resp, err = s.afterFailure(ctx, err)
		case unusable && s.kept == nil:
			return s.tally.Finish(s.unusable(resp))
		case s.attempt == 1 && len(resp.Message.ToolCalls) == 0 && !choicesHaveCalls(resp) && s.faultOf(resp) == noFault:
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
	outcomeReaskFault                // call the model again, because of the fault of a message without calls
	outcomeEnded                     // return the error of the context
	outcomeExhausted                 // do what OnExhausted selects
	outcomeRuleError                 // return the error of a rule or of the context
)

// handle validates a response. If done is true, the step returns out and err.
func (s *validateStep) handle(ctx context.Context, resp *middleware.Response) (done bool, out *middleware.Response, err error) {
	result, reasons := s.classify(ctx, resp, s.validate(ctx, resp))
	switch result {
	case outcomeReask:
		s.reask(ctx, resp.Message)
		return false, nil, nil
	case outcomeReaskFault:
		s.reaskFault()
		return false, nil, nil
	}
	if s.record(nil); result == outcomeExhausted && s.fault != noFault && s.kept == nil {
		s.setFault(nil)
	}
	switch result {
	case outcomeEnded:
		return false, nil, nil
	case outcomeExhausted:
		out, err = s.exhausted(ctx, reasons)
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
	s.last, s.answered, s.refusal, s.fault = s.withIDs(resp), s.attempt, nil, s.faultOf(resp)
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

// classify returns the outcome of a response. err is the result of validate. If the
// outcome is an error, reasons are its causes.
func (s *validateStep) classify(ctx context.Context, resp *middleware.Response, err error) (_ outcome, reasons []error) {
	if choicesHaveCalls(resp) {
		s.tally.Note("not asked again: another choice of the answer holds tool calls, which were not validated")
	}
	if _, unusable := resp.Unusable(); unusable && s.kept != nil {
		return outcomeExhausted, []error{ErrExhausted, ErrInvalid, errUnusable}
	}
	switch {
	case s.fault == turnComplete:
		s.noteFault()
	case err == nil && s.fault != noFault && !(s.kept != nil && s.kept.complete()):
		return s.afterFault()
	}
	s.updateBatch()
	if err == nil {
		err = s.recheckKept(ctx)
	}
	switch {
	case err != nil:
		return outcomeRuleError, []error{ErrRule, err}
	case !anyInvalid(s.outputVerdicts()):
		return outcomeValid, nil
	}
	if reasons = s.outOfAttempts(ctx); reasons != nil {
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
	if out.Report.Status = s.statusOf(s.outputVerdicts()); out.Report.Status == middleware.NoCalls {
		out.Report.Status = resp.Report.Status // of the text, in a layer inside
	}
	if s.rejected && len(out.Message.ToolCalls) == 0 {
		s.tally.Note("the step began with an invalid tool call and ended in an answer without one")
	}
	return out
}

// withIDs returns resp, or a copy in which missing ids and a missing role are set.
func (s *validateStep) withIDs(resp *middleware.Response) *middleware.Response {
	m := history.FixAnswer(s.req, resp.Message)
	m.Role = cmp.Or(m.Role, middleware.RoleAssistant) // some clients leave the role out
	if m.Role == resp.Message.Role && slices.Equal(m.ToolCalls, resp.Message.ToolCalls) {
		return resp
	}
	fixed := *resp
	fixed.Message = m
	return &fixed
}

// afterRefusal re-asks after the provider has refused a tool call of its model. There
// is no message of the model to reply to, so a user message describes the mistake. If the
// request offers no tools, the answer is returned as it is.
func (s *validateStep) afterRefusal(ctx context.Context, err error) (done bool, _ *middleware.Response, _ error) {
	reasons := []error{ErrExhausted, ErrInvalid, err}
	if s.isRepeating(loopstate.Refusal(err), s.v.o.MaxAttempts) {
		reasons = append(reasons, ErrRepeated)
	}
	if e, ok := errors.AsType[*middleware.ModelError](err); ok && e.Response != nil && s.last == nil {
		s.unread, s.answered = e.Response, s.attempt
		if len(s.req.Tools) == 0 { // there is no call to ask for
			plain := *s.unread
			plain.Report = middleware.Report{}
			return true, &plain, nil
		}
	}
	unread := issue(codeUnread, "", "the provider could not read the tool call")
	if s.attempt >= s.v.o.MaxAttempts || len(reasons) > 3 {
		s.tally.SetIssues(unread, nil, nil)
		if s.last == nil {
			if s.passesUnread() {
				return true, s.unread, nil
			}
			return true, nil, &Error{Response: s.last, reasons: reasons, attempts: s.attempt}
		}
		out, err := s.exhausted(ctx, reasons)
		return true, out, err
	}
	s.refusal, s.rejected = err, true
	reply := middleware.User(refusedText(err, s.tools.available(), s.attempt))
	s.tally.SetIssues(unread, nil, []middleware.Message{reply})
	s.extend([]middleware.Message{reply})
	return false, nil, nil
}

// passesUnread reports whether the step returns an answer whose call the provider could not
// read, because it has no better one. There is no call to drop in it.
func (s *validateStep) passesUnread() bool {
	return s.unread != nil && s.last == nil && (s.v.o.OnExhausted == middleware.Pass || s.v.o.OnExhausted == middleware.DropInvalid)
}

// outOfAttempts returns why no further attempt may follow, or nil.
func (s *validateStep) outOfAttempts(ctx context.Context) []error {
	limit, several, others := 0, false, false
	for v := range s.invalid() {
		isFurther := firstCode(v.Issues) == codeParallel
		several, others = several || isFurther, others || !isFurther
		limit = max(limit, s.v.o.forTool(v.Call.Name).MaxAttempts)
	}
	if s.askedForOne && !others { // many servers ignore the limit of one call
		limit = s.attempt
	}
	s.askedForOne = s.askedForOne || several
	if s.isRepeating(loopstate.Calls(s.outputVerdicts(), s.outputValidation().docs...), limit) {
		return []error{ErrExhausted, ErrInvalid, ErrRepeated}
	}
	if s.attempt >= limit {
		return []error{ErrExhausted, ErrInvalid}
	}
	size := s.v.o.Limits.scan().WithDefaults().Bytes
	for _, v := range s.checked.verdicts {
		switch code := firstCode(v.Issues); { // a rule may use the same codes
		case (code == string(rawjson.Size) || code == codeTruncated) && len(v.Call.Arguments) > size, code == codeTooMany && len(s.checked.excess) > 0:
			s.tally.Note("not asked again: the message is past a limit (" + code + "), and the model would send as much again")
			return []error{ErrExhausted, ErrInvalid}
		case v.Call.Kind == middleware.KindBuiltin:
			s.tally.Note(fmt.Sprintf("not asked again: the turn holds a call that is answered in a form of its own (%s)", text.Label(v.Call.Name)))
			return []error{ErrExhausted, ErrInvalid}
		}
	}
	if s.last.Unpaired {
		s.tally.Note("not asked again: the message holds a call or a result of a provider-executed tool whose other half is in another answer")
		return []error{ErrExhausted, ErrInvalid}
	}
	if choicesHaveCalls(s.last) || s.last.Report.Status == middleware.Invalid || // a stack inside has re-asked already
		s.isCutOff() && !s.raiseTokens(ctx) {
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

// exhausted applies OnExhausted. If the settings of the tools differ, the strictest
// setting applies.
func (s *validateStep) exhausted(ctx context.Context, reasons []error) (*middleware.Response, error) {
	drop, raise, faulty := false, false, s.fault != noFault && s.kept == nil
	if faulty { // there is no call to drop
		_, p := s.faultOptions()
		raise, reasons = p != middleware.Pass, append(reasons, faults[s.fault].err)
	}
	covered := s.v.o.covered(s.req.Tools)
	for v := range s.invalid() {
		p := s.v.o.onExhausted(v, covered)
		drop = drop || p == middleware.DropInvalid
		raise = raise || p != middleware.DropInvalid && p != middleware.Pass
	}
	out := s.output()
	out.Report.Status = middleware.Invalid
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
		e := s.outputError(reasons...)
		e.Replies = batch.Replies(whole.verdicts, s.batch, s.v.render(ctx, whole, s.attempt, s.repeats.Same() > 1, false))
		if faulty {
			e.Response = out
		} else {
			e.attempts = s.attempt
			s.tally.SetStatus(middleware.StatusOf(whole.verdicts)) // with KeepValid the last attempt may have fewer calls
		}
		s.noteAll(whole) // the replies may have added notes
		return nil, e
	}
	return out, nil
}

// errUnusable is the reason why a message without calls is invalid.
var errUnusable = errors.New("argsvalidate: the message holds neither a call that can be read nor an answer")

// unusable applies OnExhausted to a message that an inner layer could not read. That
// layer has already re-asked the model, and the message has no calls to drop.
func (s *validateStep) unusable(resp *middleware.Response) (*middleware.Response, error) {
	s.fault = s.faultOf(resp)
	reasons := []error{ErrExhausted, ErrInvalid, errUnusable}
	if s.fault == missingCall {
		s.noteFault()
		reasons = []error{ErrExhausted, ErrNoCall}
	}
	if all := resp.Report.Attempts; len(all) > 0 && all[len(all)-1].Err != nil { // a re-ask of that layer failed
		reasons = append(reasons, all[len(all)-1].Err)
	}
	if _, policy := s.faultOptions(); policy == middleware.Pass {
		return resp, nil
	}
	return nil, &Error{Response: resp, reasons: reasons}
}

// endedError returns the error of ctx with the issues of the last response; nil if ctx
// has not ended.
func (s *validateStep) endedError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return fmt.Errorf("argsvalidate: ended before attempt %d: %w: %w", s.attempt+1, run.ContextError(ctx), s.asError())
}

// afterFailure ends the step after a model call that failed. A re-ask does not take away
// what the caller had: with Pass and DropInvalid the last response is returned. The error
// of ctx, of a budget and of the first attempt are errors with every policy.
func (s *validateStep) afterFailure(ctx context.Context, err error) (*middleware.Response, error) {
	if s.attempt == 1 {
		return nil, err
	}
	if ctx.Err() == nil && (s.last != nil || s.passesUnread()) && !errors.Is(err, middleware.ErrBudget) {
		var out *middleware.Response
		if s.last == nil {
			out = s.unread
		} else if s.fault != noFault || anyInvalid(s.outputVerdicts()) {
			out, _ = s.exhausted(ctx, []error{ErrInvalid, err})
		}
		if out != nil {
			s.tally.Note(fmt.Sprintf("attempt %d failed, so the last response was returned", s.attempt))
			return out, nil
		}
	}
	return nil, fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, err, s.asError())
}

// asError returns the error for the last response, which is invalid.
func (s *validateStep) asError() *Error {
	switch {
	case s.fault != noFault && s.kept == nil:
		return &Error{Response: s.last, reasons: []error{faults[s.fault].err}}
	case s.refusal == nil:
		return s.outputError(ErrInvalid)
	case s.kept == nil:
		return &Error{Response: s.last, reasons: []error{ErrInvalid, s.refusal}}
	}
	return s.outputError(ErrInvalid, s.refusal)
}

// outputError returns an error with the last response as sent, or with the kept batch and
// its corrections.
func (s *validateStep) outputError(reasons ...error) *Error {
	e := s.outputValidation().newError(reasons...)
	if e.Response = s.last; s.kept != nil {
		e.Response = s.output()
	}
	return e
}

// output returns a copy of the last response, or of the kept batch: valid calls as
// validated, other calls as sent.
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

// outputValidation returns the validation of the output.
func (s *validateStep) outputValidation() *validation {
	if s.kept == nil {
		return &s.checked
	}
	j := s.checked
	j.calls, j.excess, j.notes = s.kept.message.ToolCalls, nil, nil
	j.verdicts, j.plans, j.docs = s.kept.verdicts, s.kept.plans, nil
	return &j
}

// withValidCalls returns m with its valid calls as validated.
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

// outputVerdicts returns the verdicts on the calls of the output.
func (s *validateStep) outputVerdicts() []middleware.Verdict {
	if s.kept != nil {
		return s.kept.verdicts
	}
	return s.checked.verdicts
}

// statusOf returns the status for verdicts. Calls in further choices are not
// validated, so a response with such calls is never valid.
func (s *validateStep) statusOf(verdicts []middleware.Verdict) middleware.Status {
	status := middleware.StatusOf(verdicts)
	if status != middleware.Invalid && choicesHaveCalls(s.last) {
		return middleware.Unchecked
	}
	return status
}

// validCall reports whether the i-th call of the output is valid.
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

func anyInvalid(verdicts []middleware.Verdict) bool {
	return slices.ContainsFunc(verdicts, func(v middleware.Verdict) bool { return !v.OK() })
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

// noteAll adds the notes of j and the failures of the last validation to the report. It
// clears the failures, because it may run twice in an attempt.
func (s *validateStep) noteAll(j *validation) {
	for _, n := range j.notes {
		s.tally.Note(n)
	}
	for _, err := range s.checked.failures {
		s.tally.Fail(err)
	}
	s.checked.failures = nil
}

// noteIDs adds the replaced ids to the changes of the verdicts.
func (s *validateStep) noteIDs(sent middleware.Message) {
	for i, c := range sent.ToolCalls[:len(s.checked.calls)] {
		if id := s.checked.calls[i].ID; id != c.ID {
			v := &s.checked.verdicts[i]
			v.Changes = append(v.Changes, middleware.Change{By: "id", Before: c.ID, After: id})
		}
	}
}

// noteLost adds a note for each valid call that the model did not repeat in its
// corrected message.
func (s *validateStep) noteLost() {
	for _, c := range batch.Lost(s.previous, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %s in attempt %d did not come back with the corrected ones", text.Label(c.Name), s.attempt-1))
	}
}

// withoutCalls drops tool calls, which are not validated yet: sendCalls sends the valid
// calls later. It drops an EventReset without events before it.
func (s *validateStep) withoutCalls(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		if e.Kind == middleware.EventToolCall || e.Kind == middleware.EventReset && !s.streamed {
			return nil
		}
		return sink(e)
	}
}

// trackSink tracks whether sink has events that were not reset.
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

// sendCalls sends the valid calls of the returned response to the sink. If the response
// is from an earlier attempt than the last, EventReset and its text come first.
func (s *validateStep) sendCalls(resp *middleware.Response) error {
	var events []middleware.Event
	returned := s.answered
	if s.kept != nil {
		returned = s.kept.attempt
	}
	if returned < s.attempt {
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
