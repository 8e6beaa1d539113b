package rescue

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// source is a text that is read from left to right. More may follow.
type source struct {
	text  string
	final bool // nothing follows
	cut   bool // the length limit ended the text
	tools *tools
	ends  map[string]lastMark
}

// lastMark is where a mark stands last in a text of a length.
type lastMark struct{ at, length int }

// verdict says what the text at a place is.
type verdict uint8

const (
	notCall verdict = iota // no call
	more                   // the text ends inside something that may be a call
	whole                  // one or more calls
	broken                 // a call that cannot be made
)

// reading is what a markup finds at a place.
type reading struct {
	verdict verdict
	end     int    // of a whole one: the index behind it
	calls   []call // of a whole one
	named   bool   // an offered tool is named: the text is held until it is decided
	half    bool   // of a whole one: the length limit cut a call behind these
	issue   issue  // of a broken one
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
func brokenBy(code, what string) reading {
	return reading{verdict: broken, issue: issue{code, what}}
}

// waiting is a call that may be whole once more text has arrived.
func waiting(named bool) reading { return reading{verdict: more, named: named} }

// space returns the index of the first byte from i on that is not white space.
func (s *source) space(i int) int {
	for i < len(s.text) && strings.IndexByte(" \t\r\n", s.text[i]) >= 0 {
		i++
	}
	return i
}

// literal reports whether lit stands at i: whole, more if the text ends inside
// of it, or notCall.
func (s *source) literal(i int, lit string) verdict {
	switch rest := s.text[i:]; {
	case strings.HasPrefix(rest, lit):
		return whole
	case strings.HasPrefix(lit, rest):
		return more
	}
	return notCall
}

// either is literal for the first of several texts. It returns its index, -1
// if none stands at i.
func (s *source) either(i int, lits ...string) (int, verdict) {
	waits := false
	for n, lit := range lits {
		switch s.literal(i, lit) {
		case whole:
			return n, whole
		case more:
			waits = true
		}
	}
	if waits {
		return -1, more
	}
	return -1, notCall
}

// stops reports whether the text ends at i for good, by the model's will.
func (s *source) stops(i int) bool { return i == len(s.text) && s.final && !s.cut }

// maxName is the length in bytes of the longest name of a tool or a parameter.
const maxName = 256

// until returns the text from i up to stop, which must be near and on the same
// line.
func (s *source) until(i int, stop string) (found string, after int, v verdict) {
	window := s.text[i:min(len(s.text), i+maxName+len(stop))]
	at := strings.Index(window, stop)
	if line := strings.IndexByte(window, '\n'); line >= 0 && (at < 0 || line < at) {
		return "", 0, notCall
	}
	switch {
	case at >= 0:
		return window[:at], i + at + len(stop), whole
	case i+len(window) == len(s.text):
		return "", 0, more
	}
	return "", 0, notCall
}

// anySize reads JSON of any size: rawjson takes linear time, and the codec has
// limited the text.
var anySize = rawjson.Limits{Bytes: -1, AnyBytes: true}

// json reads the object or the array at i. The verdict is broken if it is none.
// The text is read in growing pieces, so that the work depends on the value and
// not on what follows.
func (s *source) json(i int) (v rawjson.Value, end int, _ verdict) {
	for size := 1 << 10; ; size *= 2 {
		text := s.text[i:min(len(s.text), i+size)]
		doc, err := rawjson.Parse(text, anySize)
		var bad *rawjson.Error
		if errors.As(err, &bad) && bad.Code == rawjson.Trailing {
			doc, err = rawjson.Parse(text[:bad.Offset], anySize)
		}
		if err == nil {
			_, n := doc.Root().Span()
			return doc.Root(), i + n, whole
		}
		// A piece may end inside of an escape or a word.
		cut := bad != nil && (bad.AtEnd || bad.Offset+len(`\uD83D\uDE00`) > len(text))
		switch {
		case i+size < len(s.text) && cut:
		case bad != nil && bad.AtEnd:
			return rawjson.Value{}, 0, more
		default:
			return rawjson.Value{}, 0, broken
		}
	}
}

// value returns where a raw value that starts at i ends. That is the first
// closer that one of next follows, with white space between. A value may hold
// the closer elsewhere. loose may accept an earlier end, for models that forget
// the closer, or say that there are two readings: then the verdict is broken.
func (s *source) value(i int, closer string, next []string, loose func(at int) verdict) (end, after int, v verdict) {
	for at := i; ; at++ {
		n := strings.IndexByte(s.text[at:], '<')
		if n < 0 {
			return 0, 0, more
		}
		at += n
		switch s.literal(at, closer) {
		case more:
			return 0, 0, more
		case whole:
			after := at + len(closer)
			switch _, v := s.either(s.space(after), next...); v {
			case whole:
				return at, after, whole
			case more:
				return 0, 0, more
			}
			continue
		}
		if v := loose(at); v != notCall {
			return at, at, v
		}
	}
}

// strict is a loose that accepts nothing.
func strict(int) verdict { return notCall }

// restOfLine returns the text from i to the end of the line, which must be near.
func (s *source) restOfLine(i int) (found string, after int, v verdict) {
	window := s.text[i:min(len(s.text), i+maxName)]
	switch at := strings.IndexByte(window, '\n'); {
	case at >= 0:
		return window[:at], i + at + 1, whole
	case i+len(window) == len(s.text):
		return "", 0, more
	}
	return "", 0, notCall
}

// closes accepts at as the end of a value without its closing mark. If that mark
// follows anywhere, the value may go on to it: the verdict is broken.
func (s *source) closes(at int, mark string) verdict {
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
		return broken
	case !s.final:
		return more
	}
	return whole
}
