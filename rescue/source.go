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

	spelled int // places at which JSON was read in another spelling
	last    int // the last one
}

// mostSpelled limits spelled: each place may cost a look at the rest of the text.
const mostSpelled = 128

// lastMark is where a mark stands last in a text of a length.
type lastMark struct{ at, length int }

// match says what the text at a place is: no call, the beginning of something
// that may be a call, one or more calls, or a call that cannot be made.
type match = calltext.State

const (
	none      = calltext.None
	partial   = calltext.Partial
	complete  = calltext.Complete
	malformed = calltext.Malformed
)

// anySize reads JSON of any size.
var anySize = calltext.AnySize

// reading is what a markup finds at a place.
type reading struct {
	match     match
	end       int    // of a whole one: the index behind it
	calls     []call // of a whole one
	named     bool   // an offered tool is named: the text is held until it is decided
	truncated bool   // of a whole one: the length limit cut a call behind these
	issue     issue  // of a broken one
	// A markup of whole answers has the answer's text and reasoning inside.
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

// brokenBy is a call that cannot be made.
func malformedCall(code, what string) reading {
	return reading{match: malformed, issue: issue{code, what}}
}

// waiting is a call that may be whole once more text has arrived.
func waiting(named bool) reading { return reading{match: partial, named: named} }

// missing is the reading of a text that ends, or goes on in another way than the
// markup does.
func (s *source) missing(v match, what string, named bool) reading {
	if v == partial {
		return waiting(named)
	}
	return malformedCall("unreadable", what)
}

// rest ends a section of calls at the end of the text. If the length limit cut the
// text, the whole calls stay.
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

// matchLiteral reports whether lit stands at i: whole, more if the text ends inside
// of it, or notCall.
func (s *source) matchLiteral(i int, lit string) match {
	switch rest := s.text[i:]; {
	case strings.HasPrefix(rest, lit):
		return complete
	case strings.HasPrefix(lit, rest):
		return partial
	}
	return none
}

// matchAny is literal for the first of several texts. It returns its index, -1
// if none stands at i.
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

// stops reports whether the text ends at i for good, by the model's will.
func (s *source) stops(i int) bool { return i == len(s.text) && s.final && !s.cut }

// maxName is the length in bytes of the longest name of a tool or a parameter.
const maxName = 256

// findStop returns the text from i up to stop, which must be near. A line break may
// stand only right before stop.
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

// identifier returns the index behind the name of a tool or a parameter at i.
func (s *source) identifier(i int) int {
	from := i
	for i < len(s.text) && i-from <= maxName && isName(s.text[i]) {
		i++
	}
	return i
}

// isName reports whether a byte may stand in the name of a tool.
func isName(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80 || strings.IndexByte("_-.:/", c) >= 0
}

// json reads the object or the array at i, which one of marks follows. Its text may
// be spelled as mend.Syntax accepts it. fixed means that the value is not the text at
// i as it stands.
func (s *source) json(i int, marks ...string) (v rawjson.Value, end int, fixed bool, _ match) {
	v, end, got := calltext.JSON(s.text, i)
	switch got {
	case complete:
		surplus := end + len(s.text[end:]) - len(strings.TrimLeft(s.text[end:], white+"]}"))
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

// raw returns where a raw value that starts at i ends. That is the first closer
// that one of next follows, with white space between. A value may hold the closer
// elsewhere. loose may accept an earlier end, for models that forget the closer, or
// say that there are two readings: then the verdict is broken.
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

// closes accepts at as the end of a value without its closing mark. If that mark
// follows anywhere, the value may go on to it: the verdict is broken.
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
