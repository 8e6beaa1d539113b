package mend

import (
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// double reads a string in double quotes. Raw control characters are escaped,
// \' loses its backslash; escapes that JSON does not have are refused.
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
		case c < ' ':
			quoted := rawjson.Quote(string(rune(c)))
			r.edit(r.pos, r.pos+1, quoted[1:len(quoted)-1])
			r.pos++
		default:
			r.pos++
		}
	}
	return false
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

// single reads a string in single quotes and writes it in double ones.
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
			if r.text[r.pos+1] == '\'' {
				b.WriteByte('\'')
			} else {
				b.WriteString(r.text[r.pos : r.pos+n])
			}
			r.pos += n
		case c < ' ' || c == '"':
			quoted := rawjson.Quote(string(rune(c)))
			b.WriteString(quoted[1 : len(quoted)-1])
			r.pos++
		default:
			_, size := utf8.DecodeRuneInString(r.text[r.pos:])
			b.WriteString(r.text[r.pos : r.pos+size])
			r.pos += size
		}
	}
	return false
}

// delimited reports whether a string that just ended is followed by what may
// follow one: else its quote was not its end.
func (r *repairer) delimited() bool {
	return r.pos == r.end || strings.IndexByte(" \t\r\n,:]}/#", r.text[r.pos]) >= 0 || strings.HasPrefix(r.text[r.pos:], "\u00a0")
}
