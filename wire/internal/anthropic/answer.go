package anthropic

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read. The Native of a response remembers it, and a
// changed response is written from it, as one object or as a stream. It holds no parsed text.
// No field of it changes after reading.
type answer struct {
	codec.Answered
	message string           // the answer in one spelling, of a stream the message of message_start
	blocks  []block          // in the order in which clients list them
	figures middleware.Usage // what its usage counts
	stop    string           // the provider's word for the finish reason

	// The end of a stream has these members, and the finish reason.
	usage   string        // the last figures, "" for none
	inDelta codec.Members // of message_delta
	inEvent codec.Members
	atStop  codec.Members // of message_stop
}

// readWhole reads an answer that is one object:
//
//	{"id": …, "type": "message", "role": "assistant", "model": …, "content": [block, …],
//	 "stop_reason": "tool_use", "stop_sequence": null, "usage": {…}}
func (s *stream) readWhole(u *codec.Unit) error {
	if err := u.Unreadable(); err != nil {
		return err
	}
	if anyMayBeCall(u.Value.Get("content")) {
		return errMayBeCall
	}
	s.stopped = true
	if s.Unchanged() {
		s.a.message = s.Text()
		return s.readObject(u.Value)
	}
	s.a.message = ofMessage.Write(u.Value)
	err := codec.Borrow(s.a.message, s.readObject)
	if err == nil && s.failed == nil && slices.ContainsFunc(slices.Collect(u.Value.Get("content").Each()), hasStrayInput) {
		blocks := lens.TextsOf(s.a.blocks, func(b block) string { return b.raw })
		s.a.message, err = on.SetIn(s.a.message, lens.Raw("content", codec.Array(blocks)))
	}
	return err
}

// hasStrayInput reports whether a block of text or reasoning has the input of a call. It is
// written without it, because a client might take it for one.
func hasStrayInput(v rawjson.Value) bool {
	return isProse(v.Get("type").Str()) && v.Get("input").Exists()
}

// readObject reads the object of an answer. It keeps no value of it. An object with both an
// error and calls is an answer.
func (s *stream) readObject(root rawjson.Value) error {
	a, content := s.a, root.Get("content")
	switch {
	case isFailure(root) && !slices.ContainsFunc(slices.Collect(content.Each()), func(v rawjson.Value) bool { return v.Get("type").Str() == "tool_use" }):
		s.fail(root)
		return nil
	case content.Kind() != rawjson.Array:
		return codec.Shapef("an answer without a list of content")
	}
	a.Is.ID, a.Is.Model, a.stop = codec.Text(root.Get("id")), codec.Text(root.Get("model")), codec.Text(root.Get("stop_reason"))
	a.figures, a.usage = figures.Read(root.Get("usage")), root.Get("usage").Raw()
	for _, key := range []string{"stop_sequence", "stop_details", "container"} {
		if m := root.Get(key); m.Exists() {
			a.inDelta.Put(key, m.Raw())
		}
	}
	if m := root.Get("context_management"); m.Exists() {
		a.inEvent.Put("context_management", m.Raw())
	}
	for v := range content.Each() {
		b, err := readAnswered(v, s.Req)
		if err != nil {
			return err
		}
		a.blocks = append(a.blocks, b)
		if err := codec.Emit(s.Sink, b.part.Kind, b.part.Text); err != nil {
			return err
		}
	}
	return nil
}

// readAnswered reads a content block of an answer to req: what is out of shape is
// opaque. The text of a call is that which history may have. The error wraps
// ErrShape: a client might read a call there, or a tool (see codec.RejectUndefinedTool).
func readAnswered(v rawjson.Value, req *middleware.Request) (b block, err error) {
	if hasStrayInput(v) {
		if v, err = on.Changed(v, lens.None("input")); err != nil {
			return b, err
		}
	}
	if mayBeCall(v) {
		return block{}, errMayBeCall
	}
	for c := range v.Get("tool_changes").Each() {
		if err := codec.RejectUndefinedTool(req, "", c.Get("tool").Get("definition").Get("name").Str()); err != nil {
			return block{}, err
		}
	}
	b, err = readBlock(v, middleware.RoleAssistant)
	switch {
	case err != nil && b.isCall:
		return b, err
	case err != nil, v.Kind() != rawjson.Object:
		b = block{part: middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}, odd: true}
	case b.isCall && v.Get("input").Kind() != rawjson.Object:
		text, err := on.Set(v, lens.Raw("input", "{}"))
		if err != nil {
			return b, err
		}
		b.call.Native = on.Native(text)
	}
	switch kind := v.Get("type").Str(); {
	case kind == "server_tool_use", kind == "mcp_tool_use":
		b.pair, b.side = codec.Text(v.Get("id")), 1
	case strings.HasSuffix(kind, "tool_result"):
		b.pair, b.side = codec.Text(v.Get("tool_use_id")), -1
	}
	b.raw = v.Raw()
	return b, nil
}

