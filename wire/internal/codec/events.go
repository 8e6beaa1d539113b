package codec

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// framing is how a body is cut into events.
type framing uint8

const (
	unknown framing = iota
	sse             // server-sent events: field lines and an empty line
	lines           // a JSON text on each line
	array           // one JSON array, an event an element
	whole           // one JSON text, or anything else: an event at the end
)

// Event is one event of a stream.
type Event struct {
	Start, End int    // where it stands in the stream, its separator included
	Name       string // of an SSE event; mostly ""
	Data       string // "" for a comment or an empty line
	DataStart  int    // where Data stands in the stream
	Text       string // all of an SSE event that has no data; a server may put an error there
	folded     bool   // Data had several lines, and does not stand in the stream in one piece
}

// Buffer collects an answer, in pieces of any size, and cuts it into events.
// What it hands out are views of the one text that grows in it, no copies.
// How it is framed is seen from the body, not from its Content-Type: recorded
// servers leave that out, or say JSON and send events. What is not a stream is
// one event, at the end.
type Buffer struct {
	framing framing
	byLine  bool
	text    strings.Builder
	blank   int // how much of the text is space, as long as the framing is unknown
	at      int // where the next event starts
	row     int // where the current line starts
	looked  int // up to where its end was looked for
	feed    int // where the next line feed is, or up to where it was looked for
	loneCR  bool
	safe    int
	holding bool             // nothing more is shown
	waiting bool             // what was put last is not shown yet
	out     *strings.Builder // what was put, once that is not the text
	placed  int              // how much of the text was put

	// of an array
	depth          int
	quoted, escape bool
	start          int // of the element that is open
}

// NewBuffer returns an empty buffer. byLine says that an object may be the
// first of several, each on a line of its own.
func NewBuffer(byLine bool) *Buffer { return &Buffer{byLine: byLine, start: -1} }

// Feed adds p and calls each for every event that is now whole, in order. Once
// each says hold, nothing from that event on is safe to show; the same goes for
// an event with a line that ends with a carriage return alone. The error is
// each's, or wraps ErrShape where a bound is passed.
func (b *Buffer) Feed(p []byte, each func(Event) (hold bool, err error)) error {
	if b.text.Len()+len(p) > MaxBody {
		return Shapef("a stream of more than %d bytes", MaxBody)
	}
	b.text.Write(p)
	for {
		e, ok := b.next(false)
		if !ok {
			return b.bound(b.text.Len() - b.at)
		}
		if err := b.pass(e, each); err != nil {
			return err
		}
	}
}

// End reads what stands after the last separator as an event of its own. It is
// not safe: what follows it in a stream would become part of it. The error is each's.
func (b *Buffer) End(each func(Event) (hold bool, err error)) error {
	b.holding = true
	if e, ok := b.next(true); ok {
		return b.pass(e, each)
	}
	return nil
}

func (b *Buffer) bound(size int) error {
	if size > MaxEvent && b.framing != whole && b.framing != unknown {
		b.holding = true
		return Shapef("an event of more than %d bytes", MaxEvent)
	}
	return nil
}

func (b *Buffer) pass(e Event, each func(Event) (hold bool, err error)) error {
	if err := b.bound(e.End - e.Start); err != nil {
		return err
	}
	hold, err := each(e)
	if err != nil {
		b.holding = true
		return err
	}
	b.holding = b.holding || hold
	return nil
}

// shows reports whether an event of that release can be shown when it has been read.
func (b *Buffer) isReleased(release Release) bool {
	return !b.holding && (release == ReleaseNow || release == ReleaseWithPrevious && !b.waiting)
}

// put adds e, or what was written in its place, to what the client gets.
func (b *Buffer) put(e Event, release Release, written *string) {
	if b.holding || release == ReleaseHold {
		return
	}
	if written != nil && b.out == nil {
		b.out = &strings.Builder{}
		b.out.WriteString(b.Text()[:b.placed])
	}
	switch {
	case written != nil:
		b.out.WriteString(*written)
	case b.out != nil:
		b.out.WriteString(b.Text()[e.Start:e.End])
	}
	b.placed = e.End
	out, safe, _ := b.Output()
	switch {
	case b.isReleased(release):
		b.safe, b.waiting = len(out), false
	case len(out)-safe > maxWaiting:
		b.holding = true
	default:
		b.waiting = true
	}
}

// Output returns what was put, how much of that the client may get, and what of the text
// stands behind it.
func (b *Buffer) Output() (text string, releasable int, rest string) {
	text, rest = b.Text()[:b.placed], b.Text()[b.placed:]
	if b.out != nil {
		text = b.out.String()
	}
	return text, b.safe, rest
}

// Safe returns how many bytes the client may get.
func (b *Buffer) Safe() int { return b.safe }

// Text returns all that was fed.
func (b *Buffer) Text() string { return b.text.String() }

// IsWhole reports whether the body was no stream.
func (b *Buffer) IsWhole() bool { return b.framing == whole }

// IsArray reports whether the body was a JSON array of events.
func (b *Buffer) IsArray() bool { return b.framing == array }

