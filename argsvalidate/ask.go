package argsvalidate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// ask makes the next request. It appends the failed turn and its replies, or
// does what Options.FreshOnRepeat says.
func (s *step) ask(ctx context.Context, sent middleware.Message) {
	if s.v.o.FreshOnRepeat && s.failures.Same() > 1 && s.held == nil {
		reply := middleware.User(s.afresh(ctx))
		s.tally.Note(fmt.Sprintf("attempt %d brought the same invalid calls again: attempt %d leaves the failed turns out", s.attempt, s.attempt+1))
		s.record([]middleware.Message{reply})
		s.turns = nil
		s.extend([]middleware.Message{reply})
		return
	}
	turn := s.turn(ctx, sent)
	s.record(turn[1:])
	s.extend(turn)
}

// extend appends a failed turn to the next request, after the earlier turns
// that fit into the limit.
func (s *step) extend(turn []middleware.Message) {
	limit := s.v.o.Limits.Turns
	if s.v.o.LastTurnOnly {
		limit = 0
	}
	s.turns = history.Recent(append(s.turns, turn), limit)
	asked := s.req.With(slices.Concat(s.turns...)...)
	asked.Sink = s.asked.Sink
	s.asked = asked
}

// afresh describes the errors of calls that the next request does not contain.
func (s *step) afresh(ctx context.Context) string {
	var b strings.Builder
	b.WriteString("Calling tools failed twice in the same way, and nothing was executed. Call them in another way, all that are needed. What was wrong:")
	for _, reply := range batch.Replies(s.checked.verdicts, batch.ReissueAll, s.v.render(ctx, &s.checked, s.attempt, false, true)) {
		if reply.IsError && b.Len() < maxText {
			b.WriteString("\n\n" + reply.Text())
		}
	}
	return text.Clip(b.String(), maxText)
}

// modelsFault reports whether a call is invalid for another reason than that
// it could not be checked.
func (s *step) modelsFault() bool {
	for v := range s.open() {
		for _, i := range v.Issues {
			if i.Code != codeUndecided {
				return true
			}
		}
	}
	return false
}
