package text

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel is how many characters Label keeps.
const maxLabel = 64

// Printable replaces the characters that move a terminal's cursor, end a line, or
// reverse its direction.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Label returns a name or an id, which may be a model's own words, in a form that is safe in a
// note or an error: on one line, without control and formatting
// characters, without control tokens, and at most 64 characters of it.
func Label(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), 4*(maxLabel+1))], "\uFFFD")
	s = Printable(s)
	if utf8.RuneCountInString(s) > maxLabel {
		s = string([]rune(s)[:maxLabel]) + "…"
	}
	return Defuse(s)
}
