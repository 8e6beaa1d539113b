package argsvalidate

import (
	"fmt"
	"regexp"
	"strings"
)

// around returns what was sent as it is, but for line breaks: at most
// maxQuotation bytes of it, near offset.
func around(s string, offset int) string {
	start, end := 0, len(s)
	if len(s) > maxQuotation {
		start = max(min(offset-maxQuotation/2, len(s)-maxQuotation), 0)
		end = start + maxQuotation
	}
	text := oneLine(strings.ToValidUTF8(s[start:end], "\uFFFD"))
	if start > 0 {
		text = "…" + text
	}
	if end < len(s) {
		text += "…"
	}
	if end-start < len(s) {
		text += fmt.Sprintf(" (%d bytes in all)", len(s))
	}
	return text
}

// quotation quotes the beginning of s.
func quotation(s string) string { return around(s, 0) }

var lineBreaks = regexp.MustCompile(`\s*[\r\n]\s*`)

// oneLine puts JSON into one line, of which a string has one already.
func oneLine(raw string) string { return lineBreaks.ReplaceAllString(raw, " ") }
