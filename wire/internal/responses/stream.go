package responses

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// stream reads one answer.
type stream struct {
	req    *middleware.Request // that is answered; nil: not known
	buf    *codec.Buffer
	sink   middleware.Sink
	events events
	err    error // ends the stream
	fault  error // the provider's, in the stream
	typed  bool  // an event that is held has its type in the data
	named  bool  // one has it in its name alone
	odd    error // an event that cannot be read, unless the answer is cut off in it

	closed bool
	resp   *middleware.Response
	answer *answer
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	return &stream{req: req, buf: codec.NewBuffer(false), sink: sink, events: newEvents()}
}

// Write is part of wire.Stream.
func (s *stream) Write(p []byte) (int, error) {
	if s.err == nil {
		s.err = s.buf.Feed(p, s.event)
	}
	if s.err != nil {
		return 0, s.err
	}
	return len(p), nil
}

// Safe is part of wire.Stream.
func (s *stream) Safe() int { return s.buf.Safe() }

// Text is part of codec.Stream.
func (s *stream) Text() string { return s.buf.Text() }

// Close is part of wire.Stream.
func (s *stream) Close() (*middleware.Response, error) {
	if !s.closed {
		s.closed = true
		s.resp, s.err = s.end()
	}
	return s.resp, s.err
}

