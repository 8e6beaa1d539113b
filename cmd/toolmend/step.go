package main

import (
	"github.com/toolmend/toolmend/cmd/toolmend/internal/recorded"
	"github.com/toolmend/toolmend/report"
)

// stepOf makes a step with one attempt of a turn.
func stepOf(l recorded.Line, t *recorded.Turn, calls []report.Call) report.Step {
	return report.Step{
		ID: t.ID, File: l.File, Line: l.N, Source: t.Source, Model: t.Model, Tools: t.Tools,
		Attempts: []report.Attempt{{Model: t.Model, Calls: calls, FinishReason: t.Finish, Line: l.N}},
	}
}
