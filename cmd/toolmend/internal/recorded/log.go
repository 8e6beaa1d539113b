package recorded

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	display "github.com/toolmend/toolmend/internal/text"
)

// Log reads the files of one command. A call that several files have, because a session was
// resumed or forked, counts once.
type Log struct{ seen map[callKey]bool }

// NewLog returns a Log that has read nothing.
func NewLog() *Log { return &Log{map[callKey]bool{}} }

// Reader returns a reader of r, whose lines are said to come from file.
// gzip is undone, whatever the file is called.
func (g *Log) Reader(file string, r io.Reader) *Reader {
	return &Reader{file: file, from: r, max: maxLine, session: newSession(file, g.seen)}
}

// look reads a line that belongs to the session, or leaves it as it is.
func (s *session) look(l *Line) {
	s.line = l.N
	before := s.found()
	switch v := l.value; {
	case s.takes(v):
		skip := SkippedNoCalls
		if s.found() == before && !s.form.messages && (bareAnswer(v) || v.Get("response").Exists()) && mayHoldCall(v.Raw()) {
			skip = SkippedUnread
		}
		*l = Line{File: l.File, N: l.N, skip: skip}
	case s.form != nil && (s.form.session || s.form.lines) && !isRecorded(v) && formOf(v) == nil && !bareAnswer(v):
		kind := display.Clip(cmp.Or(v.Get("type").Str(), "(none)"), 40)
		*l = Line{File: l.File, N: l.N, skip: Skipped("of type " + display.Visible(kind, false))}
	}
}

// bareAnswer reports whether a record may be the answer of a provider.
func bareAnswer(v rawjson.Value) bool {
	return v.Get("choices").Exists() || v.Get("candidates").Exists() || v.Get("stop_reason").Exists() || v.Get("output").Exists() || v.Get("done").Exists()
}

// takes reads a line that belongs to a session, and returns whether it does. An array as a
// line is the list of its elements.
func (s *session) takes(v rawjson.Value) bool {
	if v.Kind() == rawjson.Array {
		taken := false
		for e := range v.Each() {
			taken = s.takes(e) || taken
		}
		return taken
	}
	if v.Kind() != rawjson.Object || isRecorded(v) || v.Get("ref").Exists() && v.Get("tools").Exists() {
		return false
	}
	list := records(v, maxLists)
	across := false
	for _, r := range list {
		f := formOf(r)
		across = across || f != nil && f.across
	}
	if !across {
		return false
	}
	for _, r := range list {
		s.record(r)
	}
	return true
}

// Describe says what a record of no form looks like: its members, and the form that it is
// nearest to. It shows no values.
func (l Line) Describe() string {
	out := "the first such record has the members " + display.Visible(membersOf(l.value), false)
	if near := nearest(l.value); near != "" {
		out += "; the nearest form is " + near
	}
	return out
}

// callWords are members of calls in the forms of programs.
var callWords = []string{"tool_calls", "tool_use", "function_call", "functionCall", "tool_call", "toolCalls", "toolName", "toolUse", "tool_name"}

// MayHoldCall reports whether a record of no form looks as if it had a call.
func (l Line) MayHoldCall() bool { return mayHoldCall(string(l.Text)) }

func mayHoldCall(text string) bool {
	return slices.ContainsFunc(callWords, func(word string) bool { return strings.Contains(text, `"`+word+`"`) })
}
