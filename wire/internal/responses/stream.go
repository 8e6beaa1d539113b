package responses

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// maxEvents bounds what is kept of a stream of very small events.
const maxEvents = 1 << 19

// event is one event of a stream, such as
//
//	event: response.output_text.delta
//	data: {"type": "response.output_text.delta", "item_id": …, "output_index": 0, "delta": text, "sequence_number": 7}
//
// Some servers leave out the name, the number or the index.
type event struct {
	codec.Event
	typ  string
	root rawjson.Value // absent: no JSON
	head bool          // says that the answer has begun
	flow int           // the item that it is about, -1: none
}

// recording is what was read of an answer. Nothing in it leads to the response
// that the caller has.
type recording struct {
	buf    *codec.Buffer
	events []event
	flows  []*flow
	last   int // the event that ends the answer; -1: none yet, or no stream
}

// stream reads one answer: one object, or events in this order:
//
//	response.created              the response object, without output
//	response.output_item.added    an item, without what follows
//	response.output_text.delta    a piece of a text, or of arguments
//	response.output_text.done     the whole text
//	response.output_item.done     the item, whole
//	response.completed            the response object, with output and usage
//
// Items may be interleaved, and some servers leave out all but deltas and the last
// event. Text is shown as it comes; from the first event of a call on, nothing is.
type stream struct {
	codec.Reader
	*recording
	req   *middleware.Request // that is answered; nil: not known
	sink  middleware.Sink
	open  map[int64]int   // output_index: the flow that came last
	byID  map[string]int  // id of an item: the flow that came last
	early []rawjson.Value // the calls in the response objects before the end
	fault error           // the provider's, in the stream
	typed bool            // an event that is held has its type in the data
	named bool            // one has it in its name alone
	odd   error           // an event that cannot be read, unless the answer is cut off in it

	answer *answer // nil: there is none yet, or it was not readable
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	return newStream(req, sink)
}

// newStream returns a reader. req and sink may be nil.
func newStream(req *middleware.Request, sink middleware.Sink) *stream {
	s := &stream{recording: &recording{buf: codec.NewBuffer(false), last: -1}, req: req, sink: sink, open: map[int64]int{}, byID: map[string]int{}}
	s.Reader = codec.NewReader(s.buf, s.event, s.response)
	return s
}

// response puts the answer together after its last event. The caller gets a clone:
// what is remembered for an edit cannot change.
func (s *stream) response() (*middleware.Response, error) {
	a, err := s.end()
	if err == nil {
		err = a.turn.answered(s.req)
	}
	if err != nil {
		return nil, err
	}
	s.answer = a
	resp := a.is.Clone()
	resp.Native = on.Remember(s.Text(), a)
	return resp, nil
}

// end reads the answer when all of it has come. A fault of the provider counts
// more than what is wrong with the form of the stream.
func (s *stream) end() (*answer, error) {
	switch {
	case s.buf.IsWhole():
		a, err := s.readWhole()
		if codec.CutShort(err) {
			err = codec.ErrIncomplete
		}
		if err == nil {
			err = s.showAll(a.is.Message.Parts)
		}
		return a, err
	case s.fault != nil:
		return nil, s.fault
	case s.buf.IsArray():
		return nil, codec.Shapef("a list where an answer should be")
	case s.last < 0:
		return nil, codec.ErrIncomplete
	case s.odd != nil:
		return nil, s.odd
	}
	a, err := s.fold()
	if err == nil && s.typed && s.named && len(a.is.Message.ToolCalls) > 0 {
		err = codec.Shapef("calls in events of which some have no type") // which clients leave out
	}
	return a, err
}

// showAll shows what came in one piece, to the same sink as deltas.
func (s *stream) showAll(parts []middleware.Part) error {
	for _, p := range parts {
		if err := codec.Tell(s.sink, p.Kind, p.Text); err != nil {
			return err
		}
	}
	return nil
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
		return s.strange(e), s.add(ev)
	}
	ev.typ = ev.root.Get("type").Str()
	if e.Name != ev.typ && e.Name != "" && e.Name != "message" && ev.typ != "" && (holdsCalls(e.Name) || holdsCalls(ev.typ)) {
		return true, codec.Shapef("an event of two types")
	}
	untyped := ev.typ == ""
	if untyped || e.Name == "error" {
		ev.typ = e.Name
	}
	called, err := s.announce(ev)
	if err != nil {
		return true, err
	}
	if hold, err = s.take(&ev); err == nil {
		err = s.add(ev)
	}
	if hold = hold || called; called && s.fault != nil {
		return true, codec.Shapef("calls in a response beside an error")
	}
	s.typed = s.typed || hold && !untyped
	s.named = s.named || hold && untyped
	return hold || s.fault != nil, err
}

