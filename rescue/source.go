package rescue

import (
	"strings"

	"github.com/toolmend/toolmend/internal/calltext"
	"github.com/toolmend/toolmend/internal/rawjson"
)

// source is a text that is read from left to right. More may follow.
type source struct {
	text  string
	final bool // nothing follows
	cut   bool // the length limit ended the text
	tools *tools
	ends  map[string]lastMark

	spelled int // number of places at which JSON was read in another spelling
	last    int // the last of these places
}

// mostSpelled limits spelled, because each place may cost a search through the rest of the text.
const mostSpelled = 128

// lastMark is the last index of a mark in a text of this length.
type lastMark struct{ at, length int }

// match is the result of comparing the text at an index with a markup: none is no call,
// partial may become a call, complete is one or more calls, malformed is a call that cannot
// be made.
type match = calltext.State

const (
	none      = calltext.None
	partial   = calltext.Partial
	complete  = calltext.Complete
	malformed = calltext.Malformed
)

// anySize reads JSON of any size.
var anySize = calltext.AnySize

// reading is the result of reading a markup at an index.
type reading struct {
	match     match
	end       int    // if complete: the index after it
	calls     []call // if complete
	named     bool   // an offered tool is named: the text is held until it is decided
	truncated bool   // if complete: the length limit cut a call after these
	issue     issue  // if malformed
	// The answer's text and reasoning, in a markup of whole answers.
	text, thought string
}

// call is a call as the model wrote it.
type call struct {
	name      string // an offered tool
	arguments string // a JSON object
	body      string // the text that holds the name and the arguments; "" if it is only the name
}

// issue is why a call is not made.
type issue struct{ code, what string }

// malformedCall returns the reading of a call that cannot be made.
func malformedCall(code, what string) reading {
	return reading{match: malformed, issue: issue{code, what}}
}

// waiting returns the reading of a call that needs more text.
func waiting(named bool) reading { return reading{match: partial, named: named} }

// missing returns the reading of a call in which a mark is partial or missing.
func (s *source) missing(v match, what string, named bool) reading {
	if v == partial {
		return waiting(named)
	}
	return malformedCall("unreadable", what)
}

// rest returns the reading of a section at the end of the text. If the length limit cut the
// text, the complete calls count.
func (s *source) rest(calls []call, named bool) reading {
	if len(calls) > 0 && s.final && s.cut {
		return reading{match: complete, end: len(s.text), calls: calls, truncated: true}
	}
	return waiting(named || len(calls) > 0)
}

// white is the white space between the parts of a markup.
const white = " \t\r\n"

// space returns the index of the first byte from i on that is not white space.
func (s *source) space(i int) int {
	for i < len(s.text) && strings.IndexByte(white, s.text[i]) >= 0 {
		i++
	}
	return i
}

// matchLiteral compares the text at i with lit. It returns partial if the text ends inside of
// lit.
func (s *source) matchLiteral(i int, lit string) match {
	switch rest := s.text[i:]; {
	case strings.HasPrefix(rest, lit):
		return complete
	case strings.HasPrefix(lit, rest):
		return partial
	}
	return none
}

// matchAny is matchLiteral for several texts. It returns the index of the first complete one,
// or -1.
func (s *source) matchAny(i int, lits ...string) (int, match) {
	best := none
	for n, lit := range lits {
		switch s.matchLiteral(i, lit) {
		case complete:
			return n, complete
		case partial:
			best = partial
		}
	}
	return -1, best
}

// stops reports whether the model ended the text at i.
func (s *source) stops(i int) bool { return i == len(s.text) && s.final && !s.cut }

// maxName is the length in bytes of the longest name of a tool or a parameter.
const maxName = 256

