package check

import (
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/internal/report"
)

// stepOf makes a step with one attempt of a turn. Steps of one exchange that the
// gateway recorded can be joined: see report.Step.Join.
func stepOf(l recorded.Line, t *recorded.Turn, calls []report.Call) report.Step {
	if t.Line > 0 {
		l.N = t.Line
	}
	s := report.Step{Attempts: make([]report.Attempt, 1)}
	if t.Served != nil {
		s = *t.Served
	}
	s.ID, s.File, s.Line, s.Source, s.Model, s.Tools = t.ID, l.File, l.N, t.Source, t.Model, t.Tools
	a := &s.Attempts[0]
	a.Model, a.Calls, a.FinishReason, a.Line = t.Model, calls, t.Finish, l.N
	return s
}
