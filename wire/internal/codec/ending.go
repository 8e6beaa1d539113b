package codec

import (
	"errors"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/middleware"
)

// IsStream reports whether the answer is a stream.
func (c *Cursor) IsStream() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return framingOf(c.text) == sse || manyLines(c.text)
}

// manyLines reports whether text has a JSON object on its first line, and more
// behind it.
func manyLines(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, bom+" \t\r\n"), "\n")
	if rest == "" {
		return false
	}
	_, err := ParseObject(first)
	return err == nil
}

// Ended reports whether the answer ends with the mark at which clients stop reading. A format whose streams end with another mark
// than OpenAI's has a method EndsWith. It is given the name and the data of the
// last event, or the last line as data. The end of a stream is never safe.
func (c *Cursor) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.behind == "" {
		return false
	}
	before, last := lastLine(c.text)
	_, name := lastLine(before)
	name, data := strings.TrimPrefix(name, "event: "), strings.TrimPrefix(last, "data: ")
	f, ok := c.format.(interface{ EndsWith(name, data string) bool })
	return data == "[DONE]" || ok && f.EndsWith(name, data)
}

// lastLine returns the last line of text that is not empty, and the text before
// it; "" if the end of that line has not come yet.
func lastLine(text string) (before, line string) {
	if strings.Trim(text[max(0, len(text)-mostBlank):], "\r\n") == "" { // not once more for each piece of a flood of line ends
		return "", ""
	}
	trimmed := strings.TrimRight(text, "\r\n")
	if len(trimmed) == len(text) {
		return "", ""
	}
	at := strings.LastIndexAny(trimmed, "\r\n") + 1
	return trimmed[:at], trimmed[at:]
}

// mostBlank is how many line ends may follow the last line of a stream.
const mostBlank = 64

// mostSearched is how many of the last events may hold the provider's error.
const mostSearched = 8

// Failure returns the event with the error of the provider. Each of the last events in which no word for calls
// occurs is read by itself: one of them gives the error that the whole stream gave.
func (c *Cursor) Failure() []byte {
	var said, again *middleware.ModelError
	if !errors.As(c.err, &said) || !c.IsStream() {
		return nil
	}
	for _, event := range slices.Backward(lastEvents(c.text)) {
		if !Free(event) {
			continue
		}
		s := c.format.NewStream(nil, nil)
		if _, err := s.Write([]byte(event)); err != nil {
			continue
		}
		if _, err := s.Close(); errors.As(err, &again) && again.Code == said.Code {
			return []byte(event)
		}
	}
	return nil
}

// lastEvents returns the last few events of a stream. The last one gets its
// separator if the stream ended without.
func lastEvents(text string) []string {
	b, end := NewBuffer(true), "\n\n"
	switch {
	case framingOf(text) != sse:
		end = "\n"
	case !strings.Contains(text, "\n"):
		end = "\r\r"
	}
	var events []string
	keep := func(e Event) (bool, error) {
		events = append(events, text[e.Start:e.End])
		events = events[max(0, len(events)-mostSearched):]
		return false, nil
	}
	if b.Feed([]byte(text), keep) != nil {
		return nil
	}
	whole := b.at
	if b.End(keep) == nil && b.at > whole {
		last := &events[len(events)-1]
		*last = strings.TrimRight(*last, "\r\n") + end
	}
	return events
}
