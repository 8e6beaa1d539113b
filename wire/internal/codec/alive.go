package codec

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Comment is a comment of server-sent events. The clients of OpenAI and
// Anthropic skip it, in Python, TypeScript and Go.
const Comment = ": keep-alive\n\n"

// sniffed is how many bytes tell the framing of a stream.
const sniffed = 4 << 10

func framingOf(text string) framing {
	return NewBuffer(false).sniff(text[:min(len(text), sniffed)], false)
}

// MayBeEvents reports whether text is the beginning of server-sent events, or
// empty.
func MayBeEvents(text string) bool {
	return strings.TrimSpace(text) == "" || framingOf(text) == sse
}

// IsList reports whether text is the beginning of a JSON array.
func IsList(text string) bool { return framingOf(text) == array }

// First returns the first of the server-sent events in text whose data is an object
// that is accepts, and that object; both are zero if there is none. It reads no further
// than to that event, which mostly is one of the first.
func First(text string, is func(root rawjson.Value) bool) (found Event, object rawjson.Value) {
	b := NewBuffer(false)
	for text != "" && !object.Exists() {
		n := min(len(text), sniffed)
		_ = b.Feed([]byte(text[:n]), func(e Event) (bool, error) {
			if root, err := ParseObject(e.Data); !object.Exists() && err == nil && is(root) {
				found, object = e, root
			}
			return false, nil
		})
		text = text[n:]
	}
	return found, object
}

// Each calls f for each of the server-sent events in text.
func Each(text string, f func(Event) error) error {
	b := NewBuffer(false)
	each := func(e Event) (bool, error) { return false, f(e) }
	if err := b.Feed([]byte(text), each); err != nil {
		return err
	}
	return b.End(each)
}
