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
	"github.com/toolmend/toolmend/internal/repeat"
	"github.com/toolmend/toolmend/internal/run"
	"github.com/toolmend/toolmend/internal/text"
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

// outOfAttempts returns the reasons against a further attempt, or nil.
func (s *step) outOfAttempts() []error {
	limit := 0
	for v := range s.open() {
		limit = max(limit, s.v.o.forTool(v.Call.Name).MaxAttempts)
	}
	if s.repeated(repeat.Calls(s.verdicts(), s.whole().docs...), limit) {
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
	if othersCall(s.last) || s.last.Report.Status == middleware.Invalid { // a stack inside has re-asked already
		return []error{ErrExhausted, ErrInvalid}
	}
	return nil
}

// repeated records the failure of this attempt. It reports whether the step
// ends before the limit: after the third failure in a row that repeats earlier
// ones. Failures of earlier steps of an agent loop count.
func (s *step) repeated(what string, limit int) bool {
	s.failures.Failed(what)
	why := s.failures.Ended(s.attempt, "invalid calls")
	if why == "" || s.attempt >= limit {
		return false
	}
	s.tally.Note(why)
	return true
}

// exhausted does what OnExhausted says; the strictest setting of the tools
// counts.
func (s *step) exhausted(ctx context.Context, reasons []error) (*middleware.Response, error) {
	drop, raise := false, false
	for v := range s.open() {
		p := s.v.o.forTool(v.Call.Name).OnExhausted
		drop = drop || p == middleware.DropInvalid
		raise = raise || p != middleware.DropInvalid && p != middleware.Pass
	}
	out := s.envelope()
	if drop && !raise {
		var valid []middleware.ToolCall
		var dropped []string
		for i, c := range out.Message.ToolCalls {
			if s.valid(i) {
				valid = append(valid, c)
			} else {
				dropped = append(dropped, text.Label(c.ID))
			}
		}
		if len(valid) > 0 {
			s.tally.Note("invalid calls were dropped: " + andMore(dropped[:min(len(dropped), maxNamed)], len(dropped)))
			out.Message.ToolCalls = valid
			out.Report.Status = s.statusOf(slices.DeleteFunc(slices.Clone(s.verdicts()), func(v middleware.Verdict) bool { return !v.OK() }))
			return out, nil
		}
		raise = true
	}
	if raise {
		whole := s.whole()
		e := whole.failure(reasons...)
		e.Response, e.attempts = s.answer(), s.attempt
		e.Replies = s.v.replies(ctx, whole, s.attempt, s.failures.Same() > 1)
		s.tally.SetStatus(middleware.StatusOf(whole.verdicts)) // under KeepValid the last attempt may hold fewer calls, or none
		s.noteAll(whole)                                       // the replies may have added notes
		return nil, e
	}
	out.Report.Status = middleware.Invalid
	return out, nil
}

// stillHeld ends the step for a response without a call that must not give up
// the held batch. The batch is the outcome, and OnExhausted applies to it.
func (s *step) stillHeld(ctx context.Context, reason error) (done bool, _ *middleware.Response, _ error) {
	s.record(nil)
	out, err := s.exhausted(ctx, []error{ErrExhausted, ErrInvalid, reason})
	return true, out, err
}

// errUnusable is the reason why a message without calls is invalid.
var errUnusable = errors.New("argsvalidate: the message holds neither a call that can be read nor an answer")

// unusable does what OnExhausted says, for a message in whose text an inner layer
// has found no call that it could use. That layer has already re-asked the model.
// There are no calls to drop.
func (s *step) unusable(ctx context.Context, resp *middleware.Response) (*middleware.Response, error) {
	if s.v.o.OnExhausted == middleware.Pass {
		return resp, nil
	}
	return nil, &Error{Response: resp, reasons: []error{ErrExhausted, ErrInvalid, errUnusable}}
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

// whole returns the validation of the message that envelope returns.
func (s *step) whole() *validation {
	if s.held == nil {
		return &s.checked
	}
	j := s.checked
	j.calls, j.excess, j.notes = s.held.message.ToolCalls, nil, nil
	j.verdicts, j.tools, j.docs = s.held.verdicts, s.held.tools, nil
	return &j
}

// written returns m with the valid calls as they would run.
func written(m middleware.Message, verdicts []middleware.Verdict) middleware.Message {
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

// open yields the verdicts on the calls that must still be corrected.
func (s *step) open() iter.Seq[middleware.Verdict] {
	verdicts := s.verdicts()
	return func(yield func(middleware.Verdict) bool) {
		for i := range verdicts {
			if !verdicts[i].OK() && !yield(verdicts[i]) {
				return
			}
		}
	}
}

// anyOpen reports whether a call must still be corrected.
func (s *step) anyOpen() bool {
	for range s.open() {
		return true
	}
	return false
}

// othersCall reports whether another choice of the response has tool calls.
// Such a response cannot be re-asked, and those calls are not validated.
func othersCall(resp *middleware.Response) bool {
	return slices.ContainsFunc(resp.Choices, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 })
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

// noteIDs records the ids that were replaced.
func (s *step) noteIDs(sent middleware.Message) {
	for i, c := range sent.ToolCalls[:len(s.checked.calls)] {
		if id := s.checked.calls[i].ID; id != c.ID {
			v := &s.checked.verdicts[i]
			v.Changes = append(v.Changes, middleware.Change{By: "id", Before: c.ID, After: id})
		}
	}
}

// noteLost adds a note if the model corrected its calls and left out valid
// siblings that it was asked to send again.
func (s *step) noteLost() {
	for _, c := range batch.Lost(s.failed, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %s in attempt %d did not come back with the corrected ones", text.Label(c.Name), s.attempt-1))
	}
}

// withoutCalls holds back tool calls from sink, because they are not validated
// yet. The step sends the valid ones later. EventReset is dropped if no event
// was sent before it.
func (s *step) withoutCalls(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		if e.Kind == middleware.EventToolCall || e.Kind == middleware.EventReset && !s.shown {
			return nil
		}
		return sink(e)
	}
}

// watched records whether sink has events that were not reset.
func (s *step) watched(sink middleware.Sink) middleware.Sink {
	return func(e middleware.Event) error {
		s.shown = e.Kind != middleware.EventReset
		return sink(e)
	}
}

// finish sends the valid calls to the sink and completes the report.
func (s *step) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.req.Sink != nil {
		err = s.show(resp)
	}
	return s.tally.Finish(resp, err)
}

// show sends the valid calls of the returned response to the sink. If its
// message is not that of the last attempt, EventReset and its text come first.
func (s *step) show(resp *middleware.Response) error {
	var events []middleware.Event
	if returned := s.returned(); returned < s.attempt {
		if s.shown {
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
		if resp.Report.Status != middleware.Invalid || s.valid(i) {
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

// returned is the number of the attempt whose message is returned.
func (s *step) returned() int {
	if s.held != nil {
		return s.held.attempt
	}
	return s.answered
}