// mayBeCall reports whether a block that this package does not take for a call looks like
// one to some client, such as one that takes a block without a type for a call because it
// has an input. Such an answer is unreadable, because clients would run different calls.
func mayBeCall(v rawjson.Value) bool {
	switch kind := v.Get("type"); {
	case v.Kind() != rawjson.Object: // a list in the list of content, which a client may join with it
		return codec.NamesCall(v)
	case kind.Kind() != rawjson.String:
		return slices.ContainsFunc(slices.Collect(v.Each()), func(m rawjson.Value) bool { return rawjson.Fold(m.Key()) == "input" })
	case slices.Contains([]string{"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"}, kind.Str()),
		strings.HasSuffix(kind.Str(), "_tool_result") && codec.HasNoCallWord(kind.Raw()), codec.HasNoCallWord(v.Raw()):
		return false
	}
	return codec.NamesCall(v, "tool_use_id")
}

var errMayBeCall = codec.Shapef("a content block that may be a tool call, and is not of type tool_use")

// anyMayBeCall is mayBeCall for a list of content.
func anyMayBeCall(content rawjson.Value) bool {
	return slices.ContainsFunc(slices.Collect(content.Each()), mayBeCall)
}

// response puts together what was read, sharing nothing that can be changed.
//
// The Native of its message is the message as a later request repeats it, which
// is not always what was received: a block out of shape and an empty text are left
// out, the provider refuses both, and arguments that are not a JSON object are {}. It also has
// the id of the container in which code ran, which a re-ask has to name.
func (a *answer) response() *answer {
	m := middleware.Message{Role: middleware.RoleAssistant}
	var contents []string
	pairs := map[string]int{}
	for _, b := range a.blocks {
		add(&m, b)
		pairs[b.pair] += b.side
		emptyText := !b.isCall && b.part.Kind == middleware.PartText && b.part.Text == "" // which the provider refuses in history
		if !b.odd && !emptyText {
			contents = append(contents, b.native().Raw)
		}
	}
	v, _ := codec.ParseObject(a.container().Raw)
	container := lens.Word("container", v.Get("id").Str())
	m.Native = on.Native(on.Object(lens.Text("role", "assistant"), lens.Raw("content", codec.Array(contents)), container))
	a.Is.Message, a.Is.FinishReason, a.Is.Usage = m, codec.Finish(a.stop, len(m.ToolCalls) > 0), withCache(a.figures)
	a.Is.Unpaired = codec.Unpaired(pairs)
	return a
}

// Whole returns resp as one object.
func (a *answer) Whole(resp *middleware.Response) (string, error) {
	if a.Form == codec.FormWhole && codec.SameResponse(&a.Is, resp) {
		return a.message, nil
	}
	contents, err := a.contents(resp, false)
	if err != nil {
		return "", err
	}
	usage, err := usageText(a.usage, middleware.Usage{}, resp.Usage)
	if err != nil {
		return "", err
	}
	members := append(a.model(resp), lens.Raw("content", codec.Array(contents)))
	if stop := a.stopNow(resp); a.Form != codec.FormWhole || stop != a.stop {
		members = append(members, lens.Raw("stop_reason", stopText(stop)))
	}
	return on.SetIn(a.message, slices.Concat(members, a.inDelta.List, a.inEvent.List, []lens.Member{lens.Raw("usage", usage)})...)
}

// model projects the model of resp, if it has changed.
func (a *answer) model(resp *middleware.Response) []lens.Member {
	return lens.Differ([]lens.Member{lens.Word("model", a.Is.Model)}, []lens.Member{lens.Word("model", resp.Model)})
}

