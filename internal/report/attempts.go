package report

import (
	"context"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// Attempts converts the attempts of a step that ran. tools are those that the
// model had. Verdicts of the report are kept as they are: rules and functions
// that only the running program knows took part in them. The verdict as sent of a
// call that was repaired is not in the report, so Attempts validates that call
// again. errorWord names the error of an attempt without its text; nil leaves
// "error".
func (j *Checker) Attempts(ctx context.Context, r middleware.Report, tools []middleware.Tool, errorWord func(error) string) []Attempt {
	out := make([]Attempt, len(r.Attempts))
	for i, a := range r.Attempts {
		out[i] = Attempt{
			Model: a.Model, Text: a.Message.Text(), FinishReason: a.FinishReason, Usage: a.Usage,
			Start: a.Start, Duration: a.Duration, Replies: Replies(a.Replies), Issues: a.Issues,
			Calls: make([]Call, len(a.Message.ToolCalls)),
		}
		if a.Err != nil {
			out[i].Error = "error"
			if errorWord != nil {
				out[i].Error = errorWord(a.Err)
			}
		}
		for n, c := range a.Message.ToolCalls {
			out[i].Calls[n] = j.ran(ctx, tools, n, c, a.Verdicts)
		}
	}
	return out
}

// ran returns the n-th call of an attempt. A call without a verdict was not
// validated.
func (j *Checker) ran(ctx context.Context, tools []middleware.Tool, n int, c middleware.ToolCall, verdicts []middleware.Verdict) Call {
	final := middleware.Verdict{Call: c, Unchecked: true}
	if n < len(verdicts) {
		final = verdicts[n]
	}
	sent := middleware.Verdict{Call: c, Issues: final.Issues}
	if len(final.Changes) > 0 {
		if got, err := validate(ctx, j.sent, &middleware.Request{Tools: tools}, "", []middleware.ToolCall{c}); err == nil {
			sent = got[0]
		}
	}
	call := j.call(tools, n, c, sent, final)
	if final.Unchecked && final.OK() && !call.Final.Unchecked() {
		call.AsSent, call.Final = NoSchema, NoSchema // not validated, for a reason that the report does not have
	}
	return call
}

// Replies converts the messages that a model got about an attempt.
func Replies(ms []middleware.Message) []Reply {
	out := make([]Reply, len(ms))
	for i, m := range ms {
		out[i] = Reply{Role: m.Role, CallID: m.ToolCallID, Tool: m.ToolName, Text: m.Text()}
	}
	return out
}

// maxJoined is how many attempts of a log one step may have.
const maxJoined = 64

// Join adds the attempts of next to s and reports true, if both are recorded
// attempts of one step: lines that `toolmend serve --record` wrote. Their ids
// differ after the last slash only. Steps must come in the order of the log.
func (s *Step) Join(next *Step) bool {
	if len(s.Attempts) == 0 || len(next.Attempts) == 0 || s.File != next.File {
		return false
	}
	last, first := s.Attempts[len(s.Attempts)-1].N, next.Attempts[0].N
	if last == 0 || first <= last || len(s.Attempts) >= maxJoined || stem(s.ID) == "" || stem(s.ID) != stem(next.ID) {
		return false
	}
	if next.Final >= 0 {
		s.Final = len(s.Attempts) + next.Final
	}
	s.Attempts = append(s.Attempts[:len(s.Attempts):len(s.Attempts)], next.Attempts...)
	s.Duration += next.Duration
	if next.Status != middleware.NoCalls {
		s.Status = next.Status
	}
	s.Error = next.Error
	return true
}

// stem returns what the ids of the attempts of a step have in common.
func stem(id string) string { return id[:max(strings.LastIndexByte(id, '/'), 0)] }
