package transport

import (
	"bytes"
	"encoding/json"
	"iter"
	"time"

	"github.com/toolmend/toolmend/wire"
)

// isStream reports whether body is a stream in codec's format.
func isStream(body []byte, codec wire.Codec) bool {
	if isEvents(body) {
		return true
	}
	if codec.Dialect() != wire.Ollama.Dialect() {
		return false
	}
	first := firstEvent(body)
	return first != nil && len(first) < len(body)
}

// firstEvent returns the first event of a stream, nil for what is none.
func firstEvent(raw []byte) []byte {
	text := bytes.TrimLeft(raw, "\ufeff \t\r\n")
	switch {
	case isEvents(raw):
		at := bytes.Index(raw, []byte("data:"))
		for _, end := range []string{"\n\n", "\n\r\n", "\r\r"} {
			if i := bytes.Index(raw[max(at, 0):], []byte(end)); i >= 0 {
				return raw[:max(at, 0)+i+len(end)]
			}
		}
	case bytes.HasPrefix(text, []byte("[")):
		d := json.NewDecoder(bytes.NewReader(text))
		_, _ = d.Token()
		var element json.RawMessage
		if d.Decode(&element) == nil {
			return append([]byte("["), element...)
		}
	default:
		if line, _, more := bytes.Cut(text, []byte("\n")); more && json.Valid(line) {
			return append(bytes.Clone(line), '\n')
		}
	}
	return nil
}

// eventsFromTheEnd yields the last few events of a stream, the last one first.
func eventsFromTheEnd(raw []byte) iter.Seq[[]byte] {
	const few = 8
	sep := []byte("\n")
	switch {
	case isEvents(raw) && bytes.Contains(raw, []byte("\r\n\r\n")):
		sep = []byte("\r\n\r\n")
	case isEvents(raw) && !bytes.Contains(raw, []byte("\n")):
		sep = []byte("\r\r")
	case isEvents(raw):
		sep = []byte("\n\n")
	}
	return func(yield func([]byte) bool) {
		rest := bytes.TrimRight(raw, "\r\n")
		for range few {
			i, from := bytes.LastIndex(rest, sep), 0
			if i >= 0 {
				from = i + len(sep)
			}
			if !yield(append(bytes.Clone(rest[from:]), sep...)) || i < 0 {
				return
			}
			rest = rest[:i]
		}
	}
}

// isEvents reports whether raw is a stream of server-sent events, as package
// wire tells one: it does not begin as JSON, and one of its lines has a field.
func isEvents(raw []byte) bool {
	text := bytes.TrimPrefix(raw, []byte("\ufeff"))
	if begin := bytes.TrimLeft(text, " \t\r\n"); len(begin) > 0 && (begin[0] == '{' || begin[0] == '[') {
		return false
	}
	for line := range bytes.FieldsFuncSeq(text, func(c rune) bool { return c == '\r' || c == '\n' }) {
		for _, field := range []string{"data:", "event:", "id:", "retry:", ":"} {
			if bytes.HasPrefix(line, []byte(field)) {
				return true
			}
		}
	}
	return false
}

// patience is how long a server may keep the line open behind the end mark of
// its stream. SDKs do not wait at all, but the line can be used again only when
// it was read to its end.
const patience = time.Second

// endsMarked reports whether raw ends with the mark at which SDKs stop reading.
func endsMarked(raw []byte) bool {
	before, last := lastLine(raw)
	if last == nil {
		return false
	}
	if bytes.HasPrefix(last, []byte("{")) {
		return bytes.Contains(last, []byte(`"done":true`))
	}
	if string(last) == "data: [DONE]" {
		return true
	}
	_, name := lastLine(before)
	switch string(name) {
	case "event: message_stop", "event: response.completed", "event: response.failed", "event: response.incomplete":
		return true
	}
	return false
}

// lastLine returns the last line of raw that has something in it, and what is
// before it; nil if its end is not there yet.
func lastLine(raw []byte) (before, line []byte) {
	text := bytes.TrimRight(raw, "\r\n")
	if len(text) == len(raw) {
		return nil, nil
	}
	at := bytes.LastIndexAny(text, "\r\n") + 1
	return text[:at], text[at:]
}
