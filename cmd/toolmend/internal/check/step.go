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
	a := report.Attempt{Model: t.Model, Calls: calls, FinishReason: t.Finish, Line: l.N}
	s := report.Step{ID: t.ID, File: l.File, Line: l.N, Source: t.Source, Model: t.Model, Tools: t.Tools}
	if r := t.Served; r != nil {
		s.Time, s.Mode, s.Client, s.Format, s.Path = r.Time, r.Mode, r.Client, r.Format, r.Path
		s.Status, s.Duration = r.Status, r.Duration
		if !r.Final {
			s.Final = -1
			if r.Attempt == r.Attempts {
				s.Error = r.Error
			}
		}
		a.N, a.Error, a.Usage, a.Duration = r.Attempt, r.Error, r.Usage, r.Duration
		a.Replies, a.Issues = report.Replies(r.Replies), r.Issues
		if r.Answer != nil {
			a.Text = r.Answer.Text()
		}
	}
	s.Attempts = []report.Attempt{a}
	return s
}
