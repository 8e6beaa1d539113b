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

// Reader returns a reader as NewReader does.
func (g *Log) Reader(file string, r io.Reader) *Reader {
	out := NewReader(file, r)
	out.session.seen = g.seen
	return out
}

// Next returns the next line that is not blank, without its end. Its Text is the caller's.
// Lines that belong together, as those of a session of an agent, are read to the end of the
// file: in their places come lines that have nothing but a reason why they are skipped, and
// at the end a line for each turn. The error is io.EOF at the end. Any other is an *Error,
// after which the next call goes on where that is possible and returns io.EOF where it is
// not.
func (r *Reader) Next() (Line, error) {
	for len(r.queue) == 0 {
		l, err := r.raw()
		switch {
		case err == io.EOF && r.ended:
			return l, err
		case err == io.EOF:
			r.finish()
		case err != nil:
			r.push(Line{}, err)
		default:
			r.look(l)
		}
	}
	next := r.queue[0]
	r.queue = r.queue[1:]
	return next.line, next.err
}

// lineOrError is a result of Next.
type lineOrError struct {
	line Line
	err  error
}

// push puts a result behind the others, and in front of it a line that is not JSON.
func (r *Reader) push(l Line, err error) {
	r.flush()
	r.queue = append(r.queue, lineOrError{l, err})
}

// flush queues a line that is not JSON.
func (r *Reader) flush() {
	if r.cut != nil {
		r.queue, r.cut = append(r.queue, lineOrError{*r.cut, nil}), nil
	}
}

// look reads a line that belongs to a session, or passes it on.
func (r *Reader) look(l Line) {
	doc, err := rawjson.Parse(string(l.Text), lineLimits)
	if err != nil {
		r.flush()
		r.cut = &l // it may be the last one
		return
	}
	l.value = doc.Root()
	s := r.session
	s.line = l.N
	before := s.found()
	switch {
	case s.takes(l.value):
		skip := SkippedNoCalls
		if v := l.value; s.found() == before && !s.form.messages && (bareAnswer(v) || v.Get("response").Exists()) && mayHoldCall(v.Raw()) {
			skip = SkippedUnread
		}
		l = Line{File: l.File, N: l.N, skip: skip}
	case s.form != nil && (s.form.session || s.form.lines) && !isRecorded(l.value) && formOf(l.value) == nil && !bareAnswer(l.value):
		l = Line{File: l.File, N: l.N, skip: Skipped("of type " + display.Visible(display.Clip(cmp.Or(l.value.Get("type").Str(), "(none)"), 40), false))}
	}
	r.push(l, nil)
}

// finish queues what is known at the end of a file.
func (r *Reader) finish() {
	r.ended = true
	s := r.session
	if r.cut != nil && s.form != nil && r.unended && endsEarly(r.cut.Text) {
		r.cut.skip = SkippedCut
	}
	r.flush()
	for _, t := range s.take() {
		r.push(Line{File: r.file, N: t.Line, turn: &t}, nil)
	}
	for range s.repeats {
		r.push(Line{File: r.file, skip: SkippedRepeat}, nil)
	}
	for _, err := range s.errs {
		r.push(Line{}, err)
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
