package mend

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// double reads a string in double quotes. Raw control characters are escaped,
// \' loses its backslash; escapes that JSON does not have, as in "C:\dir", are refused:
// the backslash may have been meant as one.
func (r *repairer) double() bool {
	for r.pos++; r.pos < r.end; {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.pos++
			return r.delimited()
		case c == '\\':
			if !r.escape() {
				return false
			}
		case c < ' ' && len(r.edits) > mostChanges:
			return r.rest()
		case c < ' ':
			r.edit(r.pos, r.pos+1, escaped(c))
			r.pos++
		default:
			r.pos++
		}
	}
	return false
}

// rest reads the rest of a string in double quotes as one edit. A string may
// hold a million control characters; so many edits are no longer told apart in
// the changes.
func (r *repairer) rest() bool {
	start := r.pos
	var b strings.Builder
	for r.pos < r.end {
		switch c := r.text[r.pos]; {
		case c == '"':
			r.edit(start, r.pos, b.String())
			r.pos++
			return r.delimited()
		case c == '\\':
			n := escapeLen(r.text[r.pos:r.end])
			if n == 0 {
				return false
			}
			r.unescape(&b, n)
		case c < ' ':
			b.WriteString(escaped(c))
			r.pos++
		default:
			from := r.pos
			for r.pos < r.end && r.text[r.pos] >= ' ' && r.text[r.pos] != '"' && r.text[r.pos] != '\\' {
				r.pos++
			}
			b.WriteString(r.text[from:r.pos])
		}
	}
	return false
}

// unescape writes the escape of n bytes that comes next, as JSON has it, and passes over
// it.
func (r *repairer) unescape(b *strings.Builder, n int) {
	if r.text[r.pos+1] == '\'' {
		b.WriteByte('\'')
	} else {
		b.WriteString(r.text[r.pos : r.pos+n])
	}
	r.pos += n
}

// escapes are those of the control characters, as rawjson.Quote writes them.
var escapes = func() (t [' ']string) {
	for c := range t {
		quoted := rawjson.Quote(string(rune(c)))
		t[c] = quoted[1 : len(quoted)-1]
	}
	return t
}()

// escaped returns a control character or a double quote as JSON has it in a
// string.
func escaped(c byte) string {
	if c == '"' {
		return `\"`
	}
	return escapes[c]
}

// escape passes over an escape in a string in double quotes.
func (r *repairer) escape() bool {
	n := escapeLen(r.text[r.pos:r.end])
	if n == 0 {
		return false
	}
	if r.text[r.pos+1] == '\'' {
		r.edit(r.pos, r.pos+1, "")
	}
	r.pos += n
	return true
}

// escapeLen returns how long the escape at the start of s is, 0 if neither
// JSON nor Python and JavaScript alike have it.
func escapeLen(s string) int {
	if len(s) < 2 {
		return 0
	}
	switch s[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't', '\'':
		return 2
	case 'u':
		if len(s) >= 6 && strings.Trim(s[2:6], "0123456789abcdefABCDEF") == "" {
			return 6
		}
	}
	return 0
}

// single reads a string in single quotes and writes it in double ones. A quote in the
// middle of a word, as in 'don't', is not followed by what may follow a string: then the
// text is refused.
func (r *repairer) single() bool {
	start := r.pos
	var b strings.Builder
	b.WriteByte('"')
	for r.pos++; r.pos < r.end; {
		switch c := r.text[r.pos]; {
		case c == '\'':
			r.pos++
			b.WriteByte('"')
			r.edit(start, r.pos, b.String())
			return r.delimited()
		case c == '\\':
			n := escapeLen(r.text[r.pos:r.end])
			if n == 0 {
				return false
			}
			r.unescape(&b, n)
		case c < ' ' || c == '"':
			b.WriteString(escaped(c))
			r.pos++
		default:
			from := r.pos
			for r.pos < r.end && r.text[r.pos] >= ' ' && strings.IndexByte("'\\\"", r.text[r.pos]) < 0 {
				r.pos++
			}
			b.WriteString(r.text[from:r.pos])
		}
	}
	return false
}

// delimited reports whether a string that just ended is followed by what may
// follow one: else its quote was not its end.
func (r *repairer) delimited() bool {
	return r.pos == r.end || strings.IndexByte(" \t\r\n,:]}/#", r.text[r.pos]) >= 0 || strings.HasPrefix(r.text[r.pos:], "\u00a0")
}
