package codec

import (
	"bytes"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// WantsStream reports whether a request asks for a streamed answer: by the
// member "stream" of its body, else by the last segment of its path, as in
// Gemini's format and on Vertex, else if the format streams by default. Like
// the servers that are written in Go it reads the key in any case.
func WantsStream(path string, body []byte, byDefault bool) bool {
	if says, ok := saysStream(body); ok {
		return says
	}
	path, _, _ = strings.Cut(path, "?")
	last := path[strings.LastIndexAny(path, "/:")+1:]
	return byDefault || strings.Contains(strings.ToLower(last), "stream")
}

// saysStream returns what a body says of streaming; false if it says nothing. The
// last of several members counts, and a value of another kind says nothing.
func saysStream(body []byte) (says, ok bool) {
	if !mayHoldStream(body) {
		return false, false
	}
	odd := false
	err := Borrow(string(shallow(body)), func(object rawjson.Value) error {
		for m := range object.Each() {
			if !strings.EqualFold(m.Key(), "stream") {
				continue
			}
			switch m.Kind() {
			case rawjson.Bool:
				says, ok = m.Raw() == "true", true
			case rawjson.Null:
				ok = false
			default:
				odd = true
			}
		}
		return nil
	})
	return says, ok && !odd && err == nil
}

// mayHoldStream saves parsing a body without the key, escaped keys included.
func mayHoldStream(body []byte) bool {
	trace := []byte("trea") // a reader that ignores the case takes ſ for s
	for _, end := range [][]byte{[]byte(`m"`), []byte(`M"`)} {
		for before, rest, found := bytes.Cut(body, end); found; before, rest, found = bytes.Cut(rest, end) {
			if n := len(before) - len(trace); n >= 0 && bytes.EqualFold(before[n:], trace) {
				return true
			}
		}
	}
	return bytes.Contains(body, []byte(`\u00`))
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
