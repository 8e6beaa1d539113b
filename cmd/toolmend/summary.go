package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// summary counts the results of a run. Only the goroutine that takes results
// in order uses it, so the notes are in the order of the log too.
type summary struct {
	Files, Turns, Calls int             // read; with -model and -tool, those that match
	Unreadable          int             // lines and whole files
	Skipped             map[string]int  // lines without a call, by kind
	AsSent, Final       map[verdict]int // calls
	Notes               []string        // why schemas cannot be used, without repetitions

	rates      turnRates
	measures   measures
	comparison *comparison // nil without -baseline

	total   counts
	byModel map[string]*counts
	byTool  map[string]*counts
	faults  map[string]*fault // by issue code
	bad     int               // calls that are not good as sent
	badEnd  int               // calls that are not good in the end
	places  []place           // the first bad calls
	noted   map[string]bool   // the content of Notes
}

// counts is a row of a table: the number of calls by result.
type counts struct {
	calls       int
	invalid     int // as sent, like the next four
	unparseable int // not JSON, or not an object
	unknown     int // unknown tool
	truncated   int
	unchecked   int // no usable schema: not part of the rates
	stripped    int // empty values were removed
	mended      int // changed in another way
	final       int // invalid in the end
}

// fault counts the calls that have issues with one code. A call with several
// issues of the code counts once.
type fault struct{ sent, final int }

// newSummary returns an empty summary. Its maps are not nil, so they are {} in
// JSON.
func newSummary() *summary {
	return &summary{
		Skipped: map[string]int{}, AsSent: map[verdict]int{}, Final: map[verdict]int{},
		rates:    turnRates{Models: map[string]*turnRate{}, Tools: map[string]*turnRate{}},
		measures: measures{Models: map[string]*measured{}},
		byModel:  map[string]*counts{}, byTool: map[string]*counts{},
		faults: map[string]*fault{}, noted: map[string]bool{},
	}
}

// place is a bad call and its place in the log. It holds no arguments: a summary may be
// shown to people who must not see them.
type place struct {
	file          string
	line          int
	tool          string
	asSent, final verdict
	codes         []string
}

// add counts a call in every table. It keeps the call's note once, because a
// log repeats the same tools in each line. It keeps the places of the first
// keep bad calls, or of all if keep is 0.
func (s *summary) add(j *checked, keep int) {
	s.Calls++
	s.AsSent[j.asSent]++
	s.Final[j.final]++
	if !j.asSent.good() {
		s.bad++
		if keep == 0 || len(s.places) < keep {
			s.places = append(s.places, place{j.file, j.line, j.call.Name, j.asSent, j.final, codes(j.issues)})
		}
	}
	if !j.final.good() {
		s.badEnd++
	}
	s.total.add(j)
	at(s.byModel, j.turn.Model).add(j)
	at(s.byTool, j.call.Name).add(j)
	for _, code := range codes(j.issues) {
		at(s.faults, code).sent++
	}
	for _, code := range codes(j.finalIssues) {
		at(s.faults, code).final++
	}
	if j.note != "" && !s.noted[j.note] {
		s.noted[j.note] = true
		s.Notes = append(s.Notes, j.note)
	}
}

// add counts a call in one row. A call that was stripped and is still invalid
// is returned unchanged, so it counts neither as stripped nor as repaired.
func (c *counts) add(j *checked) {
	c.calls++
	switch j.asSent {
	case invalid:
		c.invalid++
	case badJSON, notObject:
		c.unparseable++
	case unknownTool:
		c.unknown++
	case truncated:
		c.truncated++
	case noSchema, badSchema:
		c.unchecked++
	}
	stripped, mended := false, false
	for _, ch := range j.changes {
		switch ch.By {
		case "strip":
			stripped = true
		case "empty": // "" was read as {}, which is valid
		default:
			mended = true
		}
	}
	if stripped {
		c.stripped++
	}
	if mended {
		c.mended++
	}
	if len(j.finalIssues) > 0 {
		c.final++
	}
}

// badAsSent returns the number of calls that were invalid as sent.
func (c *counts) badAsSent() int { return c.invalid + c.unparseable + c.unknown + c.truncated }

// at returns the value of key. It adds one if it is missing.
func at[V any](m map[string]*V, key string) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// sorted returns the keys of m, sorted by how in descending order, then by
// name, so that the output of two runs is the same.
func sorted[V any](m map[string]*V, how ...func(*V) int) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		for _, f := range how {
			if c := cmp.Compare(f(m[b]), f(m[a])); c != 0 {
				return c
			}
		}
		return strings.Compare(a, b)
	})
}
