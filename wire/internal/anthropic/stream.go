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
// A ping may come anywhere, an error ends the stream. Text and the blocks of tools that the
// provider runs are shown at once, and release reasoning before them. Everything else is held,
// and written from the decoded values (answer.go).
type stream struct {
	codec.Splitter
	a      *answer
	begun  bool              // message_start has come
	named  bool              // and had a name
	blocks []*building       // in the order in which they start
	at     map[int]*building // by index
	usage  codec.Members     // the last figure of each name

	changed  []*building // since Snapshot
	snapshot beginning

	stopped   bool                   // message_stop has come
	failed    *middleware.ModelError // the provider's error
	misplaced error                  // events that do not fit, but may be followed by an error that explains them
}

// beginning is the part of a stream that the client may be shown. Each block notes its own
// shown part.
type beginning struct {
	begun   bool
	blocks  int // how many have started
	figures middleware.Usage
}

// known has the members that are written even if they contain a word for calls: text may speak
// of calls, and results of the provider's tools name a tool_use_id.
var (
	ofBlock = codec.Tree{"input": codec.AsSent, "citations": nil, "content": nil, "caller": nil}.Scalars(
		"type", "id", "name", "text", "thinking", "signature", "data", "tool_use_id", "server_name", "is_error")
	ofMessage = codec.Tree{"content": ofBlock, "stop_details": nil, "container": nil, "context_management": nil, "usage": nil, "error": nil}.Scalars(
		"id", "type", "role", "model", "stop_reason", "stop_sequence")
	known = codec.Tree{"message": ofMessage, "content_block": ofBlock, "usage": nil, "error": nil, "context_management": nil,
		"delta": codec.Tree{"partial_json": codec.AsSent, "citation": nil, "content": nil, "stop_details": nil, "container": nil}.Scalars(
			"type", "text", "thinking", "signature", "stop_reason", "stop_sequence")}.Scalars("type", "index")
)

// NewStream returns a reader of one answer to req, which may be nil.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{a: &answer{}, at: map[int]*building{}}
	s.Splitter = codec.NewSplitter(Format{}, s, known, false, req, sink)
	return s
}

// kindOf returns the type of an event, and its object. Errors of clouds have no type.
func kindOf(u *codec.Unit) (kind string, v rawjson.Value) {
	v = u.Value
	switch {
	case v.Exists() && isFailure(v), u.Name == "error":
		return "error", v
	case v.Exists():
		return cmp.Or(v.Get("type").Str(), u.Name), v
	}
	return "", v
}

// bringsBlocks reports whether events of that kind bring a block or a piece of it.
func bringsBlocks(kind string) bool {
	return kind == "message_start" || kind == "content_block_start" || kind == "content_block_delta" || kind == "content_block_stop"
}

// Release returns what becomes of an event. Client calls, errors and the end are held, and so
// is an event that clients would count in different ways.
func (s *stream) Release(u *codec.Unit) (codec.Release, error) {
	switch {
	case s.Buf.IsWhole(), s.CutAtEnd(u):
		return codec.ReleaseHold, nil
	case u.Err != nil && strings.HasPrefix(strings.TrimSpace(u.Data), "{"):
		return codec.ReleaseHold, u.Err
	}
	kind, v := kindOf(u)
	if kind == "error" || !s.agreed(u, kind, v) {
		return codec.ReleaseHold, nil
	}
	var block, text string // the type of the block that the event is of, and what it brings
	switch kind {
	case "message_start": // with blocks in it, clients count later blocks in different ways
		if content := v.Get("message").Get("content"); content.Exists() && !content.Empty() {
			return codec.ReleaseHold, nil
		}
		return codec.ReleaseWithPrevious, nil
	case "content_block_start":
		if hasStrayInput(v.Get("content_block")) {
			return codec.ReleaseHold, nil
		}
		block, text = v.Get("content_block").Get("type").Str(), v.Get("content_block").Get("text").Str()
	case "content_block_delta", "content_block_stop":
		block, text = s.at[indexOf(v)].kind, v.Get("delta").Get("text").Str()
		if isProse(block) && v.Get("delta").Get("type").Str() == "input_json_delta" {
			return codec.ReleaseHold, nil
		}
	case "message_delta", "message_stop":
		return codec.ReleaseHold, nil
	default:
		return codec.ReleaseWithPrevious, nil
	}
	switch {
	case block == "tool_use":
		return codec.ReleaseHold, nil
	case isReasoning(block):
		return codec.ReleaseAfterText, nil
	case block == "text" && text == "":
		return codec.ReleaseWithPrevious, nil
	}
	return codec.ReleaseNow, nil
}

