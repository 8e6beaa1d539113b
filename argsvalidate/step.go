package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// step is one pass through the middleware: the model is asked, its answer
// judged, and asked again until its calls are valid or nothing is left to try.
type step struct {
	v     *Validator
	next  middleware.ModelCall
	req   *middleware.Request // the caller's, never changed
	asked *middleware.Request // with the failed turns appended
	tally middleware.Tally

	attempt  int
	last     *middleware.Response // the last answer, as sent but for broken ids
	judged   *judgement           // of last
	refusal  error                // the provider's, if the last answer was none
	held     *held                // under batch.KeepValid
	failed   []middleware.Verdict // of the failed turn before last
	previous string               // what was wrong last time, to notice a repetition
	same     int                  // how often in a row
}

// held is a batch that waits for its broken calls to be corrected.
type held struct {
	resp     *middleware.Response
	message  middleware.Message   // valid calls written back
	verdicts []middleware.Verdict // on its calls
}

func newStep(v *Validator, next middleware.ModelCall, req *middleware.Request) *step {
	return &step{v: v, next: withoutCallEvents(next), req: req, asked: req}
}

// withoutCallEvents holds back tool calls from the sink: whether they are
// valid is known later, and then the step shows them.
func withoutCallEvents(next middleware.ModelCall) middleware.ModelCall {
	return func(ctx context.Context, req *middleware.Request) (*middleware.Response, error) {
		sink := req.Sink
		if sink == nil {
			return next(ctx, req)
		}
		quiet := *req
		quiet.Sink = func(e middleware.Event) error {
			if e.Kind == middleware.EventToolCall {
				return nil
			}
			return sink(e)
		}
		return next(ctx, &quiet)
	}
}

func (s *step) run(ctx context.Context) (*middleware.Response, error) {
	for {
		s.attempt++
		resp, err := s.tally.Call(ctx, s.next, s.asked)
		done := true
		switch {
		case err != nil && errors.Is(err, middleware.ErrInvalidToolCall):
			done, resp, err = s.refused(err)
		case err != nil:
			err = s.cut(ctx, err)
		case s.attempt == 1 && len(resp.Message.ToolCalls) == 0 && !othersCall(resp):
			return resp, nil
		default:
			done, resp, err = s.look(ctx, resp)
		}
		if done {
			return s.finish(resp, err)
		}
		if err := s.ended(ctx); err != nil {
			return s.tally.Finish(nil, err)
		}
	}
}

// finish shows the valid calls to the sink and closes the ledger.
func (s *step) finish(resp *middleware.Response, err error) (*middleware.Response, error) {
	if err == nil && s.req.Sink != nil {
		for i, c := range resp.Message.ToolCalls {
			if resp.Report.Status == middleware.Invalid && !s.valid(i) {
				continue
			}
			if err := s.req.Sink(middleware.Event{Kind: middleware.EventToolCall, Call: &c}); err != nil {
				return s.tally.Finish(nil, err)
			}
		}
	}
	return s.tally.Finish(resp, err)
}

func (s *step) valid(i int) bool {
	verdicts := s.judged.verdicts
	if s.held != nil {
		verdicts = s.held.verdicts
	}
	return i < len(verdicts) && verdicts[i].OK()
}

// ended returns why no further attempt may be made, if the context is done:
// its error, with what was wrong last beside it.
func (s *step) ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	err := context.Cause(ctx)
	if !errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("%w: %w", ctx.Err(), err)
	}
	return fmt.Errorf("argsvalidate: ended before attempt %d: %w: %w", s.attempt+1, err, s.wrong())
}

// cut puts what was wrong last beside the error of a model call that the end
// of the context has cut.
func (s *step) cut(ctx context.Context, err error) error {
	if s.attempt == 1 || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return err
	}
	return fmt.Errorf("argsvalidate: ended in attempt %d: %w: %w", s.attempt, err, s.wrong())
}

// wrong is what the model is asked again for.
func (s *step) wrong() *Error {
	if s.refusal != nil {
		return &Error{Response: s.last, reasons: []error{ErrInvalid, s.refusal}}
	}
	e := s.judged.failure(ErrInvalid)
	e.Response = s.last
	return e
}

