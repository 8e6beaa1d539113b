package recorded

import (
	"iter"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	display "github.com/toolmend/toolmend/internal/text"
)

// Log reads the files of one command. A call that several files have, because a session was
// resumed or forked, counts once.
type Log struct{ seen map[string]bool }

// NewLog returns a Log that has read nothing.
func NewLog() *Log { return &Log{map[string]bool{}} }

// Lines yields the lines of a file as Reader.All does. Lines that belong together, as those
// of a session of an agent, are read to the end of the file: in their places come lines that
// have nothing but a reason why they are skipped, and at the end a line for each turn.
func (g *Log) Lines(r *Reader) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		s := newSession(r.file, g.seen)
		var cut *Line // it is not JSON, and it may be the last one
		known := false
		for l, err := range r.All() {
			if cut != nil && !yield(*cut, nil) {
				return
			}
			cut = nil
			if err == nil {
				var doc *rawjson.Doc
				if doc, err = rawjson.Parse(string(l.Text), lineLimits); err != nil {
					kept := l
					cut, err = &kept, nil
					continue
				}
				l.value = doc.Root()
				s.line = l.N
				if s.takes(l.value, &known) {
					l = Line{File: l.File, N: l.N, skip: SkippedNoCalls}
				} else if known && s.form.session && !isRecorded(l.value) && formOf(l.value) == nil && !bareAnswer(l.value) {
					l = Line{File: l.File, N: l.N, skip: Skipped("of type " + display.Visible(display.Clip(typeOf(l.value), 40), false))}
				}
			}
			if !yield(l, err) {
				return
			}
		}
		if cut != nil {
			if known {
				cut.skip = SkippedCut
			}
			if !yield(*cut, nil) {
				return
			}
		}
		for _, t := range s.take() {
			if !yield(Line{File: r.file, N: t.Line, turn: &t}, nil) {
				return
			}
		}
		for range s.repeats {
			if !yield(Line{File: r.file, skip: SkippedRepeat}, nil) {
				return
			}
		}
		for _, err := range s.errs {
			if !yield(Line{}, err) {
				return
			}
		}
	}
}

// typeOf returns what a record of no form says about itself.
func typeOf(v rawjson.Value) string {
	if kind := v.Get("type").Str(); kind != "" {
		return kind
	}
	return "(none)"
}

// bareAnswer reports whether a record may be the answer of a provider.
func bareAnswer(v rawjson.Value) bool {
	return v.Get("choices").Exists() || v.Get("candidates").Exists() || v.Get("stop_reason").Exists() || v.Get("output").Exists() || v.Get("done").Exists()
}

// takes reads a line that belongs to a session, and returns whether it does. An array as a
// line is the list of its elements.
func (s *session) takes(v rawjson.Value, known *bool) bool {
	if v.Kind() == rawjson.Array {
		taken := false
		for e := range v.Each() {
			taken = s.takes(e, known) || taken
		}
		return taken
	}
	if v.Kind() != rawjson.Object || isRecorded(v) || v.Get("ref").Exists() && v.Get("tools").Exists() {
		return false
	}
	list := records(v)
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
	*known = true
	return true
}

// Describe says what a record of no form looks like: its members, and the form that it is
// nearest to. It shows no values.
func (l Line) Describe() string {
	v := l.value
	if doc, err := rawjson.Parse(string(l.Text), lineLimits); err == nil && !v.Exists() {
		v = doc.Root()
	}
	out := "the first such record has the members " + display.Visible(membersOf(v), false)
	if near := nearest(v); near != "" {
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