func isProse(kind string) bool { return kind == "text" || isReasoning(kind) }

func isReasoning(kind string) bool { return kind == "thinking" || kind == "redacted_thinking" }

// agreed reports whether all clients take an event for what it is read as. Some go by the
// name of an event, some by the type in its data; some by the index of a block, some by
// its place.
func (s *stream) agreed(u *codec.Unit, kind string, v rawjson.Value) bool {
	switch {
	case !v.Exists():
		return true
	case v.Get("type").Str() == "":
		return false
	case !bringsBlocks(kind):
		return !bringsBlocks(u.Name)
	case u.Name != kind && bringsBlocks(u.Name):
		return false
	case kind == "message_start":
		return true
	case !s.begun || (u.Name == kind) != s.named:
		return false
	case kind == "content_block_start":
		return indexOf(v) == len(s.blocks)
	}
	return s.at[indexOf(v)] != nil
}

// Snapshot notes what was read so far as what the client may be shown.
func (s *stream) Snapshot() {
	for _, b := range s.changed {
		b.changed, b.endShown = false, b.ended
		for _, j := range b.joined {
			j.shown = j.Len()
		}
	}
	s.changed = s.changed[:0]
	s.snapshot = beginning{begun: s.begun, blocks: len(s.blocks), figures: s.a.figures}
}

// Read reads an event. It keeps no value of u. What is not free is read as it is written.
func (s *stream) Read(u *codec.Unit) (err error) {
	if s.Buf.IsWhole() {
		return s.readWhole(u)
	}
	kind, v := kindOf(u)
	if v.Exists() && !u.Free {
		if hidesCall(kind, u.Name, v) {
			return codec.Shapef("an event or a block of an unknown type, or an unknown member, that may be a tool call")
		}
		if v, err = codec.ParseObject(known.Write(v)); err != nil {
			return err
		}
	}
	if !s.begun && (strings.HasPrefix(kind, "content_block_") || kind == "message_delta" || kind == "message_stop") {
		s.misplaced = codec.Shapef("a %s before the message_start", kind)
		if kind != "message_stop" {
			return nil
		}
	}
	switch kind {
	case "message_start":
		return s.start(u, v)
	case "content_block_start":
		return s.blockStart(v)
	case "content_block_delta":
		return s.blockDelta(u, v)
	case "content_block_stop":
		if b := s.at[indexOf(v)]; b != nil {
			b.ended = true
			s.change(b)
		}
	case "message_delta":
		s.delta(v)
	case "message_stop":
		s.stopped = true
		collect(&s.a.atStop, v, "type")
	case "error":
		s.fail(v)
	}
	return nil
}

// Response returns the answer after its last event. A stream is complete with its
// message_stop. An error of the provider takes precedence, because it explains the other
// faults.
func (s *stream) Response() (codec.Written, error) {
	a := s.a
	switch {
	case s.failed != nil && a.figures != middleware.Usage{}:
		return nil, codec.WithUsage(s.failed, a.Is.Model, withCache(a.figures))
	case s.failed != nil:
		return nil, s.failed
	case s.misplaced != nil:
		return nil, s.misplaced
	case !s.stopped:
		return nil, codec.ErrIncomplete
	case !s.Buf.IsWhole():
		if s.usage.List != nil {
			a.usage = codec.Object(s.usage.List...)
		}
		var err error
		if a.blocks, err = lens.Convert(s.blocks, (*building).block); err != nil {
			return nil, err
		}
	}
	return a.response(), nil
}

