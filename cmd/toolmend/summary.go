package main

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// summary is what was counted over a run. It belongs to one goroutine: the one
// that takes results in order, so that the notes stand in the order of the log
// too.
type summary struct {
	Files, Turns, Calls int             // that were read; with -model and -tool, that matched
	Unreadable          int             // lines and whole files
	Skipped             map[string]int  // lines without a call, by what they were instead
	AsSent, Final       map[verdict]int // calls
	Notes               []string        // why schemas cannot be used, each once

	total   counts
	byModel map[string]*counts
	byTool  map[string]*counts
	faults  map[string]*fault // by code of the issue
	bad     int               // calls that are not good as sent
	badEnd  int               // and in the end
	places  []place           // the first bad calls
	noted   map[string]bool   // what is in Notes
}

// counts is a row of a table: calls, by what became of them.
type counts struct {
	calls       int
	invalid     int // as sent, like the next four
	unparseable int // not JSON, or no object
	unknown     int // no such tool
	truncated   int
	unjudged    int // no schema, or none that can be used: no part of the rates
	stripped    int // empty values went
	mended      int // changed in any other way
	final       int // not valid in the end
}

// fault counts the calls that have issues of one code. A call with several
// issues of a code counts once for it.
type fault struct{ sent, final int }

// newSummary returns a summary of nothing. Its maps are never nil, so that in
// JSON they are {}.
func newSummary() *summary {
	return &summary{
		Skipped: map[string]int{}, AsSent: map[verdict]int{}, Final: map[verdict]int{},
		byModel: map[string]*counts{}, byTool: map[string]*counts{},
		faults: map[string]*fault{}, noted: map[string]bool{},
	}
}

// place is a call that is not good as sent, and where it is in the log.
type place struct {
	file          string
	line          int
	tool          string
	asSent, final verdict
	codes         []string
}

// add counts a call in every table, and keeps its note unless it was there
// already: a log has the same tools in each of its lines. It keeps the places
// of the first keep bad calls, of all for 0.
func (s *summary) add(j *judged, keep int) {
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
// shows no change, so it counts as neither stripped nor mended.
func (c *counts) add(j *judged) {
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
		c.unjudged++
	}
	stripped, mended := false, false
	for _, ch := range j.changes {
		switch ch.By {
		case "strip":
			stripped = true
		case "empty": // "" read as {}: nothing was wrong with it
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

// badAsSent is how many calls were not valid as sent.
func (c *counts) badAsSent() int { return c.invalid + c.unparseable + c.unknown + c.truncated }

// at returns the value of key, made if need be.
func at[V any](m map[string]*V, key string) *V {
	if m[key] == nil {
		m[key] = new(V)
	}
	return m[key]
}

// sorted returns the keys of m in the order of less-than on how, largest
// first, and by name where that is equal.
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
