package ollama

import (
	"errors"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// stream reads an answer. One that is not streamed is a stream of one line.
type stream struct {
	codec.Reader
	reply
	sink   middleware.Sink
	before int // calls in the conversation so far
}

// NewStream is part of wire.Codec.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{sink: sink}
	if req != nil {
		s.before = codec.Calls(req.Messages)
	}
	s.Reader = codec.NewReader(codec.NewBuffer(true), s.event, s.response)
	return s
}

// event reads one line. Nothing from a call, an error or the end on is safe: until
// the call was validated, the client must not see it, nor that the answer is over.
func (s *stream) event(e codec.Event) (hold bool, err error) {
	if s.Buf.IsArray() {
		return true, codec.Shapef("a list") // whose end, and what is behind it, every reader takes in its own way
	}
	if s.Buf.IsEvents() && holdsObject(s.Buf.Text()[e.Start:e.End]) {
		return true, codec.Shapef("an object on a line of its own in a stream of events") // which readers of lines find
	}
	doc, err := parseLine(e, s.Buf.IsWhole())
	if err != nil || doc == nil {
		return false, err
	}
	calls := len(s.calls)
	message, err := s.add(doc.Root())
	if err != nil {
		return false, err
	}
	if err := s.show(message); err != nil {
		return false, err
	}
	return len(s.calls) > calls || s.failure != nil || s.done, nil
}

// holdsObject reports whether a line of text begins as an object does.
func holdsObject(text string) bool {
	for row := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(row), "{") {
			return true
		}
	}
	return false
}

// parseLine parses the data of an event. It is nil for what is kept and not read:
// an empty line, one that is not a JSON object, one that was cut off. A line that
// could be part of an object is ErrShape.
func parseLine(e codec.Event, whole bool) (*rawjson.Doc, error) {
	if e.Data == "" {
		return nil, nil
	}
	doc, err := codec.Parse(e.Data)
	if err != nil {
		var why *rawjson.Error
		cut := whole || e.DataStart+len(e.Data) == e.End // no line end follows
		if errors.As(err, &why) && (why.AtEnd && cut || !whole && why.Code == rawjson.Syntax && !strings.ContainsAny(e.Data, "{}")) {
			err = nil
		}
		return nil, err
	}
	switch kind := doc.Root().Kind(); {
	case kind == rawjson.Object:
		return doc, answerEnvelope.Check(doc.Root())
	case whole:
		return nil, codec.Shapef("%s where an object should be", kind)
	}
	return nil, nil
}

// answerEnvelope is the way from a line of an answer to its calls.
var answerEnvelope = codec.Envelope{{Key: "error"}, {Key: "done"}, {Key: "message", In: codec.Envelope{{Key: "role"}, {Key: "content"}, {Key: "tool_calls",
	In: codec.Envelope{{Key: "id"}, {Key: "function", In: codec.Envelope{{Key: "index"}, {Key: "name"}, {Key: "arguments"}}}}}}}}

// show sends the text of a line to the sink: reasoning first, which leads to the
// other.
func (s *stream) show(message rawjson.Value) error {
	if err := codec.Tell(s.sink, middleware.PartReasoning, message.Get("thinking").Str()); err != nil {
		return err
	}
	return codec.Tell(s.sink, middleware.PartText, message.Get("content").Str())
}

// reply is what the lines of an answer say together.
type reply struct {
	model          string
	role           string
	words, thought strings.Builder
	images, calls  []string      // elements
	further        []lens.Member // of messages, that this package does not know
	message        rawjson.Value // the last one
	messages       int
	odd            bool // a member of a message is of a kind that has no place in history
	reason         string
	usage          middleware.Usage
	done, seen     bool // seen: something of this format
	strange        bool // seen: an object of another
	failure        *codec.Failure
}

// add reads the next line, and returns its message. Behind an error nothing is
// read. A call behind an error or behind the end is ErrShape: some clients would
// run it, others would not.
func (r *reply) add(root rawjson.Value) (rawjson.Value, error) {
	if r.failure == nil {
		r.failure = failureOf(root)
	}
	switch {
	case r.failure == nil:
	case root.Get("message").Get("tool_calls").Len() > 0:
		return rawjson.Value{}, codec.Shapef("calls beside or behind an error")
	default:
		return rawjson.Value{}, nil
	}
	message, err := on.Kind(root, "message", rawjson.Object)
	switch {
	case err != nil:
		return message, err
	case !message.Exists() && !root.Get("done").Exists():
		r.strange = true
		return message, nil
	case r.done && message.Get("tool_calls").Len() > 0:
		return message, codec.Shapef("a call behind the end of the stream")
	}
	r.seen = true
	if model := root.Get("model").Str(); model != "" {
		r.model = model
	}
	if message.Exists() {
		if err := r.addMessage(message); err != nil {
			return message, err
		}
	}
	if isDone(root) {
		r.done, r.reason = true, codec.Text(root.Get("done_reason"))
		readUsage(root, &r.usage)
	}
	return message, nil
}

