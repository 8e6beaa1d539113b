package anthropic

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads one answer: one object, or events in this order:
//
//	event: message_start         {"type": …, "message": the answer without content}
//	event: content_block_start   {"type": …, "index": 0, "content_block": {"type": "text", "text": ""}}
//	event: content_block_delta   {"type": …, "index": 0, "delta": {"type": "text_delta", "text": "Let me see."}}
//	event: content_block_stop    {"type": …, "index": 0}
//	event: message_delta         {"type": …, "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 15}}
//	event: message_stop          {"type": …}
//
// A ping may stand anywhere, an error ends the stream. Clients differ: some go by
// the name of an event, some by the type in its data; some by the index of a block,
// some by the order of events. A stream in which that makes a difference for a call
// is unreadable, which is what most of the fields below are for.
type stream struct {
	codec.Reader
	sink middleware.Sink
	a    *answer
	open []*building // the blocks, in the order in which they start
	at   map[int]int // where the block of an index stands in open

	stopped bool                   // message_stop has come
	skewed  bool                   // a block has an index that is not its place
	bare    bool                   // an event that may hold a call has no name
	typed   bool                   // an event of a call, or one that is held, has its type in the data
	untyped bool                   // one has it in its name alone
	torn    error                  // an event that cannot be read, unless the answer is cut off in it
	failed  *middleware.ModelError // what the provider said
	odd     error                  // events that do not fit, but may be followed by an error that explains them
}

// event is one event of a stream.
type event struct {
	codec.Event
	kind  string // its type
	block int    // the block that it is of, -1: none
	index int    // what the event calls it
}

// The way from an answer, or an event of one, to its calls.
var (
	blockEnvelope  = codec.Envelope{{Key: "type"}, {Key: "id"}, {Key: "name"}, {Key: "input"}, {Key: "text"}}
	answerEnvelope = codec.Envelope{{Key: "type"}, {Key: "error"}, {Key: "index"}, {Key: "role"}, {Key: "stop_reason"},
		{Key: "content", In: blockEnvelope}, {Key: "content_block", In: blockEnvelope},
		{Key: "message", In: codec.Envelope{{Key: "role"}, {Key: "content", In: blockEnvelope}, {Key: "stop_reason"}}},
		{Key: "delta", In: codec.Envelope{{Key: "type"}, {Key: "text"}, {Key: "partial_json"}, {Key: "stop_reason"}}}}
)

// NewStream is part of wire.Codec.
func (Format) NewStream(_ *middleware.Request, sink middleware.Sink) codec.Stream {
	return newStream(sink)
}

// newStream returns a reader at the beginning of an answer. sink may be nil.
func newStream(sink middleware.Sink) *stream {
	s := &stream{sink: sink, a: &answer{start: -1, delta: -1, counts: -1}, at: map[int]int{}}
	s.Reader = codec.NewReader(codec.NewBuffer(false), s.event, s.response)
	return s
}

// response puts the answer together after its last event. A stream is whole with
// its message_stop.
func (s *stream) response() (*middleware.Response, error) {
	s.a.text = s.Text()
	if err := s.verdict(); err != nil {
		return nil, err
	}
	for _, b := range s.open {
		done, err := b.block()
		if err != nil {
			return nil, err
		}
		s.a.blocks = append(s.a.blocks, done)
	}
	return s.a.response(), nil
}

// verdict returns why what was read is not an answer; nil if it is one. What the
// provider said counts most, because it explains all the rest. An answer that ended
// early counts before an event that cannot be read, which may be the one that was
// cut off.
func (s *stream) verdict() error {
	switch {
	case s.Buf.IsArray():
		return codec.Shapef("a list")
	case s.failed != nil && s.a.figures != figures{}:
		return codec.WithUsage(s.failed, s.a.is.Model, s.a.figures.usage())
	case s.failed != nil:
		return s.failed
	case s.odd != nil:
		return s.odd
	case !s.stopped:
		return codec.ErrIncomplete
	case s.torn != nil:
		return s.torn
	case s.a.named && s.bare && s.holdsCall():
		return codec.Shapef("calls in events of which some have no name") // which clients that go by names leave out
	case s.typed && s.untyped && s.holdsCall():
		return codec.Shapef("calls in events of which some have no type") // which clients that go by types leave out
	case s.skewed && s.holdsCall():
		return codec.Shapef("calls among blocks whose indices are not their places")
	}
	return nil
}

// show tells the sink of a piece of text or reasoning.
func (s *stream) show(kind middleware.PartKind, text string) error {
	return codec.Tell(s.sink, kind, text)
}

