package argsvalidate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/batch"
	"github.com/toolmend/toolmend/middleware"
)

// held is a batch that waits for its broken calls to be corrected.
type held struct {
	resp     *middleware.Response
	message  middleware.Message   // valid calls written back
	verdicts []middleware.Verdict // on its calls
	asked    []bool               // of each call: the last turn held it
}

// valid returns the calls that are held; none without a batch.
func (h *held) valid() []middleware.ToolCall {
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

// left names the broken calls that the last turn was silent about.
func (h *held) left() string {
	if h == nil {
		return ""
	}
	var names []string
	for i, v := range h.verdicts {
		if !v.OK() && !h.asked[i] {
			names = append(names, fmt.Sprintf("the call to %.64s", v.Call.Name))
		}
	}
	return strings.Join(names, ", ")
}

// hold keeps the valid calls of a failed batch, or puts corrected ones in
// their places.
func (s *step) hold() {
	if s.v.o.Batch != batch.KeepValid {
		s.noteLost(s.failed)
		return
	}
	if len(s.judged.excess) > 0 {
		return // what is held stays; of a message with too many calls nothing is
	}
	now := written(s.last.Message, s.judged.verdicts)
	if s.held != nil {
		if spliced, at, ok := batch.Splice(s.held.message, now, s.held.verdicts); ok {
			s.held.message = spliced
			s.held.asked = make([]bool, len(s.held.verdicts))
			for n, i := range at {
				if i < 0 {
					continue
				}
				s.held.asked[i] = true
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
		s.held = &held{resp: s.last, message: now, verdicts: slices.Clone(s.judged.verdicts), asked: make([]bool, len(now.ToolCalls))}
		for i := range s.held.asked {
			s.held.asked[i] = true
		}
	}
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

// noteLost says so when the model corrected its calls and left out the valid
// siblings that it was to send again.
func (s *step) noteLost(failed []middleware.Verdict) {
	for _, c := range batch.Lost(failed, s.last.Message) {
		s.tally.Note(fmt.Sprintf("a valid call to %.64s in attempt %d did not come back with the corrected ones", c.Name, s.attempt-1))
	}
}

// noteIDs records which ids were made up.
func (s *step) noteIDs(sent middleware.Message) {
	for i, c := range sent.ToolCalls[:len(s.judged.calls)] {
		if id := s.judged.calls[i].ID; id != c.ID {
			v := &s.judged.verdicts[i]
			v.Changes = append(v.Changes, middleware.Change{By: "id", Before: c.ID, After: id})
		}
	}
}