// hidesCall reports whether an event of that type and name may hold a call that is not
// read.
func hidesCall(kind, name string, v rawjson.Value) bool {
	switch {
	case kind == "error":
		return false
	case bringsBlocks(kind), kind == "message_delta", kind == "message_stop":
		return codec.NamesCall(v, "content_block", "content") || mayBeCall(v.Get("content_block")) || anyMayBeCall(v.Get("message").Get("content"))
	}
	return codec.NamesCall(v) || !codec.HasNoCallWord(rawjson.Quote(name))
}

// start reads the start of the message. Blocks in it are whole: clients that collect the
// message take them, and put later blocks after them.
func (s *stream) start(u *codec.Unit, v rawjson.Value) error {
	m := v.Get("message")
	switch {
	case s.begun:
		return codec.Shapef("a second message_start in one stream")
	case m.Kind() != rawjson.Object:
		return codec.Shapef("a message_start without a message")
	}
	s.begun, s.named = true, u.Name == "message_start"
	s.a.message = ofMessage.Write(m) // a key that a reader takes for a known one goes
	s.a.Is.ID, s.a.Is.Model = codec.Text(m.Get("id")), codec.Text(m.Get("model"))
	s.count(m.Get("usage"))
	for b := range m.Get("content").Each() {
		if err := s.block(len(s.blocks), b, true); err != nil {
			return err
		}
	}
	return nil
}

// count takes in the figures of a usage object: a later one counts, and a figure that is
// left out is as it was.
func (s *stream) count(usage rawjson.Value) {
	s.a.figures = figures.Over(s.a.figures, usage)
	collect(&s.usage, usage)
}

// collect puts the members of v into s, but for those named in but.
func collect(s *codec.Members, v rawjson.Value, but ...string) {
	for m := range v.Each() {
		if m.IsMember() && !slices.ContainsFunc(but, func(key string) bool { return strings.EqualFold(key, m.Key()) }) {
			s.Put(m.Key(), m.Raw())
		}
	}
}

// delta reads a message_delta, of which some servers send several. The last finish reason
// counts.
func (s *stream) delta(v rawjson.Value) {
	s.a.stop = cmp.Or(codec.Text(v.Get("delta").Get("stop_reason")), s.a.stop)
	collect(&s.a.inDelta, v.Get("delta"), "stop_reason")
	collect(&s.a.inEvent, v, "type", "delta", "usage", "index")
	s.count(v.Get("usage"))
}

// indexOf returns the index of the block that an event is about, -1 for none.
func indexOf(v rawjson.Value) int {
	i := v.Get("index")
	if i.Kind() != rawjson.Number || codec.Int(i) < 0 || codec.Int(i) > codec.MaxBody {
		return -1
	}
	return int(codec.Int(i))
}

// blockStart reads the start of a block.
func (s *stream) blockStart(v rawjson.Value) error {
	switch n := indexOf(v); {
	case n < 0:
		return codec.Shapef("a content_block_start without an index")
	case s.at[n] != nil:
		return codec.Shapef("a content block that starts twice: two of index %d", n)
	case v.Get("content_block").Kind() != rawjson.Object:
		return codec.Shapef("a content_block_start without a block")
	default:
		return s.block(n, v.Get("content_block"), false)
	}
}

// block begins the block of that index.
func (s *stream) block(index int, v rawjson.Value, ended bool) error {
	first, err := readAnswered(v, s.Req)
	if err != nil {
		return err
	}
	b := &building{start: v.Raw(), kind: v.Get("type").Str(), ended: ended}
	s.at[index] = b
	s.blocks = append(s.blocks, b)
	s.change(b)
	return codec.Emit(s.Sink, first.part.Kind, first.part.Text)
}

// change notes that b is not as it was at the last Snapshot.
func (s *stream) change(b *building) {
	if !b.changed {
		b.changed = true
		s.changed = append(s.changed, b)
	}
}

