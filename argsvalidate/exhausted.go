package argsvalidate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/toolmend/toolmend/internal/repeat"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

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

// othersCall reports whether another choice of the response has tool calls.
// Such a response cannot be re-asked, and those calls are not validated.
func othersCall(resp *middleware.Response) bool {
	return slices.ContainsFunc(resp.Choices, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 })
}