// isDone reports whether a line is the last one.
func isDone(root rawjson.Value) bool {
	done := root.Get("done")
	return done.Raw() == "true" || done.Str() == "true"
}

// addMessage adds a piece of the message: clients join texts and lists. A value
// that is not a list of calls, and not empty, may hold a call that this package
// cannot read: it is ErrShape.
func (r *reply) addMessage(message rawjson.Value) error {
	r.message, r.messages = message, r.messages+1
	calls := message.Get("tool_calls")
	if k := calls.Kind(); k == rawjson.Object && !calls.Empty() || calls.Str() != "" {
		return codec.Shapef("tool_calls is of kind %s", k)
	}
	r.odd = r.odd || !allOf(message, rawjson.String, "role", "content", "thinking") || !allOf(message, rawjson.Array, "images", "tool_calls")
	if role := message.Get("role").Str(); role != "" {
		r.role = role
	}
	r.words.WriteString(message.Get("content").Str())
	r.thought.WriteString(message.Get("thinking").Str())
	r.images = appendRaws(r.images, message.Get("images"))
	r.calls = appendRaws(r.calls, calls)
	for m := range message.Each() {
		switch key := m.Key(); key {
		case "role", "content", "thinking", "images", "tool_calls":
		default:
			r.further = append(r.further, lens.Raw(key, m.Raw()))
		}
	}
	return nil
}

// allOf reports whether the members of those names are of that kind, or absent.
func allOf(message rawjson.Value, kind rawjson.Kind, names ...string) bool {
	for _, name := range names {
		if v := on.Get(message, name); v.Exists() && v.Kind() != kind {
			return false
		}
	}
	return true
}

// appendRaws appends the texts of the elements of list, if it is one.
func appendRaws(to []string, list rawjson.Value) []string {
	if list.Kind() == rawjson.Array {
		for e := range list.Each() {
			to = append(to, e.Raw())
		}
	}
	return to
}

// turn returns the message as it stands in the history of a request: as it was
// written, if it came in one piece.
func (r *reply) turn() (rawjson.Value, error) {
	if r.messages == 1 && !r.odd && strings.EqualFold(r.role, string(middleware.RoleAssistant)) {
		return codec.ParseObject(r.message.Raw())
	}
	members := content{text: r.words.String(), thinking: r.thought.String()}.members(middleware.RoleAssistant)
	members = append(members, lens.List("images", r.images), lens.List("tool_calls", r.calls))
	at := map[string]int{}
	for _, m := range r.further { // of several values the last
		if i, ok := at[m.Key]; ok {
			members[i] = m
			continue
		}
		at[m.Key] = len(members)
		members = append(members, m)
	}
	return codec.ParseObject(codec.Object(members...))
}

// Rest is part of codec.Stream. The lines of a later answer follow those that
// were shown: a client joins them as it does any others.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	text := s.Text()
	if !s.Closed() || sent < 0 || sent > len(text) {
		return nil, codec.Unencodablef("the rest of a stream that has no such part")
	}
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	body, err := a.text(resp)
	shown := text[:sent]
	switch {
	case err != nil || sent == 0:
		return []byte(body), err
	case resp.Native.Raw == text && strings.HasPrefix(body, shown):
		return []byte(body[sent:]), nil
	case resp.Native.Raw == text:
		return nil, codec.Unencodablef("a change of what was shown already")
	}
	if a.whole {
		body = codec.OneLine(strings.TrimSpace(body)) + "\n"
	}
	if !strings.HasSuffix(shown, "\n") {
		body = "\n" + body
	}
	return []byte(body), nil
}

// line is an event of an answer that is edited. Edit has the changes of its object.
type line struct {
	*lens.Edit
	chunk         *lens.Chunk
	root, message rawjson.Value
	done          bool
}

// readLines returns the lines of an answer that say something, and what ApplyAll
// needs of them. An answer that is not streamed is one line.
func readLines(body string) (lines []line, chunks []*lens.Chunk, err error) {
	buf := codec.NewBuffer(true)
	event := func(e codec.Event) (bool, error) {
		doc, err := parseLine(e, buf.IsWhole())
		if err != nil || doc == nil {
			return false, err
		}
		root := doc.Root()
		if message := root.Get("message"); message.Exists() || root.Get("done").Exists() {
			c := &lens.Chunk{Event: e, Doc: doc}
			chunks = append(chunks, c)
			lines = append(lines, line{on.Edit(root), c, root, message, isDone(root)})
		}
		return false, nil
	}
	if err = buf.Feed([]byte(body), event); err == nil {
		err = buf.End(event)
	}
	return lines, chunks, err
}