// isOver reports whether a further delta of b could not be written after the part of b that a
// client may have. Calls are held, so a client has no part of a call.
func (s *stream) isOver(b *building) bool {
	last := b == s.blocks[len(s.blocks)-1]
	switch {
	case b.kind == "tool_use":
		return false
	case b.ended:
		return b.kind != "text" || !last
	}
	return deltasOf[b.kind] == nil && (b.kind == "" || !last)
}

// blockDelta reads a piece of a block. One of a block that has not started or is over is
// forgiven if an error follows: a server that fails may lose events.
func (s *stream) blockDelta(u *codec.Unit, v rawjson.Value) error {
	b, delta := s.at[indexOf(v)], v.Get("delta")
	switch {
	case delta.Kind() != rawjson.Object:
		return codec.Shapef("a content_block_delta without a delta")
	case b == nil:
		s.misplaced = codec.Shapef("a delta of a content block that has not started")
		return nil
	case s.isOver(b):
		s.misplaced = codec.Shapef("a delta of a content block that is over")
		return nil
	}
	s.change(b)
	kind, text, err := b.add(delta)
	if piece := delta.Get("partial_json"); err == nil && delta.Get("type").Str() == "input_json_delta" && delta.Len() == 2 && b.kind == "tool_use" {
		s.RepeatsPiece(u, func(raw string) error {
			b.join(deltasOf["tool_use"][0], raw)
			return nil
		}, piece)
	}
	if err != nil || text.Str() == "" {
		return err
	}
	if b.kind == "text" && kind == middleware.PartText && delta.Len() == 2 {
		s.Repeats(u, func(text string) error {
			b.join(deltasOf["text"][1], text)
			return codec.Emit(s.Sink, middleware.PartText, text)
		}, text)
	}
	return codec.Emit(s.Sink, kind, text.Str())
}

// building is a block of a stream, of which deltas bring more and more:
//
//	{"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": …, "name": …, "input": {}}}
//	{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"city\": "}}
//	{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"Oslo\"}"}}
//	{"type": "content_block_stop", "index": 1}
type building struct {
	start    string // the block in content_block_start, or in message_start
	kind     string // its type
	ended    bool   // its content_block_stop has come
	joined   []*joined
	byKey    map[string]*joined
	changed  bool // since the last Snapshot
	endShown bool // at the last Snapshot
}

// joined is what deltas bring of one member: of citations whole ones, with a comma in front
// of each.
type joined struct {
	codec.Joined
	deltaKind       // of the first delta that brought a piece
	shown     int   // its Len at the last Snapshot
	ends      []int // its Len behind each piece
}

// deltaKind is where a delta of a type has a piece of a block.
type deltaKind struct {
	name  string              // the type
	key   string              // the member of the block that the piece belongs to
	in    string              // the member of the delta that has the piece
	shows middleware.PartKind // what a piece shows
}

// deltaKinds are the types of deltas that this package knows.
var deltaKinds = []deltaKind{
	{"citations_delta", "citations", "citation", middleware.PartOpaque},
	{"text_delta", "text", "text", middleware.PartText},
	{"thinking_delta", "thinking", "thinking", middleware.PartReasoning},
	{"signature_delta", "signature", "signature", middleware.PartOpaque},
	{"input_json_delta", "input", "partial_json", middleware.PartOpaque},
}

// deltasOf has the deltas of a block, in the order in which they are written, by the type
// of the block.
var deltasOf = map[string][]deltaKind{
	"text":            deltaKinds[:2],
	"thinking":        deltaKinds[2:4],
	"tool_use":        deltaKinds[4:],
	"server_tool_use": deltaKinds[4:],
	"mcp_tool_use":    deltaKinds[4:],
}