// look judges an answer. done: resp and err are the outcome of the step.
func (s *step) look(ctx context.Context, resp *middleware.Response) (done bool, _ *middleware.Response, _ error) {
	fixed := *resp
	fixed.Message = batch.FixIDs(s.req.Messages, resp.Message)
	s.last, s.refusal = &fixed, nil
	s.judged = s.v.newJudgement(s.req, fixed.Message.ToolCalls)
	ruleErr := s.judged.run(ctx, resp.FinishReason == middleware.FinishLength)
	s.noteIDs(resp.Message)
	if othersCall(resp) {
		s.tally.Note("not asked again: another choice of the answer holds tool calls, which nobody has validated")
	}
	s.hold()
	var reasons []error
	if ruleErr == nil && s.judged.invalid() {
		if reasons = s.outOfAttempts(); reasons == nil {
			turn := s.turn(resp.Message)
			s.record(turn[1:])
			s.asked = s.asked.With(turn...)
			return false, nil, nil
		}
	}
	s.record(nil)
	switch {
	case ruleErr != nil:
		e := s.judged.failure(ErrRule, ruleErr)
		e.Response = s.last
		return true, nil, e
	case reasons != nil:
		out, err := s.exhausted(reasons)
		return true, out, err
	}
	out := s.envelope()
	out.Report.Status = middleware.Unchecked // nothing to look at
	if len(out.Message.ToolCalls) > 0 {
		out.Report.Status = middleware.Valid
	}
	return true, out, nil
}

// record puts the judgement and its notes into the ledger.
func (s *step) record(replies []middleware.Message) {
	s.tally.Judge(s.judged.verdicts, replies)
	s.notes()
	s.failed = s.judged.verdicts
}

func (s *step) notes() {
	for _, n := range s.judged.notes {
		s.tally.Note(n)
	}
}

// refused answers a tool call that the provider itself refused: there is no
// message of the model to reply to, so a user message says what was wrong.
func (s *step) refused(err error) (done bool, _ *middleware.Response, _ error) {
	if s.attempt >= s.v.o.MaxAttempts {
		reasons := []error{ErrExhausted, ErrInvalid, err}
		if s.last == nil || s.v.o.OnExhausted != Pass {
			return true, nil, &Error{Response: s.last, reasons: reasons, attempts: s.attempt}
		}
		out, err := s.exhausted(reasons)
		return true, out, err
	}
	s.refusal = err
	reply := middleware.User(refusedText(err, s.v.available(s.req.Tools)))
	s.tally.Judge(nil, []middleware.Message{reply})
	s.asked = s.asked.With(reply)
	return false, nil, nil
}

// turn returns what the next request appends: the failed message and the
// replies to its calls. An id that was broken is numbered on through the failed
// turns, so that no two of ours are the same.
func (s *step) turn(sent middleware.Message) []middleware.Message {
	echo := s.last.Message.Clone()
	for i, c := range batch.FixIDs(s.asked.Messages, sent).ToolCalls {
		if sent.ToolCalls[i].ID != echo.ToolCalls[i].ID {
			echo.ToolCalls[i].ID = c.ID
		}
	}
	tools := append(s.v.o.Tools[:len(s.v.o.Tools):len(s.v.o.Tools)], s.req.Tools...)
	return batch.Turn(echo, tools, s.judged.verdicts, s.v.o.Batch, s.v.render(s.judged, s.attempt, s.same > 1))
}

// envelope returns the response that is handed on, with its valid calls as they
// were validated and the others as they were sent: a copy.
func (s *step) envelope() *middleware.Response {
	out, message := *s.last, written(s.last.Message, s.judged.verdicts)
	if s.held != nil {
		out, message = *s.held.resp, s.held.message
	}
	out.Message = message
	return &out
}

// exhausted does what OnExhausted says; the strictest tool in the batch counts.
func (s *step) exhausted(reasons []error) (*middleware.Response, error) {
	policy := Pass
	for i, v := range s.judged.verdicts {
		if v.OK() {
			continue
		}
		p := s.v.o.OnExhausted
		if plan := s.judged.tools[i]; plan.declared() {
			p = plan.o.OnExhausted
		}
		if p == Raise || policy == Pass {
			policy = p
		}
	}
	out := s.envelope()
	if policy == DropInvalid {
		var valid []middleware.ToolCall
		for i, c := range out.Message.ToolCalls {
			if s.valid(i) {
				valid = append(valid, c)
			}
		}
		if len(valid) > 0 {
			s.tally.Note(fmt.Sprintf("%d invalid calls were dropped", len(out.Message.ToolCalls)-len(valid)))
			out.Message.ToolCalls = valid
			out.Report.Status = middleware.Valid
			return out, nil
		}
		policy = Raise
	}
	if policy == Raise {
		e := s.judged.failure(reasons...)
		e.Response, e.Replies, e.attempts = s.last, s.v.replies(s.judged, s.attempt, s.same > 1), s.attempt
		s.notes() // those on the replies are new
		return nil, e
	}
	out.Report.Status = middleware.Invalid
	return out, nil
}