// add keeps an event. What is not JSON, such as comments, is one with what
// stands before it: a line break is an event too, and there may be millions.
func (s *stream) add(ev event) error {
	if n := len(s.events); n > 0 && !ev.root.Exists() && !s.events[n-1].root.Exists() {
		s.events[n-1].End = ev.End
		return nil
	}
	if len(s.events) == maxEvents {
		return codec.Shapef("a stream of more than %d events", maxEvents)
	}
	s.events = append(s.events, ev)
	return nil
}

// strange takes an event that is not an object: a comment, [DONE], or an unknown
// one. An error may be a text, or have no field before it. One that is broken
// is held, because what it begins is not known.
func (s *stream) strange(e codec.Event) (hold bool) {
	data := strings.TrimSpace(e.Data)
	if e.Name == "error" {
		s.fault = inAnswer(codec.Refusal(codec.Failure{Message: data}, rawjson.Value{}))
	} else if strings.HasPrefix(e.Text, "{") {
		if root, err := codec.ParseObject(e.Text); err == nil && root.Get("error").Exists() {
			s.fail(root)
		}
	}
	if s.fault == nil && strings.HasPrefix(data, "{") {
		s.odd = codec.Shapef("an event that is not JSON")
	}
	return s.fault != nil || s.odd != nil
}

// fail notes the error in v, which ends the answer. The last one counts: an event of
// type error may be followed by response.failed, which says more.
func (s *stream) fail(v rawjson.Value) {
	f, _ := failure(v)
	s.fault = inAnswer(f)
}

// holdsCalls reports whether a client may read a call in events of that type.
// Some clients take the type from the data, some from the name of the event.
func holdsCalls(typ string) bool {
	return isHead(typ) || isEnd(typ) || isItem(typ) || isArguments(typ)
}

// isEnd reports whether an event of that type ends the answer. It holds the whole
// response object.
func isEnd(typ string) bool {
	switch typ {
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return true
	}
	return false
}

// isItem reports whether events of that type hold an item: as it is announced, or
// as it is done.
func isItem(typ string) bool {
	return typ == "response.output_item.added" || typ == "response.output_item.done"
}

// isArguments reports whether events of that type hold arguments of a call.
func isArguments(typ string) bool {
	return strings.HasPrefix(typ, "response.function_call_arguments.") || strings.HasPrefix(typ, "response.custom_tool_call_input.")
}

// take reads an event by its type. An event of no known type that names an item is
// about that item: so it goes with the item where a stream is written again.
func (s *stream) take(ev *event) (hold bool, err error) {
	switch {
	case isHead(ev.typ):
		ev.head = true
		return false, nil
	case isEnd(ev.typ):
		return true, s.finish(ev)
	case ev.typ == "error", ev.typ == "" && ev.root.Get("error").Exists():
		s.fail(ev.root)
		return true, nil
	case isItem(ev.typ):
		err = s.item(ev, ev.typ == "response.output_item.done")
	default:
		err = s.belongs(ev)
	}
	switch {
	case err != nil:
		return true, err
	case ev.flow < 0:
		return false, nil
	}
	f := s.flows[ev.flow]
	switch {
	case isItem(ev.typ):
		return f.isCall(), s.showItem(f)
	case f.isCall():
		return true, f.takeArguments(ev)
	}
	return false, s.showDelta(ev, f)
}

// finish takes the event that ends the answer. A second one is not an event that a
// client waits for, and might hold other calls.
func (s *stream) finish(ev *event) error {
	env := ev.root.Get("response")
	switch {
	case env.Kind() != rawjson.Object:
		return codec.Shapef("%s where the response of an event should be", env.Kind())
	case s.last >= 0:
		return codec.Shapef("an answer that ends twice")
	}
	s.last = len(s.events)
	err := failed(env)
	if err == nil && ev.typ == "response.failed" {
		err = uncalled(env)
	}
	switch {
	case errors.Is(err, codec.ErrShape):
		return err
	case err != nil:
		s.fault = err
	case ev.typ == "response.failed":
		s.fail(env)
	}
	return nil
}

// showItem shows the text of an item that came without deltas, when it is done.
func (s *stream) showItem(f *flow) error {
	if !f.done.Exists() || f.shown || f.sort != isMessage && f.sort != isReasoning {
		return nil
	}
	f.shown = true
	it, err := answerItem(f.done)
	if err != nil || it.read() != nil {
		return nil // out of shape, with no call in it
	}
	return s.showAll(it.parts)
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
	return codec.Tell(s.sink, kind, text)
}
