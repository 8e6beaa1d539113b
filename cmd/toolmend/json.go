package main

import (
	"encoding/json"
	"io"

	"github.com/toolmend/toolmend/middleware"
)

// callJSON is the line of one call. Its keys are stable.
type callJSON struct {
	Type        string              `json:"type"` // call
	File        string              `json:"file"`
	Line        int                 `json:"line"`
	ID          string              `json:"id"`   // of the recorded turn
	Call        int                 `json:"call"` // index in its turn, from 0
	CallID      string              `json:"call_id"`
	Model       string              `json:"model"`
	Source      string              `json:"source"`
	Tool        string              `json:"tool"`
	AsSent      verdict             `json:"as_sent"`
	Final       verdict             `json:"final"`
	Issues      []middleware.Issue  `json:"issues"` // as sent
	FinalIssues []middleware.Issue  `json:"final_issues"`
	Changes     []middleware.Change `json:"changes"`
}

// summaryJSON is the last line. Its keys are stable.
type summaryJSON struct {
	Type       string          `json:"type"` // summary
	Files      int             `json:"files"`
	Turns      int             `json:"turns"`
	Calls      int             `json:"calls"`
	Skipped    map[string]int  `json:"skipped"`
	Unreadable int             `json:"unreadable"`
	AsSent     map[verdict]int `json:"as_sent"`
	Final      map[verdict]int `json:"final"`
	Stripped   int             `json:"stripped"`
	Mended     int             `json:"mended"`
	Issues     map[string]int  `json:"issues"` // calls by code, as sent
	Notes      []string        `json:"notes"`

	Strip     string          `json:"strip"` // the settings of this run
	Mend      string          `json:"mend"`
	Unknown   string          `json:"unknown"`
	TurnRates *turnRates      `json:"turn_rates"` // for -baseline
	Measures  *measures       `json:"measures"`
	Baseline  *comparisonJSON `json:"baseline,omitempty"`
}

// writeCall writes the line of one call. Empty lists are written as [], not as
// null.
func writeCall(w io.Writer, j *checked) {
	writeLine(w, callJSON{
		Type: "call", File: j.file, Line: j.line, ID: j.turn.ID, Call: j.index, CallID: j.call.ID,
		Model: j.turn.Model, Source: j.turn.Source, Tool: j.call.Name,
		AsSent: j.asSent, Final: j.final,
		Issues: orEmpty(j.issues), FinalIssues: orEmpty(j.finalIssues), Changes: orEmpty(j.changes),
	})
}

// writeSummary writes the last line, even if there was no call. Keys of maps
// are sorted.
func writeSummary(w io.Writer, s *summary, o settings) {
	issues := make(map[string]int)
	for code, f := range s.faults {
		if f.sent > 0 {
			issues[code] = f.sent
		}
	}
	writeLine(w, summaryJSON{
		Type: "summary", Files: s.Files, Turns: s.Turns, Calls: s.Calls,
		Skipped: s.Skipped, Unreadable: s.Unreadable, AsSent: s.AsSent, Final: s.Final,
		Stripped: s.total.stripped, Mended: s.total.mended, Issues: issues, Notes: orEmpty(s.Notes),
		Strip: o.stripName, Mend: o.mendName, Unknown: o.unknownName, TurnRates: &s.rates, Measures: &s.measures, Baseline: s.comparison.json(),
	})
}

// writeLine writes a value that always marshals. w is a bufio.Writer, which
// returns its first error from Flush.
func writeLine(w io.Writer, v any) {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

// orEmpty returns an empty slice for a nil slice.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
