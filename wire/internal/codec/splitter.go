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
	Free  bool          // strictly framed, and free of the words for calls; not known of a whole answer (see Splitter.Unchanged), and of what follows a held call
	Calls bool          // set by Read: a whole answer has calls, so it is not free
}

// Release tells when a unit goes to the client. Of the parts of a unit, the greatest release
// counts.
type Release uint8

// The releases.
const (
	ReleaseWithPrevious Release = iota // shown with the unit before it: a head, a keep-alive, a figure
	ReleaseAfterText                   // reasoning: shown when text follows, held when a call follows
	ReleaseNow                         // text, and a unit that ends reasoning: shown at once, with all waiting units
	ReleaseHold                        // a call, an error, an end: held, with every unit after it
)

// maxWaiting bounds the bytes of reasoning that wait. After more bytes, the whole answer is
// held.
const maxWaiting = 16 << 20

// UnitHandler is what a format does with the units of an answer.
type UnitHandler interface {
	// Release returns what becomes of u. It changes nothing.
	Release(u *Unit) (Release, error)
	// Read reads u. The error is the sink's, or wraps ErrShape.
	Read(u *Unit) error
	// Snapshot notes that what was read so far is what the client may be shown. It is
	// called before a unit that waits or is held is read.
	Snapshot()
	// Response returns the answer after the last unit.
	Response() (Written, error)
}

// Splitter collects the bytes of an answer, hands its units to the format, and decides what
// the client may get of it. A format's stream embeds it.
type Splitter struct {
	Buf         *Buffer
	Req         *middleware.Request // that is answered; nil: not known
	Sink        middleware.Sink     // of the texts; nil: not streamed
	of          Format
	format      UnitHandler
	known       Tree
	tools       bool // the request offered tools
	unchanged   bool
	whole       func() bool // whether the unit that is read, a whole answer, is free; nil once that is known
	hasSnapshot bool        // the format has noted what is shown
	snapshots   int         // how often it has
	repeat      repeat
	current     Unit  // that is read; its memory is used again
	err         error // the first one
	resp        *middleware.Response
	closed      bool
	last        Event // that has data

	Unread string // how the provider describes a call that it could not read; set before the end

	// Lists means that an answer may be a JSON array of units. In other formats an array is not
	// an answer.
	Lists bool
}

var errList = Shapef("a JSON array, where the format has an object or a stream")

// NewSplitter returns a Splitter at the beginning of an answer. known has the members of a
// unit that the format knows. byLine means that an object may be the first of several lines.
// Only if req offers tools, reasoning waits, and nothing is shown before the first text.
func NewSplitter(of Format, format UnitHandler, known Tree, byLine bool, req *middleware.Request, sink middleware.Sink) Splitter {
	b := NewBuffer(byLine)
	b.waiting = req != nil && len(req.Tools) > 0
	return Splitter{Buf: b, Req: req, Sink: sink, of: of, format: format, known: known, tools: b.waiting, unchanged: true}
}

// Write adds the next bytes. After an error it takes no more.
func (r *Splitter) Write(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.Buf.split(p, r.event, r)
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Close ends the answer and returns it. It returns the same result each time.
func (r *Splitter) Close() (*middleware.Response, error) {
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
		var a Written
		if a, r.err = r.format.Response(); r.err == nil {
			was := a.AsRead()
			was.Text, was.Form, was.Unchanged = r.Text(), r.Buf.answerForm(), r.Unchanged()
			r.resp = was.Is.Clone()
			r.resp.Native = Remember(r.of.Dialect(), was.Text, a)
			r.err = r.unread()
		}
	}
	if r.err != nil {
		r.resp = nil
	}
	return r.resp, r.err
}

// CutAtEnd reports whether u is the last unit, and not JSON only because its end is missing.
func (r *Splitter) CutAtEnd(u *Unit) bool { return r.closed && CutShort(u.Err) }

// Text returns all bytes that were written.
func (r *Splitter) Text() string { return r.Buf.Text() }

// Open returns how many bytes at the end of the text belong to an event that is not complete.
func (r *Splitter) Open() int { return r.Buf.text.Len() - r.Buf.at }

// Last returns the last event that has data.
func (r *Splitter) Last() Event { return r.last }