// contents returns the blocks of resp as elements of a list of content. One that did not
// change is its own text as received, not the text that history has. In a stream, the
// input of a call is a string with whatever the model wrote. The format has one choice.
func (a *answer) contents(resp *middleware.Response, streamed bool) ([]string, error) {
	if err := codec.OneMessage(resp); err != nil {
		return nil, err
	}
	was := lens.TextsOf(a.blocks, func(b block) string { return b.native().Raw })
	return on.Arrange(resp.Message, was, math.MaxInt, func(p middleware.Part, at int) (string, error) {
		if at >= 0 && !a.blocks[at].isCall && codec.SamePart(p, a.blocks[at].part) {
			return a.blocks[at].raw, nil
		}
		text, err := partText(p)
		if err == nil && text == "" {
			err = codec.Unencodablef("reasoning of another provider, or a block out of shape: drop the part")
		}
		return asBlocks(text)[0], err
	}, func(c middleware.ToolCall, at int) (string, error) {
		same := at >= 0 && codec.SameCall(c, a.blocks[at].call)
		if at >= 0 { // the Native may have another input, as history needs it
			c.Native = on.Native(a.blocks[at].raw)
		}
		text, err := callText(c, streamed)
		switch {
		case err != nil || !streamed:
			return text, err
		case !same && !utf8.ValidString(c.Arguments):
			return "", codec.Unencodablef("arguments that are not UTF-8: repair them, or drop the call")
		}
		return on.SetIn(text, lens.Raw("input", codec.QuoteAsSent(c.Arguments)))
	})
}

// stopNow returns the provider's word for the finish reason of resp. A finish reason that a
// middleware set counts. An unchanged one follows the calls: many clients run calls only if
// stop_reason is tool_use. A message that was cut off stays cut off, whatever calls it has.
func (a *answer) stopNow(resp *middleware.Response) string {
	was, now := len(a.Is.Message.ToolCalls) > 0, len(resp.Message.ToolCalls) > 0
	switch {
	case resp.FinishReason != a.Is.FinishReason:
		return stopOf(resp.FinishReason)
	case was && !now && resp.FinishReason == middleware.FinishToolCalls:
		return stopOf(middleware.FinishStop)
	case !was && now && resp.FinishReason != middleware.FinishLength:
		return stopOf(middleware.FinishToolCalls)
	}
	return a.stop
}

// EncodeAnswer writes resp for the client that sent a request to path with that body.
func (f Format) EncodeAnswer(path string, body []byte, resp *middleware.Response) ([]byte, string, error) {
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Objects: true,
		Whole:  func(resp *middleware.Response) (string, error) { return writeAny(resp, false) },
		Stream: func(resp *middleware.Response) (string, error) { return writeAny(resp, true) }})
}

// writeAny writes a response of this format or of another one.
func writeAny(resp *middleware.Response, streamed bool) (string, error) {
	native := resp.Native
	if on.Raw(native) == "" {
		native, resp = freshAnswer(resp)
	}
	a, err := codec.Reread[*answer](Format{}, native)
	switch {
	case err != nil:
		return "", err
	case streamed:
		return a.Stream(resp, codec.NewClient(Format{}))
	}
	return a.Whole(resp)
}

// freshAnswer returns an answer without content, and resp as a change of it. Reasoning of
// another provider is left out: the provider would refuse it, unsigned, in the next
// request.
func freshAnswer(resp *middleware.Response) (*middleware.Native, *middleware.Response) {
	u := codec.FiguresOf(resp)
	usage := figures.Members(rawjson.Value{}, withoutCache(u))
	if u.Reasoning == 0 {
		usage = usage[:len(usage)-1]
	}
	a := on.Native(on.Object(lens.Text("id", codec.NewID("msg_")), lens.Text("type", "message"), lens.Text("role", "assistant"),
		lens.Text("model", resp.Model), lens.Raw("content", "[]"), lens.Raw("stop_reason", "null"), lens.Raw("stop_sequence", "null"),
		lens.Raw("usage", on.Object(usage...))))
	now := *resp
	now.FinishReason, now.Usage = codec.FinishOf(resp), u
	now.Message = codec.WithCallIDs(resp.Message, "toolu_")
	now.Message.Parts = slices.DeleteFunc(slices.Clone(resp.Message.Parts), func(p middleware.Part) bool {
		return on.Raw(p.Native) == "" && (p.Kind == middleware.PartReasoning || p.Kind == middleware.PartText && p.Text == "")
	})
	return a, &now
}

// container returns the member of message_delta with the container in which code ran.
func (a *answer) container() lens.Member { return lens.Raw("container", a.inDelta.Get("container")) }

