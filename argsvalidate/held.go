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

// heldBatch is a batch whose valid calls wait until its invalid calls are
// corrected.
type heldBatch struct {
	resp     *middleware.Response
	attempt  int                  // the number of the attempt that returned resp
	message  middleware.Message   // the message of resp with the corrections, followed by new calls
	verdicts []middleware.Verdict // on the calls of message
	tools    []plan               // of the calls of message
	asked    []bool               // whether the last turn asked for the call
	refused  map[int]string       // why rules refuse a call that was held, beside its new siblings
}

// valid returns the valid calls, which are held; nil without a batch.
func (h *heldBatch) valid() []middleware.ToolCall {
	if h == nil {
		return nil
	}
	var calls []middleware.ToolCall
	for _, v := range h.verdicts {
		if v.OK() {
			calls = append(calls, v.Call)
		}
	}
	return calls
}

// heldSiblings returns the held calls that would run together with those of
// the last response, and which of its calls repeat one of them. It returns
// none if the response replaces the batch.
func (s *step) heldSiblings() (held []middleware.ToolCall, repeated []bool) {
	if s.held == nil || len(s.checked.excess) > 0 {
		return nil, nil
	}
	_, at, ok := batch.Splice(s.held.message, written(s.last.Message, s.checked.verdicts), s.held.verdicts)
	if !ok {
		return nil, nil
	}
	repeated = make([]bool, len(at))
	for n, i := range at {
		repeated[n] = i < 0
	}
	return s.held.valid(), repeated
}

// left names the invalid calls that the last turn did not mention.
func (h *heldBatch) left() string {
	if h == nil {
		return ""
	}
	var names []string
	for i, v := range h.verdicts {
		if !v.OK() && !h.asked[i] {
			name := "the call to " + text.Label(v.Call.Name)
			if why := h.refused[i]; why != "" {
				name += ", which was valid before (" + why + ")"
			}
			names = append(names, name)
		}
	}
	return andMore(names[:min(len(names), maxNamed)], len(names))
}

// hold keeps the valid calls of a failed batch, or inserts the corrected calls
// into the held batch.
func (s *step) hold() {
	if s.v.o.Batch != batch.KeepValid {
		s.noteLost()
		return
	}
	if len(s.checked.excess) > 0 {
		return // the held batch stays; a message with too many calls is never held
	}
	if s.held != nil && len(s.checked.calls) == 0 {
		s.withdraw()
		return
	}
	now := written(s.last.Message, s.checked.verdicts)
	if s.held != nil {
		if spliced, at, ok := batch.Splice(s.held.message, now, s.held.verdicts); ok {
			s.held.message = history.FixIDs(s.req.Messages, spliced)
			s.held.accept(&s.checked, at)
			s.held.refused = nil
			return
		}
		s.held = nil // the response replaces the batch
	}
	if s.checked.invalid() {
		s.held = &heldBatch{resp: s.last, attempt: s.attempt, message: now}
		at := make([]int, len(now.ToolCalls))
		for i := range at {
			at[i] = i
		}
		s.held.accept(&s.checked, at)
	}
}

// recheck runs the rules on the held calls that the response does not hold: their
// siblings have changed.
func (s *step) recheck(ctx context.Context) error {
	h := s.held
	if h == nil || len(s.v.o.Rules) == 0 {
		return nil
	}
	j := s.checked
	j.calls, j.verdicts, j.tools, j.docs, j.held, j.repeated, j.notes = nil, nil, nil, nil, nil, nil, nil
	var places []int
	for i, c := range h.message.ToolCalls {
		if h.asked[i] || !h.verdicts[i].OK() {
			j.held = append(j.held, c)
			continue
		}
		v := h.verdicts[i]
		v.Notes = nil // the rules remark again
		places, j.calls, j.verdicts, j.tools = append(places, i), append(j.calls, c), append(j.verdicts, v), append(j.tools, h.tools[i])
	}
	err := j.rules(ctx)
	for n, i := range places {
		if h.verdicts[i] = j.verdicts[n]; !h.verdicts[i].OK() {
			if h.refused == nil {
				h.refused = map[int]string{}
			}
			h.refused[i] = text.Label(h.verdicts[i].Issues[0].Message)
		}
	}
	s.checked.notes, s.checked.failures = append(s.checked.notes, j.notes...), j.failures
	return err
}

// accept puts the verdicts of j in the places of its calls in the message.
func (h *heldBatch) accept(j *validation, at []int) {
	grow := len(h.message.ToolCalls) - len(h.verdicts)
	h.verdicts = append(h.verdicts, make([]middleware.Verdict, grow)...)
	h.tools = append(h.tools, make([]plan, grow)...)
	h.asked = make([]bool, len(h.verdicts))
	for n, i := range at {
		if i < 0 {
			continue // a repetition
		}
		verdict := j.verdicts[n]
		verdict.Call = h.message.ToolCalls[i]
		h.asked[i], h.verdicts[i], h.tools[i] = true, verdict, j.tools[n]
	}
}

// withdraw applies a response without calls to a held batch. If all open calls
// were to unknown tools, the model has withdrawn them, and the step returns
// the held calls. Otherwise the model has given up the batch.
func (s *step) withdraw() {
	valid := s.held.valid()
	if len(valid) == 0 {
		s.held = nil
		return
	}
	if !s.held.complete() || s.last.FinishReason == middleware.FinishFilter || s.last.Message.Refused() {
		s.tally.Note(fmt.Sprintf("attempt %d has no tool call: the held calls were given up: %s", s.attempt, toolNames(valid)))
		s.held = nil
		return
	}
	s.tally.Note(fmt.Sprintf("attempt %d has no tool call: the calls to unknown tools were withdrawn, and the held calls are returned", s.attempt))
	h := *s.held
	h.message = h.message.Clone()
	h.message.ToolCalls, h.verdicts, h.tools = valid, nil, nil
	for i, v := range s.held.verdicts {
		if v.OK() {
			h.verdicts, h.tools = append(h.verdicts, v), append(h.tools, s.held.tools[i])
		}
	}
	s.held = &h
}

// complete reports whether the batch has valid calls, and no invalid calls
// except those to unknown tools.
func (h *heldBatch) complete() bool {
	return len(h.valid()) > 0 && !slices.ContainsFunc(h.verdicts, func(v middleware.Verdict) bool {
		return !v.OK() && v.Issues[0].Code != codeUnknownTool
	})
}

// toolNames lists the tools of calls.
func toolNames(calls []middleware.ToolCall) string {
	var all []string
	for _, c := range calls[:min(len(calls), maxNamed)] {
		all = append(all, text.Label(c.Name))
	}
	return andMore(all, len(calls))
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

// noteLost adds a note if the model corrected its calls and left out valid
// siblings that it was asked to send again.
func (s *step) noteLost() {
	for _, c := range batch.Lost(s.failed, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %s in attempt %d did not come back with the corrected ones", text.Label(c.Name), s.attempt-1))
	}
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