// Unchanged reports whether all units so far are free: then the answer may pass as it came.
func (r *Splitter) Unchanged() bool {
	if free := r.whole; free != nil {
		r.unchanged, r.whole = r.unchanged && free(), nil
	}
	return r.unchanged
}

// BrokeOff notes that the end of a stream may be missing: it does not pass as it came.
func (r *Splitter) BrokeOff() { r.unchanged = r.unchanged && r.Buf.IsWhole() }

// Renamed returns "": requests do not continue from an earlier answer.
func (r *Splitter) Renamed(int, *middleware.Response) (clientID, providerID string) { return "", "" }

// Output returns the text for the client, how many bytes of it the client may get, and the
// received text that is not part of it yet.
func (r *Splitter) Output() (text string, releasable int, rest string) { return r.Buf.Output() }

// Safe returns how many bytes the client may get.
func (r *Splitter) Safe() int { return r.Buf.Safe() }

// Fail returns the failure that follows the first sent bytes: an event with the error of the format.
func (r *Splitter) Fail(sent, status int, code, message string) []byte {
	return r.Buf.Frame(sent, "", string(r.of.EncodeError(status, code, message)))
}

// Comment returns text as a comment of the stream, for a format whose clients skip comments.
func (r *Splitter) Comment(text string) []byte { return r.Buf.Comment(text) }

// event reads one event of the Buffer, and reports whether the unit is held.
func (r *Splitter) event(e Event) (hold bool, err error) {
	if r.Buf.IsArray() && !r.Lists {
		return true, errList
	}
	u := &r.current
	*u = Unit{Event: e, Bytes: r.Buf.Text()[e.Start:e.End]}
	data := strings.TrimSpace(e.Data)
	if data != "" {
		r.last = e
	} else if strings.HasPrefix(strings.TrimSpace(e.Text), "{") { // some servers send an error as a line without a field
		if v, _ := ParseObject(e.Text); HoldsError(v) {
			u.Name, u.Value = "error", v
		}
	}
	if data == "" || data == "[DONE]" && !r.Buf.IsWhole() {
		u.Free = r.Buf.isFree(u)
		return r.unit(u)
	}
	parsed := false
	err = borrow(e.Data, func(doc *rawjson.Doc) (err error) {
		parsed = true
		hold, err = r.document(u, doc)
		return err
	})
	if !parsed {
		u.Err = err
		return r.unit(u)
	}
	return hold, err
}

// document reads a unit whose data is doc. It keeps nothing of doc.
func (r *Splitter) document(u *Unit, doc *rawjson.Doc) (hold bool, err error) {
	if u.Value = doc.Root(); u.Value.Kind() != rawjson.Object {
		u.Err, u.Value = Shapef("%s where an object should be", u.Value.Kind()), rawjson.Value{}
	}
	if r.Buf.IsWhole() {
		r.whole = func() bool { return r.Buf.isFree(u) && doc.HasPlainKeys() }
	} else {
		u.Free = (r.unchanged || !r.Buf.holding) && r.Buf.isFree(u) && doc.HasPlainKeys()
	}
	if hold, err = r.unit(u); u.Calls {
		r.unchanged, r.whole = false, nil
	}
	r.Unchanged() // calls r.whole while doc is there
	return hold, err
}

// maxSnapshots bounds how often a stream that alternates between text and reasoning is noted:
// each snapshot costs time for everything that was shown. Without a snapshot, Replay reads the
// stream again.
const maxSnapshots = 32

// unit reads u, and puts it into what the client gets unless it is held.
func (r *Splitter) unit(u *Unit) (hold bool, err error) {
	r.unchanged = r.unchanged && (u.Free || r.whole != nil)
	r.repeat.n = 0
	release, err := r.format.Release(u)
	if release == ReleaseAfterText && !r.tools { // no call can follow it
		release = ReleaseNow
	}
	switch {
	case err == nil && r.Buf.isReleased(release):
		r.hasSnapshot = false
	case !r.hasSnapshot && r.snapshots < maxSnapshots:
		r.format.Snapshot()
		r.hasSnapshot, r.snapshots = true, r.snapshots+1
	}
	if err != nil {
		return true, err
	}
	if err := r.format.Read(u); err != nil {
		return true, err
	}
	if release != ReleaseNow && !r.Buf.holding {
		r.repeat.n = 0
	}
	var written *string
	if !u.Free && release != ReleaseHold {
		text := r.Buf.event(u, r.known)
		written = &text
	}
	r.Buf.put(u.Event, release, written)
	return release == ReleaseHold, nil
}

