package codec

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/toolmend/toolmend/middleware"
)

// Cursor is a Stream that keeps how much of it the client was given. It is the
// wire.Stream of every format.
type Cursor struct {
	format Format
	stream Stream

	mu   sync.Mutex // of what follows; never held while the sink runs
	text string     // all that was written
	out  string     // what the client gets of it, or will get with what follows
	safe int        // bytes of out that may be taken
	rest string     // the received text after out
	last Event      // the last one with data
	sent int        // bytes of out that were taken
	n    int        // numbered keep-alives that were taken

	keepAliveFirst bool // a keep-alive was sent before the text

	err error // of Close
}

// NewCursor returns a Cursor at the beginning of s.
func NewCursor(f Format, s Stream) *Cursor { return &Cursor{format: f, stream: s} }

// locked returns what get reads of c under its lock. A get without variables costs no allocation.
func locked[T any](c *Cursor, get func(c *Cursor) T) T {
	c.mu.Lock()
	defer c.mu.Unlock()
	return get(c)
}

// Write adds the next bytes.
func (c *Cursor) Write(p []byte) (int, error) {
	n, err := c.stream.Write(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text = c.stream.Text()
	c.out, c.safe, c.rest = c.stream.Output()
	c.last = c.stream.Last()
	return n, err
}

// Sent returns what the client has got.
func (c *Cursor) Sent() string { return locked(c, func(c *Cursor) string { return c.out[:c.sent] }) }

// Pending returns the received text that the client has not got.
func (c *Cursor) Pending() string {
	return locked(c, func(c *Cursor) string { return c.out[c.sent:] + c.rest })
}

// view returns the text as the client knows it.
func (c *Cursor) view() string {
	if len(c.out)+len(c.rest) == len(c.text) {
		return c.text
	}
	return c.out + c.rest
}

// Text returns all bytes that were written.
func (c *Cursor) Text() string { return locked(c, func(c *Cursor) string { return c.text }) }

// Open returns how many bytes at the end of the received text are not parsed yet: the beginning
// of an event, or of a whole answer.
func (c *Cursor) Open() int { return c.stream.Open() }

// Safe returns how many bytes the client may get.
func (c *Cursor) Safe() int { return locked(c, func(c *Cursor) int { return c.safe }) }

// Close ends the answer and returns it.
func (c *Cursor) Close() (*middleware.Response, error) {
	resp, err := c.stream.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	return resp, err
}

// BrokeOff notes that the connection broke. If the answer is whole without what is missing, its
// rest is written, so that it ends as a stream of its format does.
func (c *Cursor) BrokeOff() { c.stream.BrokeOff() }

// Take returns the bytes that the client may get and has not got.
func (c *Cursor) Take() []byte {
	return locked(c, func(c *Cursor) []byte { return []byte(c.upTo(c.safe)) })
}

// upTo takes the bytes before end. Events that the codec has read can be
// renumbered; should one not, it keeps its number.
func (c *Cursor) upTo(end int) string {
	if end <= c.sent {
		return ""
	}
	out := c.passed(c.out[c.sent:end])
	c.sent = end
	return out
}

// passed returns bytes of the text as they follow the bytes that were taken. After a
// keep-alive, a byte order mark is removed: it would be part of the first line, and clients
// would ignore that line.
func (c *Cursor) passed(out string) string {
	if c.keepAliveFirst && c.sent == 0 {
		out = strings.TrimPrefix(out, bom)
	}
	if numbered, err := c.format.Renumber(out, c.n); err == nil {
		out = numbered
	}
	return out
}

// Passed returns written bytes as they follow those that were taken.
func (c *Cursor) Passed(written []byte) []byte {
	return locked(c, func(c *Cursor) []byte { return []byte(c.passed(string(written))) })
}

// Taken returns how many bytes the client has got.
func (c *Cursor) Taken() int { return locked(c, func(c *Cursor) int { return c.sent }) }

// KeepAlive returns bytes that tell the client that a streamed answer continues.
func (c *Cursor) KeepAlive() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	opening := ""
	if c.sent == 0 {
		opening = c.upTo(c.format.Opening(c.out))
	}
	alive, numbered := c.format.KeepAlive(c.view(), c.sent, c.n)
	if numbered {
		c.n++
	}
	c.keepAliveFirst = c.keepAliveFirst || c.sent == 0 && alive != ""
	return []byte(opening + alive)
}

// Renamed returns the ids under which the client and the provider know the answer.
func (c *Cursor) Renamed(resp *middleware.Response) (clientID, providerID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stream.Renamed(c.sent, resp)
}

// Rest returns what completes a stream of which the client has a part.
func (c *Cursor) Rest(resp *middleware.Response) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	rest, err := c.stream.Rest(c.sent, resp)
	if err != nil {
		return nil, err
	}
	if c.keepAliveFirst && c.sent == 0 {
		rest = bytes.TrimPrefix(rest, []byte(bom))
	}
	if c.n == 0 { // no number changes
		return rest, nil
	}
	out, err := c.format.Renumber(string(rest), c.n)
	return []byte(out), err
}

// Fail returns the events that end a stream as a failure.
func (c *Cursor) Fail(status int, code, message string) []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return []byte(c.passed(string(c.stream.Fail(c.sent, status, code, message))))
}

// Comment returns text as a comment of the stream.
func (c *Cursor) Comment(text string) []byte { return c.stream.Comment(text) }

// IsStream reports whether the answer is a stream.
func (c *Cursor) IsStream() bool {
	return locked(c, func(c *Cursor) bool { return formOf(c.text) == FormEvents || manyLines(c.text) })
}

// manyLines reports whether text has a JSON object on its first line, followed by more text.
func manyLines(text string) bool {
	first, rest, _ := strings.Cut(strings.TrimLeft(text, bom+" \t\r\n"), "\n")
	if rest == "" {
		return false
	}
	_, err := ParseObject(first)
	return err == nil
}

// Ended reports whether the answer ends with the mark at which clients stop reading. The end of
// a stream is never safe.
func (c *Cursor) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest != "" && (c.last.Data == "[DONE]" || c.format.EndsWith(c.last.Name, c.last.Data))
}

// mostSearched is how many of the last events may hold the provider's error.
const mostSearched = 8

// Failure returns the event with the error of the provider, as it is written here; an answer
// with a finish word for it has none. Each of
// the last events in which no word for calls occurs is read by itself: the data of one of
// them gives the error that the whole stream gave.
func (c *Cursor) Failure() []byte {
	var failure, again *middleware.ModelError
	if !errors.As(c.err, &failure) || failure.Response != nil || !c.IsStream() {
		return nil
	}
	var last []Event
	b := NewBuffer(true)
	keep := func(e Event) (bool, error) {
		last = append(last, e)
		last = last[max(0, len(last)-mostSearched):]
		return false, nil
	}
	_ = b.Feed([]byte(c.text), keep) // it has been read before
	_ = b.End(keep)
	for _, e := range slices.Backward(last) {
		u := Unit{Event: Event{Data: e.Data}, Bytes: c.text[e.Start:e.End]}
		if u.Value, _ = ParseObject(e.Data); !HasNoCallWord(e.Data) {
			continue
		}
		s := c.format.NewStream(nil, nil) // reads it without its name, which clients may ignore
		if _, err := s.Write([]byte(b.event(&u, nil))); err != nil {
			continue
		}
		if _, err := s.Close(); errors.As(err, &again) && again.Code == failure.Code && again.Message == failure.Message {
			u.Name = e.Name
			return []byte(b.event(&u, nil))
		}
	}
	return nil
}