// Stream writes resp, a response that came from a, as what follows the part of a stream that
// the client has. The blocks of a later answer follow in the same message. In the client's part,
// the index of a block is its place.
func (a *answer) Stream(resp *middleware.Response, client *codec.Client) (string, error) {
	has := client.Has.(*stream)
	contents, err := a.contents(resp, true)
	if err != nil {
		return "", err
	}
	shown := has.snapshot
	c := continuation{a: a, resp: resp, own: client.Own, shown: has.blocks[:shown.blocks], next: shown.blocks}
	c.named = has.named || !shown.begun
	if !shown.begun {
		err = c.start()
	}
	if err == nil && !c.own {
		err = c.closeShown()
		if shown.blocks > 0 && a.container().Raw == "" { // the client keeps the blocks of the code that ran
			c.ranIn = client.Of.(*stream).a.container()
		}
	}
	if err == nil {
		err = c.addBlocks(contents)
	}
	if err == nil {
		err = c.end(shown.figures)
	}
	return c.out.String(), err
}

// continuation writes what follows the part of an answer that a client has.
type continuation struct {
	writer
	a     *answer
	resp  *middleware.Response
	own   bool        // the client has a part of a, not of an earlier answer
	shown []*building // the blocks that the client has, the last ones perhaps in part
	next  int         // the index of the next new block
	ranIn lens.Member // the container of an earlier answer of which the client has blocks
}

// start writes the message_start.
func (c *continuation) start() error {
	message, err := on.SetIn(c.a.message, append(c.a.model(c.resp), lens.Raw("content", "[]"), lens.Raw("stop_reason", "null"))...)
	c.event("message_start", lens.Raw("message", message))
	return err
}

// closeShown ends the open blocks of an earlier answer. Only a text may end early: reasoning
// would stay unsigned, and a call would be cut off.
func (c *continuation) closeShown() error {
	for n, b := range c.shown {
		switch {
		case b.endShown:
		case b.kind != "text":
			return codec.Unencodablef("a later answer cannot follow a block that the client has in part, unless that is text")
		default:
			c.blockEvent("content_block_stop", n)
		}
	}
	return nil
}

// addBlocks writes the part of contents that the client does not have. After blocks of an
// earlier answer, the reasoning of a later one is left out: the provider refuses a history
// with reasoning of two answers.
func (c *continuation) addBlocks(contents []string) error {
	for i, text := range contents {
		v, err := codec.ParseObject(text)
		if err != nil { // clients skip what is not a block
			continue
		}
		var sent rawjson.Value // the beginning of the block, which the client has in another one
		switch {
		case c.own && i < len(c.shown):
			var complete bool
			if sent, complete, err = c.complete(i, v); err != nil {
				return err
			} else if complete {
				continue
			}
		case !c.own && len(c.shown) > 0 && isReasoning(v.Get("type").Str()):
			continue
		}
		var ends []int
		if n := slices.IndexFunc(c.a.blocks, func(b block) bool { return b.raw == text && b.ends != nil }); n >= 0 { // the input as it came, in pieces
			ends = c.a.blocks[n].ends
			if v, err = codec.ParseObject(c.a.blocks[n].joined); err != nil {
				return err
			}
		}
		if err := c.block(c.next, v, sent, ends); err != nil {
			return err
		}
		c.next++
	}
	if c.own && len(contents) < len(c.shown) {
		return codec.ErrShown
	}
	return nil
}

// complete writes the missing pieces of block i, which is v now. If the client has the end of
// the block, and v is a longer text, complete is false: the text continues in a new block,
// after the sent beginning.
func (c *continuation) complete(i int, v rawjson.Value) (sent rawjson.Value, complete bool, err error) {
	b, was, kind := c.shown[i], c.a.blocks[i], v.Get("type").Str()
	switch {
	case v.Raw() != was.raw && deltasOf[kind] == nil: // a change of a block of an unknown type
		return sent, false, codec.ErrShown
	case v.Raw() == was.raw && was.raw != was.joined:
		if v, err = codec.ParseObject(was.joined); err != nil {
			return sent, false, err
		}
	}
	had, err := b.text(asShown)
	if err == nil {
		sent, err = codec.ParseObject(had)
	}
	if err != nil || kind != b.kind {
		return sent, false, codec.ErrShown
	}
	missing, err := c.deltas(i, v, sent, was.deltas, was.ends)
	switch {
	case err != nil:
		return sent, false, err
	case !b.endShown:
		c.out.WriteString(missing)
		c.blockEvent("content_block_stop", i)
		return sent, true, nil
	case missing != "" && (kind != "text" || i < len(c.shown)-1):
		return sent, false, codec.ErrShown
	}
	return sent, missing == "", nil
}