// isFree reports whether u is strictly framed, and free of the words for calls.
func (b *Buffer) isFree(u *Unit) bool { return b.framed(u) && HasNoCallWord(u.Bytes) }

// framed reports whether every reader cuts the unit out of the stream in the same way. Its
// bytes are UTF-8 without control characters, and without the letters at which some client
// ends a line. The rest depends on the framing.
func (b *Buffer) framed(u *Unit) bool {
	oneText := b.form == FormWhole || b.form == FormArray
	if hasControls(u.Bytes, oneText) || !utf8.ValidString(u.Bytes) || cut(u.Bytes) {
		return false
	}
	switch b.form {
	case FormEvents:
		return u.framedEvent()
	case FormLines:
		return len(u.Bytes) <= len(u.Data)+1 || len(u.Bytes) == len(u.Data)+2 && strings.HasSuffix(u.Bytes, "\r\n")
	case FormArray: // the data follows only the separator
		return strings.Trim(u.Bytes[:len(u.Bytes)-len(u.Data)], "[, \t\r\n") == ""
	}
	return true
}

// hasControls reports whether text has a control character other than LF and CRLF. In one
// JSON text, tabs and carriage returns are space between tokens.
func hasControls(text string, oneText bool) bool {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c >= ' ', c == '\n', oneText && (c == '\t' || c == '\r'), c == '\r' && strings.HasPrefix(text[i+1:], "\n"):
		default:
			return true
		}
	}
	return false
}

// framedEvent is framed for a server-sent event. Its lines all end in LF, or all in CRLF,
// and each is a field, because google-genai for Python joins lines without a field. One line
// has the data.
func (u *Unit) framedEvent() bool {
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
	if !isName(name) || !HasNoCallWord(name) && name != u.Value.Get("type").Str() {
		name = ""
	}
	shown, _, _ := b.Output()
	data := Clean(known.Write(u.Value))
	return b.form.frame(shown, name, data, strings.HasSuffix(u.Bytes, "\r\n\r\n"))
}

// isName reports whether name is made of the characters of event names.
func isName(name string) bool { return strings.Trim(name, nameCharacters) == "" }

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"

