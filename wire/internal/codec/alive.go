package codec

import "strings"

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

// First returns the first of the server-sent events in text that is accepts.
func First(text string, is func(Event) bool) (found Event, ok bool) {
	b := NewBuffer(false)
	for text != "" && !ok {
		n := min(len(text), sniffed)
		_ = b.Feed([]byte(text[:n]), func(e Event) (bool, error) {
			if !ok && is(e) {
				found, ok = e, true
			}
			return false, nil
		})
		text = text[n:]
	}
	return found, ok
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
