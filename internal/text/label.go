package text

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
)

const (
	maxLabel = 64  // characters that Label keeps
	maxName  = 128 // characters of a name that Name does not quote
)

// Visible writes the characters of s that a reader cannot see, or that change what is around
// them, as JSON escapes them: control characters, line ends, marks of direction, spaces of other
// widths. So JSON text keeps its meaning. A byte that is not UTF-8 becomes U+FFFD. Line feeds and tabs
// stay if lines is set. All text of others goes through it on its way to a model, a terminal,
// a log or a page.
func Visible(s string, lines bool) string {
	if isPlain(s) && (lines || !strings.ContainsAny(s, "\n\t")) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch high, low := utf16.EncodeRune(r); {
		case unicode.IsPrint(r) || lines && (r == '\n' || r == '\t'):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case high != utf8.RuneError:
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// isPlain reports whether s is ASCII without control characters, line feeds and tabs apart.
func isPlain[T string | []byte](s T) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}

// JSONWriter applies Visible to JSON text. Each Write must hold whole characters.
type JSONWriter struct{ To io.Writer }

func (w JSONWriter) Write(p []byte) (int, error) {
	if isPlain(p) {
		return w.To.Write(p)
	}
	if _, err := io.WriteString(w.To, Visible(string(p), true)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// OneLine returns a text or JSON in one line of visible characters: a line break and the space around it
// become one space.
func OneLine(s string) string {
	if strings.ContainsAny(s, "\r\n") {
		lines := strings.FieldsFunc(s, func(r rune) bool { return r == '\r' || r == '\n' })
		for i := range lines {
			lines[i] = strings.TrimSpace(lines[i])
		}
		s = strings.Join(lines, " ")
	}
	return Visible(s, false)
}

// Name returns a name that others chose as it is if it is short, printable and on one
// line, and else quoted, as a JSON string, and cut.
func Name(s string) string {
	cut := s
	if len(s) > maxName && utf8.RuneCountInString(s) > maxName {
		cut = string([]rune(s[:min(len(s), 4*maxName)])[:maxName])
	}
	if cut == s && Visible(s, false) == s {
		return s
	}
	quoted := Visible(rawjson.Quote(cut), false)
	if cut != s {
		quoted += fmt.Sprintf("… (%d bytes in all)", len(s))
	}
	return quoted
}

// Label returns a name or an id, which may be a model's own words, in a form that is safe in a
// note or an error: Visible, without control tokens, and at most 64 characters of it.
func Label(s string) string {
	s = Visible(s[:min(len(s), 4*(maxLabel+1))], false)
	if utf8.RuneCountInString(s) > maxLabel {
		s = string([]rune(s)[:maxLabel]) + "…"
	}
	return Defuse(s)
}
