package argsvalidate

import (
	"context"
	"fmt"
	"slices"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/internal/history"
	"github.com/toolmend/toolmend/internal/text"
	"github.com/toolmend/toolmend/middleware"
)

// keptBatch is a message with invalid calls, with batch.KeepValid. Its valid calls wait
// until the model has corrected the invalid calls.
type keptBatch struct {
	resp       *middleware.Response
	attempt    int                  // the number of the attempt that returned resp
	message    middleware.Message   // the message of resp with the corrections, followed by new calls
	verdicts   []middleware.Verdict // on the calls of message
	plans      []toolPlan           // of the calls of message
	inLastTurn []bool               // whether the last response has the call
	refusals   map[int]string       // by call: why a rule rejects a kept call after its siblings changed
}

// keptSiblings returns the kept calls that would run together with the calls of the
// last response, and for each call of the response whether it repeats a kept call. It
// returns nil if the response replaces the batch.
func (s *validateStep) keptSiblings() (kept []middleware.ToolCall, repeated []bool) {
	if s.kept == nil || len(s.checked.excess) > 0 {
		return nil, nil
	}
	_, at, ok := batch.Splice(s.kept.message, withValidCalls(s.last.Message, s.checked.verdicts), s.kept.verdicts)
	if !ok {
		return nil, nil
	}
	repeated = make([]bool, len(at))
	for n, i := range at {
		repeated[n] = i < 0
	}
	return s.kept.validCalls(), repeated
}

// updateBatch keeps the last response if some of its calls are invalid, or inserts its
// calls into the kept batch.
func (s *validateStep) updateBatch() {
	if s.batch != batch.KeepValid {
		s.noteLost()
		return
	}
	if len(s.checked.excess) > 0 {
		return // a message with too many calls changes nothing
	}
	if s.kept != nil && len(s.checked.calls) == 0 {
		s.withdraw()
		return
	}
	now := withValidCalls(s.last.Message, s.checked.verdicts)
	if s.kept != nil {
		if spliced, at, ok := batch.Splice(s.kept.message, now, s.kept.verdicts); ok {
			s.kept.message = history.FixAnswer(s.req, spliced)
			s.kept.setVerdicts(&s.checked, at)
			s.kept.refusals = nil
			s.kept = s.kept.only(func(i int) bool {
				return s.kept.inLastTurn[i] || firstCode(s.kept.verdicts[i].Issues) != codeToolChoice
			})
			return
		}
		s.kept = nil // the response replaces the batch
	}
	if anyInvalid(s.checked.verdicts) {
		s.kept = &keptBatch{resp: s.last, attempt: s.attempt, message: now}
		at := make([]int, len(now.ToolCalls))
		for i := range at {
			at[i] = i
		}
		s.kept.setVerdicts(&s.checked, at)
	}
}

// setVerdicts sets the verdicts on the calls of j. The place of its n-th call in the
// message is at[n].
func (b *keptBatch) setVerdicts(j *validation, at []int) {
	grow := len(b.message.ToolCalls) - len(b.verdicts)
	b.verdicts = append(b.verdicts, make([]middleware.Verdict, grow)...)
	b.plans = append(b.plans, make([]toolPlan, grow)...)
	b.inLastTurn = make([]bool, len(b.verdicts))
	for n, i := range at {
		if i < 0 {
			continue // it repeats a kept call
		}
		verdict := j.verdicts[n]
		verdict.Call = b.message.ToolCalls[i]
		b.inLastTurn[i], b.verdicts[i], b.plans[i] = true, verdict, j.allPlans()[n]
	}
}