// Emit sends text of a part of that kind to sink, which may be nil. It ignores empty text, and
// parts other than text and reasoning.
func Emit(sink middleware.Sink, kind middleware.PartKind, text string) error {
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

// EmitParts calls Emit for each part.
func EmitParts(sink middleware.Sink, parts []middleware.Part) error {
	for _, p := range parts {
		if err := Emit(sink, p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
}

// CutShort reports whether err, of a text that is not JSON, means that only the end of the
// text is missing. Such an answer is incomplete; it is not of another format.
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

// repeat is the pattern of the last unit that brought a piece of text, or of a call, and
// nothing else. Most units of a stream differ from the one before only in that piece, and in
// numbers and padding. They are compared with the pattern and not parsed.
//
//	data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"…"}}
//
// The pattern is the text between holes. The holes are the piece, and the values that may
// differ and have no meaning.
type repeat struct {
	fixed   [maxHoles + 1]string
	holes   [maxHoles]hole
	n       int // of the holes; 0: no unit is known
	deliver func(text string) error

	// The units that matched the pattern, one after another, and were not delivered. They are
	// delivered and shown at once.
	units      int
	start, end int
	text       string // of the first unit
	texts      []byte // of all units, if there are several
}

const maxHoles = 3

// hole is a value that differs from unit to unit.
type hole uint8

const (
	textHole   hole = iota // the text
	pieceHole              // a piece of a held call
	padHole                // another string
	numberHole             // a number without a sign
)

// Repeats makes u the pattern for the units after it. u is free and shown, and brings the
// string text and nothing else. The values in differ, at most two, have no meaning. deliver is
// called with the joined texts of the following units that match the pattern.
func (r *Splitter) Repeats(u *Unit, deliver func(text string) error, text rawjson.Value, differ ...rawjson.Value) {
	r.repeat.n = 0
	if u.Free && !r.Buf.holding {
		r.learn(u, deliver, textHole, text, differ)
	}
}

// RepeatsPiece is Repeats for a held unit that brings the string piece of a call. deliver is
// called with JSON strings without their quotes, joined.
func (r *Splitter) RepeatsPiece(u *Unit, deliver func(raw string) error, piece rawjson.Value, differ ...rawjson.Value) {
	r.repeat.n = 0
	if r.Buf.holding && !r.unchanged {
		r.learn(u, deliver, pieceHole, piece, differ)
	}
}

// Repeated returns, while the texts of units are delivered, how many units these are.
func (r *Splitter) Repeated() int { return r.repeat.units }

func (r *Splitter) learn(u *Unit, deliver func(string) error, kind hole, text rawjson.Value, differ []rawjson.Value) {
	if u.folded || text.Kind() != rawjson.String || r.Buf.form != FormEvents && r.Buf.form != FormLines {
		return
	}
	type span struct {
		start, end int
		hole
	}
	var spans [maxHoles]span
	n := 0
	add := func(v rawjson.Value, h hole) {
		start, end := v.Span()
		switch v.Kind() {
		case rawjson.String:
			spans[n] = span{start + 1, end - 1, h}
			n++
		case rawjson.Number:
			spans[n] = span{start, end, numberHole}
			n++
		}
	}
	add(text, kind)
	for _, v := range differ {
		add(v, padHole)
	}
	slices.SortFunc(spans[:n], func(a, b span) int { return a.start - b.start })
	if end := spans[n-1].end; !strings.HasPrefix(u.Data, text.Document()[:end]) { // the format has read it as it is written
		return
	}
	at := 0
	offset := u.DataStart - u.Start
	for i, s := range spans[:n] {
		r.repeat.fixed[i], r.repeat.holes[i] = u.Bytes[at:offset+s.start], s.hole
		at = offset + s.end
	}
	r.repeat.fixed[n], r.repeat.n, r.repeat.deliver = u.Bytes[at:], n, deliver
}

// matches reports whether e differs from the unit before it in its holes only, and keeps it for
// deliverRepeats.
func (r *Splitter) matches(e Event) bool {
	p := &r.repeat
	text, ok := p.match(r.Buf.Text()[e.Start:e.End])
	if !ok || e.End-e.Start > MaxEvent {
		return false
	}
	switch p.units {
	case 0:
		p.start, p.text = e.Start, text
	case 1:
		p.texts = append(append(p.texts[:0], p.text...), text...)
	default:
		p.texts = append(p.texts, text...)
	}
	p.units, p.end = p.units+1, e.End
	return true
}

// deliverRepeats delivers the units that matched the pattern.
func (r *Splitter) deliverRepeats() error {
	p := &r.repeat
	if p.units == 0 {
		return nil
	}
	text := p.text
	if p.units > 1 {
		text = string(p.texts)
	}
	err := p.deliver(text)
	if p.units = 0; err != nil {
		return err
	}
	r.Buf.put(Event{Start: p.start, End: p.end}, ReleaseNow, nil)
	return nil
}

// match returns the text of a unit that differs from the pattern in its holes only; false for
// any other unit.
func (r *repeat) match(unit string) (text string, ok bool) {
	at := 0
	for i, kind := range r.holes[:r.n] {
		if !strings.HasPrefix(unit[at:], r.fixed[i]) {
			return "", false
		}
		at += len(r.fixed[i])
		end, ok := kind.end(unit, at)
		if !ok {
			return "", false
		}
		if kind == textHole || kind == pieceHole {
			text = unit[at:end]
		}
		at = end
	}
	return text, r.n > 0 && unit[at:] == r.fixed[r.n] && text != ""
}

// end returns the end of the value that begins at unit[at], of a string without its quotes;
// false if the hole may not have that value.
func (h hole) end(unit string, at int) (end int, ok bool) {
	if h == numberHole {
		for end = at; end < len(unit) && '0' <= unit[end] && unit[end] <= '9'; {
			end++
		}
		return end, end > at && (end == at+1 || unit[at] != '0') && end <= at+15
	}
	end, simple, ok := rawjson.StringEnd(unit, at-1, false)
	if !ok || h != pieceHole && (!simple || cut(unit[at:end]) || !HasNoCallWord(unit[at-1:end])) {
		return 0, false
	}
	return end - 1, true
}