// end writes the finish reason and the usage. has are the figures that the client has.
func (c *continuation) end(has middleware.Usage) error {
	usage, err := usageText(c.a.usage, has, c.resp.Usage)
	if err != nil {
		return err
	}
	members := append([]lens.Member{lens.Raw("stop_reason", stopText(c.a.stopNow(c.resp)))}, c.a.inDelta.List...)
	if c.ranIn.Raw != "" {
		members = append(slices.DeleteFunc(members, func(m lens.Member) bool { return m.Key == c.ranIn.Key }), c.ranIn)
	}
	delta := codec.Object(members...)
	c.event("message_delta", append([]lens.Member{lens.Raw("delta", delta), lens.Raw("usage", usage)}, c.a.inEvent.List...)...)
	c.event("message_stop", c.a.atStop.List...)
	return nil
}

// writer writes events.
type writer struct {
	out   strings.Builder
	named bool
}

// event writes an event as the provider does: its name, and the same word as the type in its
// data. If the events before have no names, it has none: a client that reads names would skip
// the nameless ones.
func (w *writer) event(kind string, members ...lens.Member) {
	if w.named {
		w.out.WriteString("event: " + kind + "\n")
	}
	data := codec.Object(append([]lens.Member{lens.Text("type", kind)}, members...)...)
	w.out.WriteString("data: " + codec.Clean(codec.OneLine(data)) + "\n\n")
}

// blockEvent is event for an event of the block of that index.
func (w *writer) blockEvent(kind string, index int, members ...lens.Member) {
	w.event(kind, append([]lens.Member{lens.Raw("index", codec.Count(int64(index)))}, members...)...)
}

// block writes v as the block of that index: its start without what deltas bring, each of
// those in one piece, but for an input with ends, and its stop. Of had, its beginning, which has
// ended, it writes nothing again.
func (w *writer) block(index int, v, had rawjson.Value, ends []int) error {
	var start []lens.Member
	kinds := deltasOf[v.Get("type").Str()]
	for _, d := range kinds {
		switch key := d.key; {
		case key == "input":
			start = append(start, lens.Raw(key, "{}"))
		case v.Get(key).Kind() == rawjson.Array:
			start = append(start, lens.Raw(key, "[]"))
		case v.Get(key).Kind() == rawjson.String:
			start = append(start, lens.Text(key, ""))
		}
	}
	raw, err := on.Set(v, start...)
	if err != nil {
		return err
	}
	pieces, err := w.deltas(index, v, had, kinds, ends)
	w.blockEvent("content_block_start", index, lens.Raw("content_block", raw))
	w.out.WriteString(pieces)
	w.blockEvent("content_block_stop", index)
	return err
}

// deltas returns the deltas of those kinds with what v has and had, its beginning, has not.
// Deltas of one type in a row are one delta with several members. An input is divided at ends.
func (w *writer) deltas(index int, v, had rawjson.Value, kinds []deltaKind, ends []int) (string, error) {
	out := writer{named: w.named}
	v, had = v.Indexed(), had.Indexed()
	for n := 0; n < len(kinds); {
		name := kinds[n].name
		delta := append(make([]lens.Member, 0, 2), lens.Text("type", name))
		for ; n < len(kinds) && kinds[n].name == name; n++ {
			pieces, err := kinds[n].missing(v.Get(kinds[n].key), had.Get(kinds[n].key))
			if err != nil {
				return "", err
			}
			if kinds[n].key == "input" && len(pieces) == 1 {
				pieces = divided(pieces[0], ends, len(content(had.Get("input"))))
			}
			for i, raw := range pieces {
				if i > 0 {
					out.blockEvent("content_block_delta", index, lens.Raw("delta", codec.Object(delta...)))
					delta = delta[:1]
				}
				delta = append(delta, lens.Raw(kinds[n].in, raw))
			}
		}
		if len(delta) > 1 {
			out.blockEvent("content_block_delta", index, lens.Raw("delta", codec.Object(delta...)))
		}
	}
	return out.out.String(), nil
}

// divided divides a JSON string at ends, which are places in a text that has before bytes in front
// of it. What follows the last one is a piece too.
func divided(quoted string, ends []int, before int) (pieces []string) {
	text, at := quoted[1:len(quoted)-1], 0
	for _, end := range append(slices.Clip(ends), before+len(text)) {
		if end -= before; at < end && end <= len(text) {
			pieces = append(pieces, `"`+text[at:end]+`"`)
			at = end
		}
	}
	return pieces
}

