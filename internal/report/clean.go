package report

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/text"
)

// maxName is how many bytes of a model-written name are kept as a key, and shown.
const maxName = 200

// Visible replaces the characters of s that a reader cannot see or that change
// what is around them: control characters, marks of direction, bytes that are not
// UTF-8. Spaces stay, and line ends and tabs too if lines is set.
func Visible(s string, lines bool) string {
	harmless := func(r rune) bool {
		return unicode.IsPrint(r) && r != utf8.RuneError || lines && (r == '\n' || r == '\t')
	}
	if !strings.ContainsFunc(s, func(r rune) bool { return !harmless(r) }) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case harmless(r):
			b.WriteRune(r)
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			} else {
				b.WriteRune(r)
			}
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// Name returns a model-written name for people: on one line, never empty.
func Name(s string) string {
	if s == "" {
		return "(none)"
	}
	return Visible(text.Clip(s, maxName), false)
}
