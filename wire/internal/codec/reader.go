package codec

import (
	"errors"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
)

// Reader is what the streams of all formats have in common: it collects the bytes
// of an answer, hands its events to the format, and keeps the result. A format's
// stream embeds it.
type Reader struct {
	Buf    *Buffer
	event  func(Event) (hold bool, err error)
	end    func() (*middleware.Response, error)
	err    error // the first one
	resp   *middleware.Response
	closed bool
}

// NewReader returns a Reader at the beginning of an answer. event reads one
// event, as Buffer.Feed demands. end puts the answer together after the last one.
func NewReader(buf *Buffer, event func(Event) (hold bool, err error), end func() (*middleware.Response, error)) Reader {
	return Reader{Buf: buf, event: event, end: end}
}

// Write is part of Stream. After an error it takes no more.
func (r *Reader) Write(p []byte) (int, error) {
	if r.err == nil {
		r.err = r.Buf.Feed(p, r.event)
	}
	if r.err != nil {
		return 0, r.err
	}
	return len(p), nil
}

// Safe is part of Stream.
func (r *Reader) Safe() int { return r.Buf.Safe() }

// Shown is part of Stream.
func (r *Reader) Shown() (out string, safe int, behind string) { return r.Buf.Shown() }

// Text is part of Stream.
func (r *Reader) Text() string { return r.Buf.Text() }

// Comment is part of Stream, for a format whose clients skip comments.
func (r *Reader) Comment(text string) []byte { return r.Buf.Comment(text) }

// Closed reports whether Close was called: what is read now are the last events.
func (r *Reader) Closed() bool { return r.closed }

// Close is part of Stream. It returns the same result each time.
func (r *Reader) Close() (*middleware.Response, error) {
	if r.closed {
		return r.resp, r.err
	}
	r.closed = true
	if r.err == nil {
		r.err = r.Buf.End(r.event)
	}
	if r.err == nil {
		r.resp, r.err = r.end()
	}
	return r.resp, r.err
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

// CutShort reports whether err, of a text that is not JSON, says that only the end
// of the text is missing: then the answer is incomplete rather than of another
// format.
func CutShort(err error) bool {
	var bad *rawjson.Error
	return errors.As(err, &bad) && bad.AtEnd
}