func (s *stream) end() (*middleware.Response, error) {
	if s.err != nil {
		return nil, s.err
	}
	var resp *middleware.Response
	err := s.buf.End(s.event)
	switch {
	case err != nil:
	case s.buf.IsWhole():
		resp, s.answer, err = whole(s.buf.Text())
		if cut := (*rawjson.Error)(nil); errors.As(err, &cut) && cut.AtEnd {
			err = codec.ErrIncomplete
		}
		if err == nil {
			err = s.showWhole(resp.Message)
		}
	case s.fault != nil:
		err = s.fault
	case s.buf.IsArray():
		err = codec.Shapef("a list where an answer should be")
	case s.events.last < 0:
		err = codec.ErrIncomplete
	case s.odd != nil:
		err = s.odd
	default:
		resp, s.answer, err = s.events.answer(s.buf.Text())
		if err == nil && s.typed && s.named && len(resp.Message.ToolCalls) > 0 {
			err = codec.Shapef("calls in events of which some have no type") // which clients leave out
		}
	}
	if err == nil {
		err = s.answer.msg.answered(s.req)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// showWhole shows what came in one piece.
func (s *stream) showWhole(m middleware.Message) error {
	for _, p := range m.Parts {
		if err := s.show(p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) show(k middleware.PartKind, text string) error {
	kind := middleware.EventText
	switch {
	case s.sink == nil || text == "":
		return nil
	case k == middleware.PartReasoning:
		kind = middleware.EventReasoning
	case k != middleware.PartText:
		return nil
	}
	return s.sink(middleware.Event{Kind: kind, Text: text})
}

// event takes one event. From the first on that belongs to a call of the
// client's, is an error or the end, nothing is to be shown.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	if s.buf.IsWhole() || s.buf.IsArray() {
		return true, nil
	}
	ev := event{Event: e, flow: -1}
	if e.Data != "" {
		if root, err := codec.ParseObject(e.Data); err == nil {
			ev.root = root
		}
	}
	if err := answerEnvelope.Check(ev.root); err != nil {
		return true, err
	}
	if !ev.root.Exists() {
		return s.strange(e), s.events.add(ev)
	}
	ev.typ = ev.root.Get("type").Str()
	if e.Name != ev.typ && e.Name != "" && e.Name != "message" && ev.typ != "" && (holdsCalls(e.Name) || holdsCalls(ev.typ)) {
		return true, codec.Shapef("an event of two types")
	}
	untyped := ev.typ == ""
	if ev.typ == "" || e.Name == "error" {
		ev.typ = e.Name
	}
	called, err := s.events.announce(ev)
	if err != nil {
		return true, err
	}
	if hold, err = s.take(&ev); err == nil {
		err = s.events.add(ev)
	}
	if hold = hold || called; called && s.fault != nil {
		return true, codec.Shapef("calls in a response beside an error")
	}
	s.typed = s.typed || hold && !untyped
	s.named = s.named || hold && untyped
	return hold || s.fault != nil, err
}

// strange takes an event that is no object: a comment, [DONE], or what nobody
// knows. An error may be a text, or have no field before it. One that is broken
// is held, as nobody can tell what it begins.
func (s *stream) strange(e codec.Event) (hold bool) {
	data := strings.TrimSpace(e.Data)
	if e.Name == "error" {
		s.fault = inAnswer(codec.Refusal(codec.Failure{Message: data}, rawjson.Value{}))
	} else if strings.HasPrefix(e.Text, "{") {
		if root, err := codec.ParseObject(e.Text); err == nil && root.Get("error").Exists() {
			f, _ := failure(root)
			s.fault = inAnswer(f)
		}
	}
	if s.fault == nil && strings.HasPrefix(data, "{") {
		s.odd = codec.Shapef("an event that is no JSON")
	}
	return s.fault != nil || s.odd != nil
}

// holdsCalls reports whether a client may read a call in events of that type.
// Some clients take the type from the data, some from the name of the event.
func holdsCalls(typ string) bool {
	switch typ {
	case "response.created", "response.in_progress", "response.queued",
		"response.completed", "response.incomplete", "response.failed", "response.cancelled",
		"response.output_item.added", "response.output_item.done":
		return true
	}
	return isArguments(typ)
}

// take reads an event by its type.
func (s *stream) take(ev *event) (hold bool, err error) {
	switch ev.typ {
	case "response.created", "response.in_progress", "response.queued":
		ev.head = true
		return false, nil
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true, s.finish(ev)
	case "error":
		f, _ := failure(ev.root)
		s.fault = inAnswer(f)
		return true, nil
	case "response.output_item.added", "response.output_item.done":
		if err := s.events.item(ev, ev.typ == "response.output_item.done"); err != nil {
			return true, err
		}
		if ev.flow < 0 {
			return false, nil
		}
		f := s.events.flows[ev.flow]
		return f.isCall(), s.showItem(f)
	}
	if ev.typ == "" && ev.root.Get("error").Exists() {
		f, _ := failure(ev.root)
		s.fault = inAnswer(f)
		return true, nil
	}
	if err := s.events.belongs(ev); err != nil || ev.flow < 0 {
		return false, err
	}
	f := s.events.flows[ev.flow]
	if f.isCall() {
		return true, f.takeArguments(ev)
	}
	return false, s.showDelta(ev, f)
}

func (s *stream) finish(ev *event) error {
	env, err := ev.object("response")
	if err != nil {
		return err
	}
	if s.events.last >= 0 {
		return codec.Shapef("an answer that ends twice")
	}
	s.events.last = len(s.events.all)
	if err = failed(env); err == nil && ev.typ == "response.failed" {
		err = uncalled(env)
	}
	switch {
	case errors.Is(err, codec.ErrShape):
		return err
	case err != nil:
		s.fault = err
	case ev.typ == "response.failed":
		f, _ := failure(env)
		s.fault = inAnswer(f)
	}
	return nil
}

// showItem shows the text of an item that came without deltas.
func (s *stream) showItem(f *flow) error {
	if !f.done.Exists() || f.shown || f.it.sort != isMessage && f.it.sort != isReasoning {
		return nil
	}
	f.shown = true
	var m middleware.Message
	it, err := answerItem(f.done)
	if err != nil || it.read(&m) != nil {
		return nil // out of shape, with no call in it
	}
	return s.showWhole(m)
}

// showDelta shows a piece of text or of reasoning. Where another piece of
// reasoning begins, the space between the two comes first.
func (s *stream) showDelta(ev *event, f *flow) error {
	kind, index := middleware.PartReasoning, ""
	switch ev.typ {
	case "response.output_text.delta", "response.refusal.delta":
		kind = middleware.PartText
	case "response.reasoning_summary_text.delta":
		index = "summary " + ev.root.Get("summary_index").Raw()
	case "response.reasoning_text.delta":
		index = "content " + ev.root.Get("content_index").Raw()
	default:
		return nil
	}
	text := ev.root.Get("delta").Str()
	if f.shown && f.piece != index {
		text = between + text
	}
	f.shown, f.piece = true, index
	return s.show(kind, text)
}