// add takes a delta in, and returns what it shows. Of an unknown type, its texts are
// added to the members of the same name: so a block of a kind that this package does not
// know is complete in history.
func (b *building) add(delta rawjson.Value) (kind middleware.PartKind, text rawjson.Value, err error) {
	d := deltaKind{name: delta.Get("type").Str()}
	at := slices.IndexFunc(deltaKinds, func(known deltaKind) bool { return known.name == d.name })
	if at >= 0 {
		d = deltaKinds[at]
	}
	switch {
	case b.kind == "tool_use" && d.key != "input": // whose other members come with its start
	case isProse(b.kind) && d.key == "input": // see hasStrayInput
	case d.key == "citations":
		if c := delta.Get(d.in); c.Kind() == rawjson.Object {
			b.join(d, ","+c.Raw())
		}
	case at >= 0:
		if text = delta.Get(d.in); d.shows == middleware.PartOpaque { // a value that is not a string counts as empty
			_, err = on.Text(delta, d.in)
		}
		b.join(d, content(text))
	default:
		for m := range delta.Each() {
			if d.key, d.in = m.Key(), m.Key(); d.key != "type" && (d.key != "input" || !isProse(b.kind)) {
				b.join(d, content(m))
			}
		}
	}
	return d.shows, text, err
}

// content returns the text of a JSON string, without its quotes; "" for any other value.
func content(v rawjson.Value) string {
	if v.Kind() != rawjson.String {
		return ""
	}
	raw := v.Raw()
	return raw[1 : len(raw)-1]
}

// join adds the piece of a delta of that kind.
func (b *building) join(d deltaKind, raw string) {
	if raw == "" {
		return
	}
	j := b.byKey[d.key]
	if j == nil {
		if b.byKey == nil {
			b.byKey = map[string]*joined{}
		}
		j = &joined{deltaKind: d}
		b.byKey[d.key] = j
		b.joined = append(b.joined, j)
	}
	_ = j.AddRaw(raw)
	j.ends = append(j.ends, j.Len())
}

// form is a form of a block whose deltas were read.
type form uint8

const (
	asHistory form = iota // as a request has it
	asJoined              // with the pieces of its input as one string
	asShown               // the same, of what was shown
)

// text returns the block in that form.
func (b *building) text(as form) (string, error) {
	start, err := codec.ParseObject(b.start)
	if err != nil {
		return b.start, nil // not an object
	}
	start = start.Indexed()
	var members []lens.Member
	for _, j := range b.joined {
		raw := j.JSON()[1 : 1+j.Len()]
		if as == asShown {
			raw = raw[:j.shown]
		}
		m := lens.Raw(j.key, `"`+content(start.Get(j.key))+raw+`"`)
		switch {
		case j.key == "citations":
			all := strings.Join(lens.Raws(slices.Collect(start.Get(j.key).Each())), ",") + raw
			m.Raw = "[" + strings.TrimPrefix(all, ",") + "]"
		case j.key == "input" && as == asHistory:
			var input codec.Joined
			_ = input.AddRaw(raw)
			if m.Raw = input.String(); !codec.IsObject(m.Raw) {
				m.Raw = "{}"
			}
		}
		members = append(members, m)
	}
	return on.Set(start, members...)
}

// block returns the whole block. The arguments of a call are the joined pieces, byte for
// byte, even if they are no JSON: the validator is to see what was written.
func (b *building) block() (block, error) {
	text, err := b.text(asHistory)
	if err != nil {
		return block{}, err
	}
	doc, err := codec.Parse(text)
	if err != nil {
		return block{}, err
	}
	out, err := readAnswered(doc.Root(), nil)
	if err == nil && !out.isCall {
		out.deltas, out.joined = slices.Clip(deltasOf[b.kind]), text
		for _, j := range b.joined {
			if !slices.ContainsFunc(deltasOf[b.kind], func(d deltaKind) bool { return d.key == j.key }) {
				out.deltas = append(out.deltas, j.deltaKind)
			}
		}
		if input := b.byKey["input"]; input != nil {
			if deltasOf[b.kind] != nil {
				out.ends = input.ends
			}
			out.joined, err = b.text(asJoined)
		}
	}
	if input := b.byKey["input"]; input != nil {
		out.call.Arguments = input.String()
	} else if out.isCall && out.call.Arguments == "" { // a stream is written with an input in each call
		out.call.Arguments = "{}"
	}
	return out, err
}