// findStop returns the text from i up to stop, which must be near. A line break is
// allowed only right before stop.
func (s *source) findStop(i int, stop string) (text string, after int, v match) {
	window := s.text[i:min(len(s.text), i+maxName+len(stop))]
	at := strings.Index(window, stop)
	if line := strings.IndexByte(window, '\n'); line >= 0 && (at < 0 || line < at) {
		switch next := i + line + len(window[line:]) - len(strings.TrimLeft(window[line:], white)); {
		case at >= 0 && next != i+at:
			return "", 0, none
		case at < 0 && (next >= len(s.text) || s.matchLiteral(next, stop) == partial):
			return "", 0, partial
		case at < 0:
			return "", 0, none
		}
	}
	switch {
	case at >= 0:
		return window[:at], i + at + len(stop), complete
	case i+len(window) == len(s.text):
		return "", 0, partial
	}
	return "", 0, none
}

// identifier returns the end of the name of a tool or a parameter at i.
func (s *source) identifier(i int) int {
	from := i
	for i < len(s.text) && i-from <= maxName && isName(s.text[i]) {
		i++
	}
	return i
}

// isName reports whether the name of a tool may have this byte.
func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_-.:/", c) >= 0
}

// json reads the object or the array at i, which one of marks follows. It accepts the
// spellings that mend.Syntax repairs; fixed reports whether a repair was necessary.
func (s *source) json(i int, marks ...string) (v rawjson.Value, end int, fixed bool, _ match) {
	v, end, got := calltext.JSON(s.text, i)
	switch got {
	case complete:
		surplus := end + len(s.text[end:]) - len(strings.TrimLeft(s.text[end:], white+"]}>")) // > is what is left of a closing mark
		if _, closed := s.matchAny(surplus, marks...); s.space(end) < surplus && (s.stops(surplus) || surplus < len(s.text) && closed == complete) {
			end = surplus
		}
	case malformed:
		if s.last != i {
			s.last = i
			s.spelled++
		}
		if len(marks) > 0 && s.spelled <= mostSpelled {
			v, end, got = calltext.Spelled(s.text, i, s.final && !s.cut, marks...)
			return v, end, true, got
		}
	}
	return v, end, false, got
}

// callWith reads the arguments of a call at i, whose text begins at from. One of marks
// follows them.
func (s *source) callWith(name string, i, from int, marks ...string) reading {
	if i < len(s.text) && s.text[i] != '{' {
		return malformedCall("unreadable", "the arguments are not a JSON object")
	}
	v, end, _, ok := s.json(i, marks...)
	if ok != complete {
		return s.missing(ok, "the arguments are not JSON", true)
	}
	return reading{match: complete, end: end, calls: []call{{name: name, arguments: v.Raw(), body: s.text[from:end]}}}
}

// raw returns the end of a raw value that starts at i. It ends at the first closer that one of
// next follows, with white space between. Elsewhere the closer is a part of the value. loose
// may accept an earlier end, for models that forget the closer. It returns malformed if there
// are two readings.
func (s *source) raw(i int, closer string, next []string, loose func(at int) match) (end, after int, v match) {
	for at := i; ; at++ {
		n := strings.IndexByte(s.text[at:], closer[0])
		if n < 0 {
			return 0, 0, partial
		}
		at += n
		switch s.matchLiteral(at, closer) {
		case partial:
			return 0, 0, partial
		case complete:
			after := at + len(closer)
			switch _, v := s.matchAny(s.space(after), next...); v {
			case complete:
				return at, after, complete
			case partial:
				return 0, 0, partial
			}
			continue
		}
		if loose != nil {
			if v := loose(at); v != none {
				return at, at, v
			}
		}
	}
}

// closes accepts at as the end of a value without its closing mark. It returns malformed if the
// mark follows later, because the value may end there.
func (s *source) closes(at int, mark string) match {
	last, known := s.ends[mark]
	if !known || last.length != len(s.text) {
		if s.ends == nil {
			s.ends = map[string]lastMark{}
		}
		last = lastMark{strings.LastIndex(s.text, mark), len(s.text)}
		s.ends[mark] = last
	}
	switch {
	case last.at > at:
		return malformed
	case !s.final:
		return partial
	}
	return complete
}
