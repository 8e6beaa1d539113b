package codec

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// WantsStream reports whether a request asks for a streamed answer: by the
// member "stream" of its body, else by the last segment of its path, as in
// Gemini's format and on Vertex, else if the format streams by default. Like
// the servers that are written in Go it reads the key in any case.
func WantsStream(path string, body []byte, byDefault bool) bool {
	if wants, ok := streamMember(body); ok {
		return wants
	}
	path, _, _ = strings.Cut(path, "?")
	last := path[strings.LastIndexAny(path, "/:")+1:]
	return byDefault || strings.Contains(strings.ToLower(last), "stream")
}

// streamMember returns the member "stream" of a body; false if it has none. The
// last of several members counts, and a value of another kind says nothing.
func streamMember(body []byte) (wants, ok bool) {
	odd := false
	err := Borrow(string(shallow(body)), func(object rawjson.Value) error {
		for m := range object.Each() {
			if !strings.EqualFold(m.Key(), "stream") {
				continue
			}
			switch m.Kind() {
			case rawjson.Bool:
				wants, ok = m.Raw() == "true", true
			case rawjson.Null:
				ok = false
			default:
				odd = true
			}
		}
		return nil
	})
	return wants, ok && !odd && err == nil
}

// shallow returns a JSON object with 0 in place of the objects and arrays in it.
// They are most of a request, and have been parsed once already.
func shallow(body []byte) []byte {
	out := make([]byte, 0, 512)
	depth, rest := 0, 0
	for i := 0; i < len(body); i++ {
		switch body[i] {
		case '"':
			i = closingQuote(body, i)
		case '{', '[':
			if depth++; depth == 2 {
				out = append(append(out, body[rest:i]...), '0')
			}
		case '}', ']':
			if depth--; depth == 1 {
				rest = i + 1
			}
		}
	}
	return append(out, body[rest:]...)
}

// closingQuote returns the end of the string that begins at i, or of body.
func closingQuote(body []byte, i int) int {
	for {
		n := bytes.IndexByte(body[i+1:], '"')
		if n < 0 {
			return len(body)
		}
		i += n + 1
		escapes := 0
		for body[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i
		}
	}
}

// Path returns the path of a request in the one spelling under which it is
// compared: without a query, in lower case, without empty and "." segments,
// parameters behind ";" and spaces at the end of a segment, and with
// backslashes as slashes. Servers take such spellings for the same path.
func Path(path string) string {
	if isPlain(path) {
		return path
	}
	path, _, _ = strings.Cut(path, "?")
	path = strings.ReplaceAll(strings.ToLower(path), `\`, "/")
	var b strings.Builder
	for seg := range strings.SplitSeq(path, "/") {
		seg, _, _ = strings.Cut(seg, ";")
		if seg = strings.TrimRight(seg, " \t"); seg != "" && seg != "." {
			b.WriteString("/" + seg)
		}
	}
	return b.String()
}

// isUnchanged reports whether Path would return path itself, as for the paths that
// SDKs use. False is not certain.
func isPlain(path string) bool {
	return strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/") && !strings.Contains(path, "//") && !strings.Contains(path, "/.") &&
		!strings.ContainsAny(path, "?\\; \t") && strings.ToLower(path) == path
}

// PathEnds reports whether the Path of path ends with one of ends, which are in
// lower case.
func PathEnds(path string, ends ...string) bool {
	path = Path(path)
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(path, end) })
}

// Defaults has the methods of a Format that most formats share. A format embeds
// it and declares those in which it differs.
type Defaults struct{}

// WantsStream reports whether a request asks for a streamed answer; one that does not say it asks for none.
func (Defaults) WantsStream(path string, body []byte) bool { return WantsStream(path, body, false) }

// Opening returns the end of the event that opens a streamed answer: every event of a stream stands for itself, so that a
// client understands a keep-alive before the first one.
func (Defaults) Opening(string) int { return 0 }

// Renumber returns the events as they are: they have no numbers.
func (Defaults) Renumber(events string, _ int) (string, error) { return events, nil }

// Authorize sets the key: the key is a bearer token. A server of one's own
// needs none.
func (Defaults) Authorize(h http.Header, key string) {
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// MayHoldCall reports whether a word for calls of any format occurs in a body.
func (Defaults) MayHoldCall(body []byte) bool { return MayHoldCall(body) }
