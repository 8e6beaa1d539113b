package codec

import (
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// An answer is a sequence of units: an event of a stream, a line, an element of a list,
// or the whole body. A unit that is strictly framed and free of the words for calls goes
// to the client byte for byte. Toolmend writes every other unit itself, from what it
// read, or holds it. So the bytes at the client are free of calls, or were written here,
// and nothing depends on how a client would read the bytes of the provider.

// Unit is one unit of an answer.
type Unit struct {
	Event
	Bytes string        // as it came
	Value rawjson.Value // of Data; absent if Data is not an object. It must not be kept. An error may have no field before it: its Name is "error" then.
	Err   error         // wraps ErrShape: why Data is not an object; nil for no data, and for [DONE]
	Free  bool          // strictly framed, and free of the words for calls; not known of a whole answer (see Units.Plain), and of what follows a held call
	Calls bool          // set by Read: a whole answer has calls, so it is not free
}

// Fate is what becomes of a unit.
type Fate uint8

// The fates.
const (
	FatePass Fate = iota // goes with the unit in front of it: a head, a sign of life, a figure
	FateShow             // text, and what ends reasoning: shown at once, with all that waits
	FateWait             // reasoning: shown when text follows, held when a call follows
	FateHold             // a call, an error, an end: held, with all behind it
)

// maxWaiting bounds the bytes of reasoning that wait. Behind more, the answer is held
// whole.
const maxWaiting = 16 << 20

// UnitReader is what a format does with the units of an answer.
type UnitReader interface {
	// Fate returns what becomes of u. It changes nothing.
	Fate(u *Unit) (Fate, error)
	// Read reads u. The error is the sink's, or wraps ErrShape.
	Read(u *Unit) error
	// Mark notes that what was read so far is what the client may be shown. It is
	// called before a unit that waits or is held is read.
	Mark()
	// Response returns the answer after the last unit.
	Response() (*middleware.Response, error)
}

// Units collects the bytes of an answer, hands its units to the format, and decides what
// the client may get of it. A format's stream embeds it.
type Units struct {
	Buf     *Buffer
	format  UnitReader
	known   Tree
	tools   bool // the request offered tools
	plain   bool
	whole   func() bool // whether the unit that is read, a whole answer, is free; nil once that is known
	marked  bool        // the format has noted what is shown
	marks   int         // how often it has
	repeat  repeat
	current Unit  // that is read; its memory is used again
	err     error // the first one
	resp    *middleware.Response
	closed  bool
	last    Event // that has data

	// Lists says that an answer may be a JSON array of units. In a format that has none,
	// an array is not an answer.
	Lists bool
}

var errList = Shapef("a JSON array, where the format has an object or a stream")

// NewUnits returns Units at the beginning of an answer. known has the members of a unit
// that the format knows. byLine says that an object may be the first of several, each on
// a line of its own. tools says that the request offered tools: only then reasoning
// waits, and nothing is shown before the first text.
func NewUnits(format UnitReader, known Tree, byLine, tools bool) Units {
	b := NewBuffer(byLine)
	b.waiting = tools
	return Units{Buf: b, format: format, known: known, tools: tools, plain: true}
}

// Write adds the next bytes. After an error it takes no more.
func (r *Units) Write(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.Buf.Feed(p, r.event)
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close ends the answer and returns it. It returns the same result each time.
func (r *Units) Close() (*middleware.Response, error) {
	if r.closed {
		return r.resp, r.err
	}
	r.closed = true
	if r.err == nil {
		r.err = r.Buf.End(r.event)
	}
	if r.err == nil && r.Buf.IsArray() && !r.Lists {
		r.err = errList
	}
	if r.err == nil {
		r.resp, r.err = r.format.Response()
	}
	return r.resp, r.err
}

// Closed reports whether Close was called: what is read now is the last unit.
func (r *Units) Closed() bool { return r.closed }

// Text returns all bytes that were written.
func (r *Units) Text() string { return r.Buf.Text() }

// Last returns the last event that has data.
func (r *Units) Last() Event { return r.last }

// Marked reports whether what the format noted last is what the client may be shown.
func (r *Units) Marked() bool { return r.marked }

// Given returns a stream whose Mark is what the client has after the first sent bytes of
// what s shows: s itself, or else fresh, which reads them again.
func Given[S interface {
	Stream
	Mark()
	Marked() bool
}](s, fresh S, sent int) (S, error) {
	out, safe, _ := s.Shown()
	if sent == safe && s.Marked() {
		return s, nil
	}
	_, err := fresh.Write([]byte(out[:sent]))
	fresh.Mark()
	return fresh, err
}

// Plain reports whether all units so far are free: then the answer may pass as it came.
func (r *Units) Plain() bool {
	if free := r.whole; free != nil {
		r.plain, r.whole = r.plain && free(), nil
	}
	return r.plain
}

// Shown returns what was written or passed of the answer, how much of it the client may
// get, and what of the text stands behind it.
func (r *Units) Shown() (out string, safe int, behind string) { return r.Buf.Shown() }

// Safe returns how many bytes the client may get.
func (r *Units) Safe() int { return r.Buf.Safe() }

// Comment returns text as a comment of the stream, for a format whose clients skip comments.
func (r *Units) Comment(text string) []byte { return r.Buf.Comment(text) }

// event reads one event of the Buffer. Whether it is held is left to the Buffer.
func (r *Units) event(e Event) (bool, error) {
	if r.Buf.IsArray() && !r.Lists {
		return true, errList
	}
	bytes := r.Buf.Text()[e.Start:e.End]
	if known, err := r.repeat.read(bytes); known {
		if err == nil {
			r.Buf.put(e, FateShow, nil)
		}
		return false, err
	}
	u := &r.current
	*u = Unit{Event: e, Bytes: bytes}
	data := strings.TrimSpace(e.Data)
	if data != "" {
		r.last = e
	}
	if e.Data == "" && strings.HasPrefix(strings.TrimSpace(e.Text), "{") {
		v, _ := ParseObject(e.Text)
		if failure := v.Get("error"); failure.Str() != "" || failure.Kind() == rawjson.Object && !failure.Empty() {
			u.Name, u.Value = "error", v
		}
	}
	if data == "" || data == "[DONE]" && !r.Buf.IsWhole() {
		u.Free = r.Buf.isFree(u)
		return r.unit(u)
	}
	var hold, called bool
	err := borrow(e.Data, func(doc *rawjson.Doc) (err error) {
		called = true
		if u.Value = doc.Root(); u.Value.Kind() != rawjson.Object {
			u.Err, u.Value = Shapef("%s where an object should be", u.Value.Kind()), rawjson.Value{}
		}
		if r.Buf.IsWhole() {
			r.whole = func() bool { return r.Buf.isFree(u) && doc.PlainKeys() }
		} else {
			u.Free = (r.plain || !r.Buf.holding) && r.Buf.isFree(u) && doc.PlainKeys()
		}
		if hold, err = r.unit(u); u.Calls {
			r.plain, r.whole = false, nil
		}
		r.Plain() // doc does not stay
		return err
	})
	if called {
		return hold, err
	}
	u.Err = err
	return r.unit(u)
}

// mostMarks bounds how often a stream that turns from text to reasoning and back is noted:
// each note costs time for all that was shown. Given reads a stream again that has none.
const mostMarks = 32

// unit reads u, and puts it into what the client gets unless it is held.
func (r *Units) unit(u *Unit) (hold bool, err error) {
	r.plain = r.plain && (u.Free || r.whole != nil)
	r.repeat.n = 0
	fate, err := r.format.Fate(u)
	if fate == FateWait && !r.tools { // no call can follow it
		fate = FateShow
	}
	switch {
	case err == nil && r.Buf.shows(fate):
		r.marked = false
	case !r.marked && r.marks < mostMarks:
		r.format.Mark()
		r.marked, r.marks = true, r.marks+1
	}
	if err != nil {
		return true, err
	}
	if err := r.format.Read(u); err != nil {
		return true, err
	}
	if fate != FateShow && !r.Buf.holding {
		r.repeat.n = 0
	}
	var written *string
	if !u.Free && fate != FateHold {
		text := r.Buf.event(u, r.known)
		written = &text
	}
	r.Buf.put(u.Event, fate, written)
	return fate == FateHold, nil
}

// isFree reports whether u is strictly framed, and free of the words for calls.
func (b *Buffer) isFree(u *Unit) bool { return b.framed(u) && Free(u.Bytes) }

// framed reports whether every reader cuts the unit out of the stream in the same way:
// its bytes are UTF-8 without control characters, and its lines all end in LF, or all in CRLF,
// and are fields of an event, of which one has data. NEL, LS and PS end lines for some
// readers, and google-genai for Python joins lines that have no field.
func (b *Buffer) framed(u *Unit) bool {
	for i := 0; i < len(u.Bytes); i++ {
		if c := u.Bytes[i]; c < ' ' && c != '\n' && (c != '\r' || i+1 == len(u.Bytes) || u.Bytes[i+1] != '\n') && (b.framing != whole && b.framing != array || c != '\t' && c != '\r') {
			return false
		}
	}
	if !utf8.ValidString(u.Bytes) || cut(u.Bytes) {
		return false
	}
	switch b.framing {
	case sse:
		if u.Data != "" && len(u.Bytes) == len("data: \n\n")+len(u.Data) && strings.HasPrefix(u.Bytes, "data: ") {
			return true
		}
		if n := strings.Count(u.Bytes, "\r"); u.folded || n > 0 && n != strings.Count(u.Bytes, "\n") {
			return false
		}
		for line := range strings.SplitSeq(u.Bytes, "\n") {
			if line = strings.TrimSuffix(line, "\r"); line != "" && !slices.ContainsFunc(fieldStarts, func(f string) bool { return strings.HasPrefix(line, f) }) {
				return false
			}
		}
		return true
	case lines:
		return len(u.Bytes) <= len(u.Data)+1 || len(u.Bytes) == len(u.Data)+2 && strings.HasSuffix(u.Bytes, "\r\n")
	case array: // what separates it from the element before
		return strings.Trim(u.Bytes[:len(u.Bytes)-len(u.Data)], "[, \t\r\n") == ""
	}
	return true
}

// fieldStarts are how the lines of an event begin.
var fieldStarts = []string{"data: ", "event:", "id:", "retry:", ":"}

// event returns u as it is written: its name, and the members of its data that are known
// or free of calls. It is "" for a unit without an object.
func (b *Buffer) event(u *Unit, known Tree) string {
	if !u.Value.Exists() {
		return ""
	}
	name := u.Name
	if !isName(name) || !Free(name) && name != u.Value.Get("type").Str() {
		name = ""
	}
	shown, _, _ := b.Shown()
	data := Clean(known.Write(u.Value))
	return b.framing.frame(shown, name, data, strings.HasSuffix(u.Bytes, "\r\n\r\n"))
}

// isName reports whether name is made of what names of events are made of.
func isName(name string) bool {
	for _, c := range []byte(name) {
		if (c|0x20 < 'a' || c|0x20 > 'z') && (c < '0' || c > '9') && c != '_' && c != '.' && c != '-' {
			return false
		}
	}
	return true
}

// Tell sends to sink what a part of that kind says. sink may be nil. A part that
// is neither text nor reasoning, and an empty text, say nothing.
func Tell(sink middleware.Sink, kind middleware.PartKind, text string) error {
	event := middleware.EventText
	switch {
	case sink == nil, text == "":
		return nil
	case kind == middleware.PartReasoning:
		event = middleware.EventReasoning
	case kind != middleware.PartText:
		return nil
	}
	return sink(middleware.Event{Kind: event, Text: text})
}

// TellAll sends to sink what parts say.
func TellAll(sink middleware.Sink, parts []middleware.Part) error {
	for _, p := range parts {
		if err := Tell(sink, p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// CutShort reports whether err, of a text that is not JSON, says that only the end
// of the text is missing: then the answer is incomplete rather than of another
// format.
func CutShort(err error) bool {
	var bad *rawjson.Error
	return errors.As(err, &bad) && bad.AtEnd
}

// Unreadable returns why u, which is a whole answer, is not an object, and nil if it is.
func (u *Unit) Unreadable() error {
	switch {
	case CutShort(u.Err) && strings.HasPrefix(u.Data, "{"):
		return ErrIncomplete
	case u.Err != nil:
		return u.Err
	case !u.Value.Exists():
		return Shapef("an empty answer")
	}
	return nil
}
