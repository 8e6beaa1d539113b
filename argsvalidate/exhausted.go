package argsvalidate

import (
	"context"
	"crypto/sha256"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// exhausted does what OnExhausted says; the strictest tool in the batch counts.
func (s *step) exhausted(reasons []error) (*middleware.Response, error) {
	policy := Pass
	for v := range s.open() {
		p := s.v.o.OnExhausted
		if plan := s.known.find(v.Call.Name); plan.declared() {
			p = plan.o.OnExhausted
		}
		if p == Raise || policy == Pass {
			policy = p
		}
	}
	out := s.envelope()
	if policy == DropInvalid {
		var valid []middleware.ToolCall
		var dropped []string
		for i, c := range out.Message.ToolCalls {
			if s.valid(i) {
				valid = append(valid, c)
			} else {
				dropped = append(dropped, c.ID)
			}
		}
		if len(valid) > 0 {
			s.tally.Note(fmt.Sprintf("invalid calls were dropped: %.200s", strings.Join(dropped, ", ")))
			out.Message.ToolCalls = valid
			out.Report.Status = middleware.StatusOf(slices.DeleteFunc(slices.Clone(s.verdicts()), func(v middleware.Verdict) bool { return !v.OK() }))
			return out, nil
		}
		policy = Raise
	}
	if policy == Raise {
		e := s.judged.failure(reasons...)
		e.Response, e.Replies, e.attempts = s.last, s.v.replies(context.Background(), s.judged, s.attempt, s.same > 1), s.attempt
		s.notes() // those on the replies are new
		return nil, e
	}
	out.Report.Status = middleware.Invalid
	return out, nil
}

// outOfAttempts returns why the model is not asked again; nil if it is.
func (s *step) outOfAttempts() []error {
	s.same++
	if now := signature(s.open()); now != s.previous {
		s.same, s.previous = 1, now
	}
	limit := 0
	for v := range s.open() {
		allowed := s.v.o.MaxAttempts
		if p := s.known.find(v.Call.Name); p.declared() {
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

// open yields the verdicts on the calls that are still to be corrected.
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

// anyOpen reports whether a call is still to be corrected.
func (s *step) anyOpen() bool {
	for range s.open() {
		return true
	}
	return false
}

// signature tells one failure from another, in a few bytes whatever was sent.
func signature(verdicts iter.Seq[middleware.Verdict]) [sha256.Size]byte {
	h := sha256.New()
	for v := range verdicts {
		fmt.Fprintf(h, "%d %s %d %s", len(v.Call.Name), v.Call.Name, len(v.Call.Arguments), v.Call.Arguments)
		for _, i := range v.Issues {
			fmt.Fprintf(h, " %q %q %q", i.Code, i.Pointer, i.Message)
		}
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// othersCall reports whether another choice of the answer holds tool calls: a
// turn of several choices cannot be re-asked, and theirs are nobody's to judge.
func othersCall(resp *middleware.Response) bool {
	return slices.ContainsFunc(resp.Others, func(m middleware.Message) bool { return len(m.ToolCalls) > 0 })
}
