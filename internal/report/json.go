package report

import (
	"encoding/json"
	"io"

	"github.com/toolmend/toolmend/internal/text"
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
	Arguments   *string             `json:"arguments,omitempty"` // as sent, if they are asked for
	AsSent      Verdict             `json:"as_sent"`
	Final       Verdict             `json:"final"`
	Issues      []middleware.Issue  `json:"issues"` // as sent
	FinalIssues []middleware.Issue  `json:"final_issues"`
	Changes     []middleware.Change `json:"changes"`
}

// Line is the summary in the lines of JSON. Its keys are stable.
type Line struct {
	Type       string          `json:"type"` // summary
	Files      int             `json:"files"`
	Turns      int             `json:"turns"`
	Calls      int             `json:"calls"`
	Skipped    map[string]int  `json:"skipped"`
	Unreadable int             `json:"unreadable"`
	AsSent     map[Verdict]int `json:"as_sent"`
	Final      map[Verdict]int `json:"final"`
	Stripped   int             `json:"stripped"`
	Mended     int             `json:"mended"`
	Issues     map[string]int  `json:"issues"` // calls by code, as sent
	Notes      []string        `json:"notes"`
}

// WriteJSONCalls writes a line for each call of a step, with all values. Empty
// lists are written as [], not as null. With content the line has the arguments as sent.
func WriteJSONCalls(w io.Writer, s *Step, content bool) error {
	for i := range s.Attempts {
		for n := range s.Attempts[i].Calls {
			c := &s.Attempts[i].Calls[n]
			var arguments *string
			if content {
				arguments = &c.Sent.Arguments
			}
			err := WriteJSON(w, callJSON{
				Arguments: arguments,
				Type:      "call", File: s.File, Line: s.lineOf(i), ID: s.ID, Call: c.Index, CallID: c.Sent.ID,
				Model: s.Model, Source: s.Source, Tool: c.Sent.Name, AsSent: c.AsSent, Final: c.Final,
				Issues: orEmpty(c.Issues), FinalIssues: orEmpty(c.FinalIssues), Changes: orEmpty(c.Changes),
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Line returns the sums for the last line of JSON. Its lists and maps are not nil, if the map
// of Reading is not.
func (s *Summary) Line() Line {
	issues := make(map[string]int)
	for _, c := range s.Codes {
		if c.Sent > 0 {
			issues[c.Code] = c.Sent
		}
	}
	return Line{
		Type: "summary", Files: s.Reading.Files, Turns: s.Turns, Calls: s.Total.Calls,
		Skipped: s.Reading.Skipped, Unreadable: s.Reading.Unreadable, AsSent: s.AsSent, Final: s.Final,
		Stripped: s.Total.Stripped, Mended: s.Total.Mended, Issues: issues, Notes: orEmpty(s.Notes),
	}
}

// WriteJSON writes a value as a line of JSON, of visible characters. It does not escape <, > and &.
func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(text.JSONWriter{To: w})
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// orEmpty returns an empty slice for a nil slice.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