func (b *Buffer) next(end bool) (Event, bool) {
	if b.framing == unknown {
		b.framing = b.sniff(b.Text(), end)
	}
	switch b.framing {
	case sse:
		return b.sse(end)
	case lines:
		return b.line(end)
	case array:
		return b.element()
	case whole:
		return b.all(end)
	}
	return Event{}, false
}

// line looks for the end of a line that is not empty; the empty ones before it
// belong to its event.
func (b *Buffer) line(end bool) (Event, bool) {
	for b.lineFeed() {
		if from, to := b.trimmed(b.row, b.looked); from < to {
			return b.upTo(b.looked, end)
		}
		b.row = b.looked
	}
	if end && b.at < b.text.Len() {
		return b.upTo(b.text.Len(), end)
	}
	return Event{}, false
}

// lineFeed moves looked behind the next line feed; false if there is none.
func (b *Buffer) lineFeed() bool {
	i := strings.IndexByte(b.Text()[b.looked:], '\n')
	if i < 0 {
		b.looked = b.text.Len()
		return false
	}
	b.looked += i + 1
	return true
}

func (b *Buffer) upTo(stop int, end bool) (Event, bool) {
	from, to := b.trimmed(b.row, stop)
	e := Event{Start: b.at, End: stop, Data: b.Text()[from:to], DataStart: from}
	if e.Start == 0 {
		if _, err := ParseObject(e.Data); err != nil { // an object over several lines
			b.framing = whole
			return b.all(end)
		}
	}
	b.at, b.row = stop, stop
	return e, true
}

func (b *Buffer) all(end bool) (Event, bool) {
	if !end || b.at == b.text.Len() {
		return Event{}, false
	}
	b.at = b.text.Len()
	from, to := b.trimmed(0, b.at)
	return Event{End: b.at, Data: b.Text()[from:to], DataStart: from}, true
}

// element looks for the end of the array's next element, keeping nothing but
// depth and strings in mind: whether it is JSON is found out later.
func (b *Buffer) element() (Event, bool) {
	for text := b.Text(); b.looked < len(text); b.looked++ {
		c := text[b.looked]
		if b.quoted {
			switch {
			case b.escape:
				b.escape = false
			case c == '\\':
				b.escape = true
			case c == '"':
				b.quoted = false
			}
			continue
		}
		switch c {
		case '"':
			b.quoted = true
		case '{', '[':
			if b.depth++; b.depth == 2 {
				b.start = b.looked
			}
		case '}', ']':
			b.depth--
			b.holding = b.holding || b.depth == 0 // what is behind the list is not an element of it
			if b.depth == 1 && b.start >= 0 {
				b.looked++
				e := Event{Start: b.at, End: b.looked, DataStart: b.start, Data: text[b.start:b.looked]}
				b.at, b.start = b.looked, -1
				return e, true
			}
		}
	}
	return Event{}, false
}

// trimmed returns a piece of the text without the space around it.
func (b *Buffer) trimmed(from, to int) (int, int) {
	text := b.Text()
	if from == 0 && strings.HasPrefix(text[:to], bom) {
		from = len(bom)
	}
	for from < to && isSpace(text[from]) {
		from++
	}
	for to > from && isSpace(text[to-1]) {
		to--
	}
	return from, to
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

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

// Renumber adds n to the number that the server-sent events in text have under key. An
// event that has none, or whose data is divided over several lines, stays as it is.
func Renumber(text, key string, n int) (string, error) {
	if n == 0 || text == "" {
		return text, nil
	}
	var edits []rawjson.Edit
	err := Each(text, func(e Event) error {
		root, err := ParseObject(e.Data)
		if number := root.Get(key); err == nil && !e.folded && number.Kind() == rawjson.Number {
			edits = append(edits, Shift([]rawjson.Edit{Replace(number, Count(Int(number)+int64(n)))}, e.DataStart)...)
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return Apply(text, edits)
}

// Frame returns data, one JSON text, as an event that follows the first taken
// bytes, framed as they are: an SSE event, a line, or an element that closes
// the array. name is that of an SSE event; "" for none. It is nil for an answer
// that is not streamed.
func (b *Buffer) Frame(taken int, name, data string) []byte {
	as := b.framing
	if as == unknown { // nothing of the answer has come
		as = sse
		if b.byLine {
			as = lines
		}
	}
	shown, _, _ := b.Output()
	out := as.frame(shown[:taken], name, OneLine(data), strings.Contains(b.Text(), "\r\n"))
	if as == array {
		out += "\n]"
	}
	return []byte(out)
}

// frame returns data as an event behind what is shown; "" for an answer that is not streamed.
// crlf is how the lines of the stream end: a client may look for one kind only.
func (f framing) frame(shown, name, data string, crlf bool) string {
	switch f {
	case sse:
		data = "data: " + data + "\n\n"
		if name != "" {
			data = "event: " + name + "\n" + data
		}
		if crlf {
			data = strings.ReplaceAll(data, "\n", "\r\n")
		}
		return data
	case lines:
		return data + "\n"
	case array:
		if strings.Trim(shown, bom+"[ \t\r\n") == "" {
			return "[" + data
		}
		return ",\r\n" + data
	}
	return ""
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