// written returns m with the valid calls as they would run.
func written(m middleware.Message, verdicts []middleware.Verdict) middleware.Message {
	m = m.Clone()
	for i, v := range verdicts {
		if v.OK() {
			m.ToolCalls[i] = v.Call
		}
	}
	return m
}

// hold keeps the valid calls of a failed batch, or puts corrected ones in
// their places.
func (s *step) hold() {
	if s.v.o.Batch != batch.KeepValid {
		s.noteLost(s.failed)
		return
	}
	now := written(s.last.Message, s.judged.verdicts)
	if s.held != nil {
		if spliced, at, ok := batch.Splice(s.held.message, now, s.held.verdicts); ok {
			s.held.message = spliced
			for n, i := range at {
				verdict := s.judged.verdicts[n]
				verdict.Call = spliced.ToolCalls[i]
				s.held.verdicts[i] = verdict
			}
			return
		}
		s.noteLost(s.held.verdicts)
		s.held = nil // an answer of its own
	}
	if s.judged.invalid() {
		s.held = &held{resp: s.last, message: now, verdicts: append([]middleware.Verdict(nil), s.judged.verdicts...)}
	}
}

// outOfAttempts returns why the model is not asked again; nil if it is.
func (s *step) outOfAttempts() []error {
	s.same++
	if now := signature(s.judged); now != s.previous {
		s.same, s.previous = 1, now
	}
	limit := 0
	for i, v := range s.judged.verdicts {
		if v.OK() {
			continue
		}
		allowed := s.v.o.MaxAttempts
		if p := s.judged.tools[i]; p.declared() {
			allowed = p.o.MaxAttempts
		}
		limit = max(limit, allowed)
	}
	const hopeless = 3 // the third identical failure came after the schema was shown
	switch {
	case s.same >= hopeless && s.attempt < limit:
		s.tally.Note(fmt.Sprintf("ended after attempt %d: the model sent the same invalid calls %d times in a row", s.attempt, s.same))
		return []error{ErrExhausted, ErrInvalid, ErrRepeated}
	case s.attempt >= limit:
		return []error{ErrExhausted, ErrInvalid}
	}
	for _, c := range s.judged.calls {
		if c.Kind == middleware.Foreign {
			s.tally.Note(fmt.Sprintf("not asked again: the turn holds a call that is answered in a form of its own (%.64s)", c.Name))
			return []error{ErrExhausted, ErrInvalid}
		}
	}
	if othersCall(s.last) {
		return []error{ErrExhausted, ErrInvalid}
	}
	return nil
}

// othersCall reports whether another choice of the answer holds tool calls: a
// turn of several choices cannot be re-asked, and theirs are nobody's to judge.
func othersCall(resp *middleware.Response) bool {
	return slices.ContainsFunc(resp.Others, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 })
}

func signature(j *judgement) string {
	var b strings.Builder
	for _, v := range j.verdicts {
		if v.OK() {
			continue
		}
		fmt.Fprintf(&b, "%q %q", v.Call.Name, v.Call.Arguments)
		for _, i := range v.Issues {
			fmt.Fprintf(&b, " %q %q %q", i.Code, i.Pointer, i.Message)
		}
	}
	return b.String()
}

// noteIDs records which ids were made up.
func (s *step) noteIDs(sent middleware.Message) {
	for i, c := range sent.ToolCalls {
		if id := s.judged.calls[i].ID; id != c.ID {
			v := &s.judged.verdicts[i]
			v.Changes = append(v.Changes, middleware.Change{By: "id", Before: c.ID, After: id})
		}
	}
}

// noteLost says so when the model corrected its calls and left out the valid
// siblings that it was to send again.
func (s *step) noteLost(failed []middleware.Verdict) {
	for _, c := range batch.Lost(failed, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %.64s in attempt %d did not come back with the corrected ones", c.Name, s.attempt-1))
	}
}