// whole reads an answer that is not a stream.
func (s *stream) whole(e codec.Event) error {
	doc, err := codec.Parse(e.Data)
	switch {
	case codec.CutShort(err) && strings.HasPrefix(e.Data, "{"):
		return codec.ErrIncomplete
	case err != nil:
		return err
	}
	root := doc.Root()
	switch err := answerEnvelope.Check(root); {
	case err != nil:
		return err
	case isFailure(root) && !holdsCall(root.Get("content")):
		s.fail(root)
		return nil
	case root.Get("content").Kind() != rawjson.Array:
		return codec.Shapef("an answer without a list of content")
	}
	s.stopped = true
	s.a.whole = &lens.Chunk{Event: e, Doc: doc}
	s.a.message(root)
	s.a.stop = codec.Text(root.Get("stop_reason"))
	for v := range root.Get("content").Each() {
		b, err := readAnswered(v)
		if err != nil {
			return err
		}
		s.a.blocks = append(s.a.blocks, b)
		if err := s.show(b.part.Kind, b.part.Text); err != nil {
			return err
		}
	}
	return nil
}

// event reads one event. What holds a call, an error or the end is not to be
// shown at once.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	switch {
	case s.Buf.IsWhole():
		return true, s.whole(e)
	case s.Buf.IsArray():
		return true, codec.Shapef("a list")
	}
	called := false
	bad := codec.Borrow(e.Data, func(root rawjson.Value) error {
		called = true
		if err = answerEnvelope.Check(root); err != nil {
			hold = true
			return nil
		}
		hold, err = s.read(e, root, nil)
		return nil
	})
	if called {
		return hold, err
	}
	return s.read(e, rawjson.Value{}, bad)
}

// read reads an event of a stream. err says why its data is not an object, root. No
// value of it is kept.
func (s *stream) read(e codec.Event, root rawjson.Value, err error) (hold bool, _ error) {
	ev := event{Event: e, block: -1}
	inData := root.Get("type").Str()
	typ := cmp.Or(inData, e.Name)
	switch {
	case e.Name != typ && e.Name != "" && e.Name != "message" && (holdsCalls(e.Name) || holdsCalls(typ)):
		return true, codec.Shapef("an event of two types")
	case err == nil && isFailure(root), e.Name == "error":
		ev.kind = "error"
	case err == nil:
		ev.kind = typ
	case strings.HasPrefix(strings.TrimSpace(e.Data), "{"):
		s.torn = codec.Shapef("an event that is not JSON")
	case e.Data == "": // a cloud may put its error there without a field
		if bare, err := codec.ParseObject(strings.TrimSpace(e.Text)); err == nil && isFailure(bare) {
			root, ev.kind = bare, "error"
		}
	}
	if s.a.start < 0 && (strings.HasPrefix(ev.kind, "content_block_") || ev.kind == "message_delta" || ev.kind == "message_stop") {
		s.odd = codec.Shapef("a %s before the message", ev.kind)
	}
	if err == nil && holdsCalls(ev.kind) {
		s.a.named = s.a.named || e.Name == ev.kind
		s.bare = s.bare || e.Name != ev.kind
	}
	switch ev.kind {
	case "message_start":
		hold, err = s.started(root)
	case "content_block_start":
		hold, err = s.blockStart(root, &ev)
	case "content_block_delta":
		err = s.blockDelta(root, &ev)
	case "content_block_stop":
		err = s.blockStop(root, &ev)
	case "message_delta":
		hold, err = true, s.delta(root)
	case "message_stop":
		hold, err, s.stopped = true, nil, true
		for _, b := range s.open {
			b.ended = true
		}
	case "error":
		s.fail(root)
		hold, err = true, nil
	default:
		s.pass(ev)
		return s.odd != nil || s.torn != nil, nil
	}
	if hold || ev.kind == "content_block_start" || err == nil && ev.block >= 0 && s.open[ev.block].isCall {
		s.typed = s.typed || inData != ""
		s.untyped = s.untyped || inData == ""
	}
	s.a.events = append(s.a.events, ev)
	return hold || s.odd != nil, err
}

// holdsCalls reports whether events of that kind bring a call or a part of it.
// Some clients take the kind from the data, some from the name of the event.
func holdsCalls(kind string) bool {
	return kind == "message_start" || kind == "content_block_start" || kind == "content_block_delta" || kind == "content_block_stop"
}

// holdsCall reports whether a block that has started is a call.
func (s *stream) holdsCall() bool {
	return slices.ContainsFunc(s.open, func(b *building) bool { return b.isCall })
}

