package codec

import "github.com/toolmend/toolmend/middleware"

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
func NewReader(buf *Buffer, event func(Event) (hold bool, err error), end func() (*middleware.Response, error)) *Reader {
	return &Reader{Buf: buf, event: event, end: end}
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

// Text is part of Stream.
func (r *Reader) Text() string { return r.Buf.Text() }

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
