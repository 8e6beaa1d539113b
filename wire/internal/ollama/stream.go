package ollama

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// stream reads an answer. One that is not streamed is a stream of one line.
type stream struct {
	answer
	buf    *codec.Buffer
	sink   middleware.Sink
	before int // calls in the conversation so far
	err    error
	body   string // once it is closed
	closed bool
	resp   *middleware.Response
	own    *handle // behind resp
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{buf: codec.NewBuffer(true), sink: sink}
	if req != nil {
		s.before = codec.Calls(req.Messages)
	}
	return s
}

// Write is part of wire.Stream.
func (s *stream) Write(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	if s.err = s.buf.Feed(p, s.event); s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Safe is part of wire.Stream.
func (s *stream) Safe() int {
	if s.buf.IsWhole() {
		return 0
	}
	return s.buf.Safe()
}

// Text is part of codec.Stream.
func (s *stream) Text() string { return s.buf.Text() }

// Close is part of wire.Stream.
func (s *stream) Close() (*middleware.Response, error) {
	if s.closed {
		return s.resp, s.err
	}
	s.closed = true
	if s.err == nil {
		s.err = s.buf.End(s.event)
	}
	s.body = s.buf.Text()
	if s.err == nil {
		s.resp, s.err = s.response()
	}
	return s.resp, s.err
}

// event reads one line. Nothing from a call, an error or the end on is safe.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	if s.buf.IsEvents() && objects(s.buf.Text()[e.Start:e.End]) {
		return true, codec.Shapef("an object on a line of its own in a stream of events") // which readers of lines find
	}
	root, ok, err := line(e, s.buf.IsWhole())
	if err != nil || !ok {
		return false, err
	}
	calls := len(s.calls)
	message, err := s.add(root)
	if err != nil {
		return false, err
	}
	if err := s.show(message); err != nil {
		return false, err
	}
	return len(s.calls) > calls || s.failure != nil || s.done, nil
}

// objects reports whether a line of text begins as an object does.
func objects(text string) bool {
	for row := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(row), "{") {
			return true
		}
	}
	return false
}

// line parses the data of an event; false for what is kept and not read: an
// empty line, one that is no JSON object, one that was cut off. A line that
// could be part of an object is ErrShape.
func line(e codec.Event, whole bool) (rawjson.Value, bool, error) {
	if e.Data == "" {
		return rawjson.Value{}, false, nil
	}
	doc, err := codec.Parse(e.Data)
	if err != nil {
		var why *rawjson.Error
		cut := whole || e.DataStart+len(e.Data) == e.End // no line end follows
		if errors.As(err, &why) && (why.AtEnd && cut || !whole && why.Code == rawjson.Syntax && !strings.ContainsAny(e.Data, "{}")) {
			err = nil
		}
		return rawjson.Value{}, false, err
	}
	if doc.Root().Kind() != rawjson.Object {
		if whole {
			err = codec.Shapef("%s where an object should be", doc.Root().Kind())
		}
		return rawjson.Value{}, false, err
	}
	return doc.Root(), true, answerEnvelope.Check(doc.Root())
}

// show sends the text of a line to the sink.
func (s *stream) show(message rawjson.Value) error {
	if s.sink == nil || !message.Exists() {
		return nil
	}
	for _, p := range []struct {
		key  string
		kind middleware.EventKind
	}{{"thinking", middleware.EventReasoning}, {"content", middleware.EventText}} {
		if piece := message.Get(p.key).Str(); piece != "" {
			if err := s.sink(middleware.Event{Kind: p.kind, Text: piece}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Rest is part of codec.Stream. The lines of a later answer follow those that
// were shown: a client joins them as it does any others.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	if !s.closed || sent < 0 || sent > len(s.body) {
		return nil, codec.Unencodablef("the rest of a stream that has no such part")
	}
	h, err := behind(resp)
	if err != nil {
		return nil, err
	}
	body, err := h.encode(resp)
	if err != nil || sent == 0 {
		return body, err
	}
	shown := s.body[:sent]
	if h == s.own || resp.Native.Ref == nil && resp.Native.Raw == s.body {
		if !strings.HasPrefix(string(body), shown) {
			return nil, codec.Unencodablef("a change of what was shown already")
		}
		return body[sent:], nil
	}
	rest := string(body)
	if h.whole {
		rest = codec.OneLine(strings.TrimSpace(rest)) + "\n"
	}
	if !strings.HasSuffix(shown, "\n") {
		rest = "\n" + rest
	}
	return []byte(rest), nil
}