// pass keeps an event that is unknown, or no JSON, as bytes. Those in a row are
// one: a line break is an event too, and there may be millions.
func (s *stream) pass(ev event) {
	ev.kind, ev.Data = "", ""
	if n := len(s.a.events); n > 0 && s.a.events[n-1].kind == "" {
		s.a.events[n-1].End = ev.End
		return
	}
	s.a.events = append(s.a.events, ev)
}

// started reads the start of the message. Blocks that stand in it are whole:
// clients that collect the message take them, and put later blocks behind them.
func (s *stream) started(root rawjson.Value) (hold bool, err error) {
	if s.a.start >= 0 {
		return true, codec.Shapef("a second start of the message")
	}
	s.a.start = len(s.a.events)
	m := root.Get("message")
	if m.Kind() != rawjson.Object {
		return true, codec.Shapef("a start without a message")
	}
	s.a.message(m)
	for v := range m.Get("content").Each() {
		n := len(s.open)
		start, err := kept(v)
		if err != nil {
			return true, err
		}
		first, err := readAnswered(start)
		if err != nil {
			return true, err
		}
		s.at[n] = n
		s.open = append(s.open, &building{index: n, start: start, early: true, isCall: first.isCall})
		hold = hold || first.isCall
		if err := s.show(first.part.Kind, first.part.Text); err != nil {
			return true, err
		}
	}
	return hold, nil
}

// delta reads a message_delta, of which some servers send several. The last finish
// reason counts, and a figure that is left out is as it was.
func (s *stream) delta(root rawjson.Value) error {
	stop := codec.Text(root.Get("delta").Get("stop_reason"))
	if stop != "" || s.a.delta < 0 {
		s.a.stop = stop
	}
	s.a.delta = len(s.a.events)
	if usage := root.Get("usage"); usage.Kind() == rawjson.Object {
		s.a.counts = len(s.a.events)
		s.a.figures = s.a.figures.over(usage)
	}
	return nil
}

// index returns the block that an event is about; -1 if it has not started.
func (s *stream) index(root rawjson.Value) (n, block int, err error) {
	v := root.Get("index")
	if v.Kind() != rawjson.Number || codec.Int(v) < 0 || codec.Int(v) > codec.MaxBody {
		return 0, 0, codec.Shapef("an event of a block without an index")
	}
	n = int(codec.Int(v))
	if i, ok := s.at[n]; ok {
		return n, i, nil
	}
	return n, -1, nil
}

// blockStart reads the start of a block. From a call on, nothing is shown.
func (s *stream) blockStart(root rawjson.Value, ev *event) (hold bool, err error) {
	n, i, err := s.index(root)
	if err != nil {
		return true, err
	}
	ev.index = n
	v := root.Get("content_block")
	if i >= 0 || v.Kind() != rawjson.Object {
		return true, codec.Shapef("a block that starts twice, or is none")
	}
	start, err := kept(v)
	if err != nil {
		return true, err
	}
	b := &building{index: n, start: start}
	ev.block = len(s.open)
	s.skewed = s.skewed || n != ev.block
	s.at[n] = ev.block
	s.open = append(s.open, b)
	first, err := readAnswered(start)
	if err != nil {
		return true, err
	}
	b.isCall = first.isCall
	return first.isCall, s.show(first.part.Kind, first.part.Text)
}

// blockDelta reads a piece of a block. One of a block that has not started is
// forgiven if an error follows: a server that fails may lose events.
func (s *stream) blockDelta(root rawjson.Value, ev *event) error {
	n, i, err := s.index(root)
	if err != nil {
		return err
	}
	ev.index = n
	delta := root.Get("delta")
	if delta.Kind() != rawjson.Object {
		return codec.Shapef("a delta that is none")
	}
	kind := delta.Get("type").Str()
	if i < 0 {
		s.odd = codec.Shapef("a delta of a block that has not started")
		return nil
	}
	ev.block = i
	if err := s.fits(i, kind); err != nil {
		return err
	}
	return s.open[i].add(delta, kind, s.show)
}

// blockStop reads the end of a block. That of a block which never started ends
// nothing.
func (s *stream) blockStop(root rawjson.Value, ev *event) error {
	n, i, err := s.index(root)
	ev.index, ev.block = n, i
	if err != nil || i < 0 {
		return err
	}
	if s.open[i].early {
		return codec.Shapef("the stop of a block that came whole")
	}
	s.open[i].ended = true
	return nil
}