// withdraw applies a response without calls to the kept batch. If all invalid calls are
// to unknown or forbidden tools, the model has withdrawn them, and the step returns the kept calls.
// Otherwise the model has given up the batch.
func (s *validateStep) withdraw() {
	valid := s.kept.validCalls()
	if len(valid) == 0 {
		s.kept = nil
		return
	}
	if !s.kept.complete() || s.last.FinishReason == middleware.FinishFilter || s.last.Message.Refused() {
		s.tally.Note(fmt.Sprintf("attempt %d has no tool call: the held calls were given up: %s", s.attempt, toolNames(valid)))
		s.kept = nil
		return
	}
	s.tally.Note(fmt.Sprintf("attempt %d has no tool call: the invalid calls were withdrawn, and the held calls are returned", s.attempt))
	s.kept = s.kept.only(func(i int) bool { return s.kept.verdicts[i].OK() })
}

// only returns the batch with the calls that keep selects. A forbidden call that the model does
// not send again is withdrawn, because it cannot be corrected.
func (b *keptBatch) only(keep func(i int) bool) *keptBatch {
	left := *b
	left.message = b.message.Clone()
	left.message.ToolCalls, left.verdicts, left.plans, left.inLastTurn = nil, nil, nil, nil
	for i, c := range b.message.ToolCalls {
		if keep(i) {
			left.message.ToolCalls, left.verdicts = append(left.message.ToolCalls, c), append(left.verdicts, b.verdicts[i])
			left.plans, left.inLastTurn = append(left.plans, b.plans[i]), append(left.inLastTurn, b.inLastTurn[i])
		}
	}
	return &left
}

// recheckKept runs the rules on the kept calls that the response does not repeat,
// because their siblings have changed.
func (s *validateStep) recheckKept(ctx context.Context) error {
	b := s.kept
	if b == nil || len(s.v.o.Rules) == 0 {
		return nil
	}
	j := s.checked
	j.calls, j.verdicts, j.plans, j.docs, j.kept, j.repeated, j.notes = nil, nil, nil, nil, nil, nil, nil
	var places []int
	for i, c := range b.message.ToolCalls {
		if b.inLastTurn[i] || !b.verdicts[i].OK() {
			j.kept = append(j.kept, c)
			continue
		}
		v := b.verdicts[i]
		v.Notes = nil // the rules add their notes again
		places, j.calls, j.verdicts, j.plans = append(places, i), append(j.calls, c), append(j.verdicts, v), append(j.plans, b.plans[i])
	}
	err := j.runAllRules(ctx)
	for n, i := range places {
		if b.verdicts[i] = j.verdicts[n]; !b.verdicts[i].OK() {
			if b.refusals == nil {
				b.refusals = map[int]string{}
			}
			b.refusals[i] = text.Label(b.verdicts[i].Issues[0].Message)
		}
	}
	s.checked.notes, s.checked.failures = append(s.checked.notes, j.notes...), j.failures
	return err
}

// validCalls returns the valid calls; nil without a batch.
func (b *keptBatch) validCalls() []middleware.ToolCall {
	if b == nil {
		return nil
	}
	return batch.Valid(b.verdicts)
}

// stillInvalid lists the invalid calls that the last response does not have.
func (b *keptBatch) stillInvalid() string {
	if b == nil {
		return ""
	}
	var names []string
	for i, v := range b.verdicts {
		if !v.OK() && !b.inLastTurn[i] {
			name := "the call to " + text.Label(v.Call.Name)
			if why := b.refusals[i]; why != "" {
				name += ", which was valid before (" + why + ")"
			}
			names = append(names, name)
		}
	}
	return listWithMore(names[:min(len(names), maxNamed)], len(names))
}

// complete reports whether the batch has valid calls, and only calls to unknown tools and
// to tools that may not be called are invalid.
func (b *keptBatch) complete() bool {
	return len(b.validCalls()) > 0 && !slices.ContainsFunc(b.verdicts, func(v middleware.Verdict) bool {
		return !v.OK() && v.Issues[0].Code != codeUnknownTool && v.Issues[0].Code != codeToolChoice
	})
}

// toolNames lists the tools of calls.
func toolNames(calls []middleware.ToolCall) string {
	var all []string
	for _, c := range calls[:min(len(calls), maxNamed)] {
		all = append(all, text.Label(c.Name))
	}
	return listWithMore(all, len(calls))
}
