package codec

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
)

// Form is how an answer is framed: how its body is cut into events.
type Form uint8

// The forms.
const (
	formUnknown Form = iota
	FormEvents       // server-sent events: field lines and an empty line
	FormLines        // a JSON text on each line
	FormArray        // one JSON array, an event an element
	FormWhole        // one JSON text, or anything else: an event at the end
)

// ContentType returns the media type of an answer of that form.
func (f Form) ContentType() string {
	return [...]string{FormEvents: "text/event-stream", FormLines: "application/x-ndjson", FormArray: "application/json", FormWhole: "application/json"}[f]
}

// Event is one event of a stream.
type Event struct {
	Start, End int    // its place in the stream, with its separator
	Name       string // of an SSE event; mostly ""
	Data       string // "" for a comment or an empty line
	DataStart  int    // the place of Data in the stream
	Text       string // all of an SSE event that has no data; a server may put an error there
	folded     bool   // Data had several lines, so it is not one piece of the stream
}

// Buffer collects an answer, in pieces of any size, and cuts it into events. Its events are
// views of the one text that grows in it, not copies. The framing is detected from the body.
// Recorded servers omit the Content-Type, or announce JSON and send events. A body that is not
// a stream is one event, at the end.
type Buffer struct {
	form    Form
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

// NewBuffer returns an empty buffer. byLine means that an object may be the first of several
// lines.
func NewBuffer(byLine bool) *Buffer { return &Buffer{byLine: byLine, start: -1} }

// Feed adds p and calls each for every event that is complete now, in order. Once each returns
// hold, nothing from that event on is safe to show. An event with a line that ends with a
// carriage return alone is held too. The error is the one of each, or wraps ErrShape where a
// bound is exceeded.
func (b *Buffer) Feed(p []byte, each func(Event) (hold bool, err error)) error {
	return b.split(p, each, nil)
}

// split is Feed for a Splitter, which may be nil. each is not called for units that match its
// pattern.
func (b *Buffer) split(p []byte, each func(Event) (hold bool, err error), r *Splitter) error {
	if b.text.Len()+len(p) > MaxBody {
		return Shapef("a stream of more than %d bytes", MaxBody)
	}
	b.text.Write(p)
	for {
		e, ok := b.next(false)
		if r != nil {
			if ok && r.matches(e) {
				continue
			}
			if err := r.deliverRepeats(); err != nil {
				b.holding = true
				return err
			}
		}
		if !ok {
			return b.bound(b.text.Len() - b.at)
		}
		if err := b.pass(e, each); err != nil {
			return err
		}
	}
}

// End reads the text after the last separator as an event. It is not safe, because bytes after
// it would become part of the event. The error is the one of each.
func (b *Buffer) End(each func(Event) (hold bool, err error)) error {
	b.holding = true
	if e, ok := b.next(true); ok {
		return b.pass(e, each)
	}
	return nil
}

func (b *Buffer) bound(size int) error {
	if size > MaxEvent && b.form != FormWhole && b.form != formUnknown {
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

// isReleased reports whether an event with that release can be shown once it was read.
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

// Output returns the text for the client, how many bytes of it the client may get, and the
// received text that was not put yet.
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

// answerForm returns the form of a body that was read as an answer: a line alone is not a stream.
func (b *Buffer) answerForm() Form {
	if b.form == FormLines && !strings.Contains(strings.TrimSpace(b.Text()), "\n") {
		return FormWhole
	}
	return b.form
}

// IsWhole reports whether the body was no stream.
func (b *Buffer) IsWhole() bool { return b.form == FormWhole }

// IsArray reports whether the body was a JSON array of events.
func (b *Buffer) IsArray() bool { return b.form == FormArray }

func (b *Buffer) next(end bool) (Event, bool) {
	if b.form == formUnknown {
		b.form = b.sniff(b.Text(), end)
	}
	switch b.form {
	case FormEvents:
		return b.sse(end)
	case FormLines:
		return b.line(end)
	case FormArray:
		return b.element()
	case FormWhole:
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

// lineFeed moves looked past the next line feed; false without one.
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
			b.form = FormWhole
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
			b.holding = b.holding || b.depth == 0 // text after the list is not an element
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

func formOf(text string) Form {
	return NewBuffer(false).sniff(text[:min(len(text), sniffed)], false)
}

// MayBeEvents reports whether text is the beginning of server-sent events, or
// empty.
func MayBeEvents(text string) bool {
	return strings.TrimSpace(text) == "" || formOf(text) == FormEvents
}

// IsList reports whether text is the beginning of a JSON array.
func IsList(text string) bool { return formOf(text) == FormArray }

// First returns the first server-sent event in text whose data is an object that is accepts,
// and that object; both are zero without such an event. It reads no further than to that
// event, which mostly is one of the first.
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

// Frame returns data, one JSON text, as an event after the first taken bytes, in the framing
// of the stream: an SSE event, a line, or an element that closes the array. name is the name
// of an SSE event; "" for none. Frame returns nil for an answer that is not streamed.
func (b *Buffer) Frame(taken int, name, data string) []byte {
	as := b.form
	if as == formUnknown { // nothing of the answer has come
		as = FormEvents
		if b.byLine {
			as = FormLines
		}
	}
	shown, _, _ := b.Output()
	out := as.frame(shown[:taken], name, OneLine(data), strings.Contains(b.Text(), "\r\n"))
	if as == FormArray {
		out += "\n]"
	}
	return []byte(out)
}

// frame returns data as an event after what was shown; "" for an answer that is not streamed.
// crlf is true for a stream whose lines end in CRLF: a client may look for one ending only.
func (f Form) frame(shown, name, data string, crlf bool) string {
	switch f {
	case FormEvents:
		data = "data: " + data + "\n\n"
		if name != "" {
			data = "event: " + name + "\n" + data
		}
		if crlf {
			data = strings.ReplaceAll(data, "\n", "\r\n")
		}
		return data
	case FormLines:
		return data + "\n"
	case FormArray:
		if strings.Trim(shown, bom+"[ \t\r\n") == "" {
			return "[" + data
		}
		return ",\r\n" + data
	}
	return ""
}

// IsEvents reports whether the body is a stream of server-sent events.
func (b *Buffer) IsEvents() bool { return b.form == FormEvents }

// Comment returns text as a comment of a stream of server-sent events; nil in
// any other framing.
func (b *Buffer) Comment(text string) []byte {
	if !b.IsEvents() {
		return nil
	}
	return []byte(": " + OneLine(text) + "\n\n")
}

// Server-sent events. Source: the HTML standard's chapter on them: a line ends
// with LF, CRLF or CR, the stream may begin with a byte order mark, and a line
// of an unknown field, or without one, is skipped.
//
// Clients differ: many end a line at LF only, some skip white space in front of a field.
// So a unit passes as it came only if it is strictly framed (Splitter), and every other one
// is written.

// fields are the beginnings of the lines that tell an event stream: the fields
// of an event, and a comment.
var fields = []string{"data:", "event:", "id:", "retry:", ":"}

const bom = "\ufeff"

// sniff tells the framing: JSON by its first character, an event stream by its
// first line that has a field. It is unknown as long as neither is there.
func (b *Buffer) sniff(text string, end bool) Form {
	if !end && len(text) < len(bom) && strings.HasPrefix(bom, text) {
		return formUnknown
	}
	if b.blank == 0 && strings.HasPrefix(text, bom) {
		b.blank, b.row = len(bom), len(bom)
	}
	for b.blank < len(text) && isSpace(text[b.blank]) {
		b.blank++
	}
	switch head := text[b.blank:]; {
	case head == "" && !end:
		return formUnknown
	case head == "":
		return FormWhole
	case head[0] == '[':
		return FormArray
	case head[0] == '{' && b.byLine:
		return FormLines
	case head[0] == '{':
		return FormWhole
	}
	return b.sniffField(text, end)
}

// sniffField looks for the first line that has a field.
func (b *Buffer) sniffField(text string, end bool) Form {
	for {
		line := text[b.row:]
		for _, f := range fields {
			if strings.HasPrefix(line, f) {
				b.row, b.looked = b.at, b.at
				return FormEvents
			}
			if !end && strings.HasPrefix(f, line) {
				return formUnknown
			}
		}
		b.looked = max(b.looked, b.row)
		i := strings.IndexAny(text[b.looked:], "\r\n")
		if i < 0 {
			b.looked = len(text)
			if end {
				return FormWhole
			}
			return formUnknown
		}
		b.row = b.looked + i + 1 // between CR and LF is one more empty line
	}
}

// sse looks for the empty line that ends an event.
func (b *Buffer) sse(end bool) (Event, bool) {
	for {
		stop, ok := b.endOfLine(end)
		if !ok {
			break
		}
		empty := b.row == stop
		if b.row = b.looked; empty {
			return b.cut(b.looked), true
		}
	}
	if end && b.at < b.text.Len() {
		return b.cut(b.text.Len()), true
	}
	return Event{}, false
}

// endOfLine returns the end of the current line, and moves looked past its separator. It is
// false if the end has not come: a line feed may follow a carriage return. A line that ends
// with a carriage return alone is held.
func (b *Buffer) endOfLine(end bool) (stop int, ok bool) {
	text := b.Text()
	if b.feed = max(b.feed, b.looked); b.feed < len(text) && text[b.feed] != '\n' {
		if i := strings.IndexByte(text[b.feed:], '\n'); i >= 0 {
			b.feed += i
		} else {
			b.feed = len(text)
		}
	}
	stop = b.feed
	switch i := strings.IndexByte(text[b.looked:b.feed], '\r'); {
	case i >= 0 && b.looked+i+1 == b.feed && b.feed < len(text): // CRLF
		stop = b.looked + i
	case i < 0:
	case b.looked+i+1 == len(text) && !end:
		b.looked += i
		return 0, false
	default:
		b.loneCR = true
		b.looked += i + 1
		return b.looked - 1, true
	}
	if b.feed == len(text) {
		b.looked = b.feed
		return 0, false
	}
	b.looked = b.feed + 1
	return stop, true
}

// cutLine returns the first line of text without its end, and its size with
// it.
func (b *Buffer) cutLine(text string) (line string, size int) {
	i := -1
	if b.loneCR {
		i = strings.IndexAny(text, "\r\n")
	} else {
		i = strings.IndexByte(text, '\n')
	}
	switch {
	case i < 0:
		return strings.TrimSuffix(text, "\r"), len(text)
	case strings.HasPrefix(text[i:], "\r\n"):
		return text[:i], i + 2
	}
	return strings.TrimSuffix(text[:i], "\r"), i + 1
}

// cut reads the event that ends at end.
func (b *Buffer) cut(end int) Event {
	e := Event{Start: b.at, End: end}
	text := b.Text()[b.at:end]
	b.at = end
	pos := 0
	if e.Start == 0 && strings.HasPrefix(text, bom) {
		pos = len(bom)
	}
	var folded strings.Builder
	lines := 0 // of data
	for pos < len(text) {
		line, size := b.cutLine(text[pos:])
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case field == "event":
			e.Name = value
		case field != "data":
		case lines == 0:
			e.Data, e.DataStart = value, e.Start+pos+len(line)-len(value)
			lines++
		default:
			if lines++; lines == 2 {
				folded.Grow(len(text))
				folded.WriteString(e.Data)
			}
			folded.WriteString("\n" + value)
		}
		pos += size
	}
	if lines == 0 {
		e.Text = text
	}
	if e.folded = lines > 1; e.folded {
		e.Data = folded.String()
	}
	return e
}