// missing returns the pieces of now, a member of a block, after was, its beginning.
func (d deltaKind) missing(now, was rawjson.Value) ([]string, error) {
	switch {
	case now.Raw() == was.Raw():
		return nil, nil
	case now.Kind() == rawjson.Array:
		all := lens.Raws(slices.Collect(now.Each()))
		return all[min(was.Len(), len(all)):], nil
	case d.key == "input" && now.Kind() == rawjson.Object:
		doc, err := codec.Parse(codec.QuoteAsSent(now.Raw()))
		if err != nil {
			return nil, err
		}
		now = doc.Root()
	}
	rest, ok := strings.CutPrefix(content(now), content(was))
	if rest = `"` + rest + `"`; !ok { // the two may spell the same text in different ways
		rest, ok = strings.CutPrefix(now.Str(), was.Str())
		rest = rawjson.Quote(rest)
	}
	switch {
	case !ok:
		return nil, codec.ErrShown
	case rest == `""`:
		return nil, nil
	}
	return []string{rest}, nil
}

// figures are the places at which a usage object counts:
//
//	{"input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000, "output_tokens": 40,
//	 "cache_creation": {"ephemeral_5m_input_tokens": 200, "ephemeral_1h_input_tokens": 0},
//	 "output_tokens_details": {"thinking_tokens": 12}}
//
// input_tokens are those that are neither read from the cache nor written to it, so
// that the three add up to the neutral Input.
var figures = codec.Figures{
	{Of: codec.InputOf, Keys: []string{"input_tokens"}},
	{Of: codec.CacheWriteOf, Keys: []string{"cache_creation_input_tokens"}},
	{Of: codec.CachedOf, Keys: []string{"cache_read_input_tokens"}},
	{Of: codec.OutputOf, Keys: []string{"output_tokens"}},
	{Of: codec.ReasoningOf, Keys: []string{"output_tokens_details/thinking_tokens"}},
}

// withCache returns what a usage object counts in neutral form. Add keeps the sums from
// overflowing.
func withCache(u middleware.Usage) middleware.Usage {
	return u.Add(middleware.Usage{InputTokens: u.Cached}).Add(middleware.Usage{InputTokens: u.CacheWrite})
}

// withoutCache is the reverse of withCache. Input is negative where u has more tokens in the
// cache than tokens.
func withoutCache(u middleware.Usage) middleware.Usage {
	u.InputTokens -= u.Cached + u.CacheWrite
	return u
}

// usageText returns a usage object that gives a client with the figures has the figures of
// want. It is "" for an answer without figures. There may be a second account of the tokens
// written to the cache, by how long they stay: five minutes is the provider's default.
func usageText(usage string, has, want middleware.Usage) (string, error) {
	v, err := codec.ParseObject(usage)
	if err != nil {
		return "", nil
	}
	was, now := figures.Over(has, v), withoutCache(want)
	switch {
	case withCache(was) == want:
		return usage, nil
	case now.InputTokens < 0:
		return "", codec.Unencodablef("Usage.Cached and Usage.CacheWrite are more than Usage.InputTokens")
	}
	members := lens.Differ(figures.Members(v, was), figures.Members(v, now))
	if account := v.Get("cache_creation"); now.CacheWrite != was.CacheWrite && account.Kind() == rawjson.Object {
		const short = "ephemeral_5m_input_tokens"
		n := codec.Int(account.Get(short)) + now.CacheWrite - was.CacheWrite
		if n < 0 {
			return "", codec.Unencodablef("Usage.CacheWrite is less than what the answer says of tokens that stay for an hour")
		}
		members = append(members, lens.Raw("cache_creation/"+short, codec.Count(n)))
	}
	return on.Set(v, members...)
}

// stops are the provider's words for the neutral ones.
var stops = map[middleware.FinishReason]string{middleware.FinishStop: "end_turn", middleware.FinishToolCalls: "tool_use",
	middleware.FinishLength: "max_tokens", middleware.FinishFilter: "refusal"}

func stopOf(r middleware.FinishReason) string { return cmp.Or(stops[r], string(r)) }

// stopText returns a stop_reason as JSON.
func stopText(stop string) string { return cmp.Or(lens.Word("", stop).Raw, "null") }
