package codec

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Frame returns data, one JSON text, as an event that follows the first taken
// bytes, framed as they are: an SSE event, a line, or an element that closes
// the array. name is that of an SSE event; "" for none. It is nil for an answer
// that is not streamed.
func (b *Buffer) Frame(taken int, name, data string) []byte {
	framing := b.framing
	if framing == unknown { // nothing of the answer has come
		framing = sse
		if b.byLine {
			framing = lines
		}
	}
	switch framing {
	case sse:
		out := "data: " + OneLine(data) + "\n\n"
		if name != "" {
			out = "event: " + name + "\n" + out
		}
		if strings.Contains(b.Text(), "\r\n") { // a client may look for one kind only
			out = strings.ReplaceAll(out, "\n", "\r\n")
		}
		return []byte(out)
	case lines:
		return []byte(OneLine(data) + "\n")
	case array:
		out, _, _ := b.Shown()
		before := strings.TrimLeft(out[:taken], bom+" \t\r\n")
		switch {
		case before == "":
			data = "[" + data
		case before != "[":
			data = ",\r\n" + data
		}
		return []byte(data + "\n]")
	}
	return nil
}

// IsEvents reports whether the body is a stream of server-sent events.
func (b *Buffer) IsEvents() bool { return b.framing == sse }

// Comment returns text as a comment of a stream of server-sent events; nil in
// any other framing.
func (b *Buffer) Comment(text string) []byte {
	if !b.IsEvents() {
		return nil
	}
	return []byte(": " + OneLine(text) + "\n\n")
}

// FailureType returns OpenAI's word for an error of that status. SDKs repeat
// none of type invalid_request_error.
func FailureType(status int) string {
	switch {
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// WithoutEmpty returns body without its members of these names that are null or an empty
// list, if it is a JSON object.
func WithoutEmpty(body []byte, names ...string) []byte {
	doc, err := Parse(string(body))
	if err != nil || doc.Root().Kind() != rawjson.Object {
		return body
	}
	text, err := Within(doc.Root(), doc.Root().Cut(func(m rawjson.Value) bool {
		return slices.Contains(names, m.Key()) && (m.Kind() == rawjson.Null || m.Kind() == rawjson.Array && m.Len() == 0)
	}))
	if err != nil {
		return body
	}
	return []byte(text)
}

// MayHold reports whether one of words, in lower case and ASCII, occurs in body
// in a spelling that some JSON reader takes for it: with escapes, in any case as
// encoding/json folds it, or in UTF-16 or UTF-32. It may say yes too often,
// never no where a reader would find the word.
func MayHold(body []byte, words ...string) bool {
	longest := 0
	for _, w := range words {
		longest = max(longest, len(w))
	}
	folded := make([]byte, 0, min(len(body), window)+longest)
	for i := 0; i < len(body); {
		keep := min(len(folded), longest)
		folded = append(folded[:0], folded[len(folded)-keep:]...)
		for i < len(body) && len(folded) < window {
			c, n := foldedAt(body[i:])
			if i += n; c != 0 { // NUL: half of a letter in UTF-16
				folded = append(folded, c)
			}
		}
		for _, w := range words {
			if bytes.Contains(folded, []byte(w)) {
				return true
			}
		}
	}
	return false
}

// window is how many bytes MayHold folds at once.
const window = 32 << 10

// foldedAt returns the first letter of b in lower case, and how many bytes it
// has. Sources: RFC 8259, section 7, for escapes; unicode.SimpleFold for the two
// letters beyond ASCII that fold to one of it, the long s and the Kelvin sign.
func foldedAt(b []byte) (letter byte, size int) {
	c := b[0]
	switch {
	case 'A' <= c && c <= 'Z':
		return c + 'a' - 'A', 1
	case c == '\\' && len(b) >= 6 && b[1] == 'u':
		if r, ok := hex4(b[2:6]); ok {
			return foldedRune(r), 6
		}
	case c == 0xc5 && len(b) >= 2 && b[1] == 0xbf:
		return 's', 2
	case c == 0xe2 && len(b) >= 3 && b[1] == 0x84 && b[2] == 0xaa:
		return 'k', 3
	}
	return c, 1
}

// foldedRune is foldedAt for an escaped letter; 0xff for all that folds to no
// ASCII letter.
func foldedRune(r rune) byte {
	switch {
	case r == 'ſ':
		return 's'
	case r == '\u212a':
		return 'k'
	case r >= 0x80:
		return 0xff
	case 'A' <= r && r <= 'Z':
		return byte(r) + 'a' - 'A'
	}
	return byte(r)
}

func hex4(b []byte) (r rune, ok bool) {
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
