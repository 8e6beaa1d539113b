package responses

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

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
// event.
type stream struct {
	codec.Splitter
	items    []*partialItem // in the order in which they began
	open     map[int64]int  // output_index: the item that came last
	byID     map[string]int // id of an item: the item that came last
	opening  beginning      // of the events so far
	snapshot beginning      // of the events that the client may be shown
	epoch    int            // counts the marks
	end      string         // the response object of the event that ended the answer
	ending   string         // the type of that event
	done     bool           // [DONE] came
	fault    error          // of the provider, in the stream
	broken   error          // an event that is not JSON, unless the answer is cut off in it
	answer   *answer        // nil before the end, and for an unreadable answer
}

// beginning is what a client knows of a stream.
type beginning struct {
	head      string // the response object of the event that opened it
	next      int64  // the next sequence_number
	begun     bool   // an event came
	started   bool   // response.in_progress came
	named     bool   // events have a name line
	numbered  bool   // events have a sequence_number
	itemCount int    // how many items have begun
}

// These trees have the members that are written even if they contain a word for calls: text
// may speak of calls, and the head of an answer repeats instructions and tools.
var (
	blockTree = codec.Tree{"annotations": nil, "logprobs": nil}.Scalars("type", "text", "refusal")
	itemTree  = codec.Tree{"content": blockTree, "summary": blockTree, "arguments": nil, "input": nil, "action": nil, "actions": nil, "operation": nil,
		"execution": nil, "pending_safety_checks": nil, "queries": nil, "results": nil, "result": nil, "code": nil, "outputs": nil, "output": nil, "error": nil,
		"tools": nil, "call_ids": nil}.Scalars("type", "id", "call_id", "name", "namespace", "status", "role", "encrypted_content", "server_label")
	headTree = codec.Tree{"error": nil, "incomplete_details": nil, "instructions": nil, "tools": nil, "tool_choice": nil, "prompt": nil,
		"metadata": nil, "text": nil, "reasoning": nil, "usage": nil}.Scalars("id", "status", "model", "output_text", "user", "store")
	eventTree = codec.Tree{"delta": nil, "part": blockTree, "annotation": nil, "arguments": nil, "input": nil, "code": nil, "item": itemTree,
		"response": headTree}.Scalars("type", "sequence_number", "output_index", "item_id", "content_index", "summary_index", "text", "refusal")
	answerTree = headTree.With(itemTree, "output")
)

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := &stream{open: map[int64]int{}, byID: map[string]int{}}
	s.Splitter = codec.NewSplitter(Format{}, s, eventTree, false, req, sink)
	return s
}

// typeOf returns the type of an event: from its data, else from its name. The data of
// an event named error may be the error itself, with a type of its own.
func typeOf(u *codec.Unit) string {
	if typ := u.Value.Get("type").Str(); typ != "" && u.Name != "error" {
		return typ
	}
	return u.Name
}

// isHead reports whether events of that type announce the answer. They hold the response
// object as far as it is known.
func isHead(typ string) bool {
	return typ == "response.created" || typ == started || typ == "response.queued"
}

// isEnd reports whether an event of that type ends the answer. It holds the whole
// response object.
func isEnd(typ string) bool {
	return slices.Contains([]string{"response.completed", "response.incomplete", "response.failed", "response.cancelled"}, typ)
}

// The types of the events that say that the answer has started, and that announce an item.
const (
	started = "response.in_progress"
	added   = "response.output_item.added"
)

// isItem reports whether events of that type hold an item: as it is announced, or
// as it is done.
func isItem(typ string) bool {
	return typ == added || typ == "response.output_item.done"
}

// isArguments reports whether events of that type hold arguments of a call.
func isArguments(typ string) bool {
	return strings.HasPrefix(typ, "response.function_call_arguments.") || strings.HasPrefix(typ, "response.custom_tool_call_input.")
}

// isKnown reports whether events of that type are known to bring no call of the client: those
// of a text, of what the provider runs, and those that begin the answer.
func isKnown(typ string) bool {
	typ, ok := strings.CutPrefix(typ, "response.")
	begins := func(known string) bool { return strings.HasPrefix(typ, known) }
	return ok && (slices.ContainsFunc([]string{"output_text.", "refusal.", "content_part.", "reasoning", "audio.", "mcp_"}, begins) || slices.ContainsFunc(hostedCalls, begins)) ||
		isHead("response."+typ)
}

// Release holds calls of the client, errors and the end, and lets reasoning wait. What the
// provider runs is shown at once.
func (s *stream) Release(u *codec.Unit) (codec.Release, error) {
	v, typ := u.Value, typeOf(u)
	switch {
	case s.Buf.IsWhole(), isEnd(typ), isArguments(typ), isFailure(u):
		return codec.ReleaseHold, nil
	case !v.Exists():
		if strings.HasPrefix(strings.TrimSpace(u.Data), "{") {
			return codec.ReleaseHold, nil
		}
		return codec.ReleaseWithPrevious, nil
	case isItem(typ):
		return itemRelease(v.Get("item"), typ)
	case !u.Free:
		if hold, err := s.findStrayCall(v, typ); hold || err != nil {
			return codec.ReleaseHold, err
		}
	}
	switch {
	case strings.HasPrefix(typ, "response.reasoning"):
		return codec.ReleaseAfterText, nil
	case typ == "response.output_text.delta", typ == "response.refusal.delta":
		if v.Get("delta").Str() != "" {
			return codec.ReleaseNow, nil
		}
	}
	return codec.ReleaseWithPrevious, nil
}

// itemRelease returns the release of an event with an item.
func itemRelease(v rawjson.Value, typ string) (codec.Release, error) {
	if v.Kind() != rawjson.Object {
		return codec.ReleaseWithPrevious, nil // no client reads an item there
	}
	it, err := answerItem(v)
	if err != nil {
		return codec.ReleaseHold, err
	}
	switch it.sort {
	case isCall, isOutput:
		return codec.ReleaseHold, nil
	case isReasoning:
		return codec.ReleaseAfterText, nil
	case isMessage:
		if typ == "response.output_item.done" && !it.odd && it.read() == nil && slices.ContainsFunc(it.parts, func(p middleware.Part) bool { return p.Text != "" }) {
			return codec.ReleaseNow, nil
		}
		return codec.ReleaseWithPrevious, nil
	}
	return codec.ReleaseNow, nil
}

// findStrayCall looks for calls in an event in which none belongs: then the answer cannot be
// read, because a client may find them. Events about a call of the client are held.
func (s *stream) findStrayCall(v rawjson.Value, typ string) (hold bool, err error) {
	for _, member := range []rawjson.Value{v.Get("item"), v.Get("response").Get("output")} {
		if member.Exists() && !codec.HasNoCallWord(member.Raw()) {
			return true, codec.Shapef("a call in an event of type %q, which brings none", typ)
		}
	}
	about := v.Get("item_id").Str() != "" || v.Get("output_index").Exists()
	if at, ok := s.find(v, v.Get("item_id").Str()); about && ok && s.items[at].sort != isMessage {
		return s.items[at].sort == isCall, nil
	}
	if !isKnown(typ) && codec.NamesCall(v) {
		return true, codec.Shapef("an event of an unknown type that may hold a call")
	}
	return false, nil
}

// Snapshot notes how far the items have come.
func (s *stream) Snapshot() {
	s.epoch++
	s.opening.itemCount = len(s.items)
	s.snapshot = s.opening
}

// Read reads an event. After the end only errors count.
func (s *stream) Read(u *codec.Unit) error {
	v, typ := u.Value, typeOf(u)
	switch {
	case s.Buf.IsWhole():
		return s.whole(u)
	case isFailure(u):
		s.fail(u)
		return nil
	case !v.Exists():
		s.done = s.done || strings.TrimSpace(u.Data) == "[DONE]"
		if strings.HasPrefix(strings.TrimSpace(u.Data), "{") {
			s.broken = codec.Shapef("an event that is not JSON")
		}
		return nil
	case s.end != "":
		return nil
	}
	s.opening.begun, s.opening.named = true, s.opening.named || u.Name != ""
	if n := v.Get("sequence_number"); n.Kind() == rawjson.Number {
		s.opening.next, s.opening.numbered = codec.Int(n)+1, true
	}
	switch {
	case isHead(typ):
		s.opening.started = s.opening.started || typ == started
		if env := v.Get("response"); s.opening.head == "" && env.Kind() == rawjson.Object {
			s.opening.head = headTree.Write(env)
		}
	case isEnd(typ):
		return s.finish(v.Get("response"), typ)
	case isItem(typ):
		return s.item(v, typ == "response.output_item.done")
	case isArguments(typ):
		return s.arguments(u, typ)
	default:
		return s.block(u, typ)
	}
	return nil
}

// Response puts the answer together. A fault of the provider counts more than what is
// wrong with the form of the stream.
func (s *stream) Response() (codec.Written, error) {
	a := s.answer // of one object
	var err error
	switch {
	case s.Buf.IsWhole() && a != nil:
	case s.fault != nil:
		err = s.fault
	case s.end == "":
		err = codec.ErrIncomplete
	case s.broken != nil:
		err = s.broken
	default:
		a, err = s.fold()
	}
	if err == nil {
		err = a.turn.answered(s.Req)
	}
	if err != nil {
		return nil, err
	}
	s.answer = a
	return a, nil
}

// finish reads the response object of the event that ends the answer.
func (s *stream) finish(env rawjson.Value, typ string) error {
	if env.Kind() != rawjson.Object {
		return codec.Shapef("%s where the response of an event should be", env.Kind())
	}
	s.end, s.ending = env.Raw(), typ
	failure, err := failed(env, typ == "response.failed")
	if failure != nil {
		s.fault = failure
	}
	return err
}

// whole reads a body that is not a stream.
func (s *stream) whole(u *codec.Unit) error {
	if err := u.Unreadable(); err != nil {
		return err
	}
	failure, err := failed(u.Value, false)
	switch output := u.Value.Get("output"); {
	case err != nil:
		return err
	case failure != nil:
		return failure
	case output.Kind() != rawjson.Array:
		return codec.Shapef("a body without an output")
	}
	env, err := parse(u.Data, answerTree)
	if err != nil {
		return err
	}
	if s.answer, err = newAnswer(s, env, slices.Collect(env.Get("output").Each())); err != nil {
		return err
	}
	return codec.EmitParts(s.Sink, s.answer.Is.Message.Parts)
}

// parse returns the object text. One with members that not every reader takes for the
// same is written anew first.
func parse(text string, tree codec.Tree) (rawjson.Value, error) {
	doc, err := codec.ParseBody(text)
	if err != nil {
		return rawjson.Value{}, err
	}
	if doc.HasPlainKeys() {
		return doc.Root(), nil
	}
	return codec.ParseObject(tree.Write(doc.Root()))
}

// A stream holds a call up to five times: in output_item.added and output_item.done, in
// the deltas and the done event of its arguments, and at the end. Clients differ in the
// copy that they take. What counts here is the last output_item.done of the item, else
// the end, else what was announced with its arguments; what leaves has all copies anew,
// from that one value.

// partialItem is one item as it comes in.
type partialItem struct {
	index  int64
	sort   sort   // as it was added, or done
	typ    string // the same
	id     string
	callID string
	added  string       // "": it was never announced
	pieces codec.Joined // the deltas of the arguments
	full   string       // the arguments as their own done event has them
	inSink bool         // its text went to the sink

	progress
	epoch  int      // the mark since which it has changed
	before progress // at that mark
}

// progress is how far an item has come for a client.
type progress struct {
	done   string // the item as it was done last; "": it is not
	blocks []block
	events []itemEvent // about an item that the provider runs, from output_item.added on
}

// itemEvent is an event about an item that the provider runs, such as a partial image.
type itemEvent struct{ typ, raw string }

// isHostedEvent reports whether events of that type are about an item that the provider runs.
func isHostedEvent(typ string) bool {
	typ, ok := strings.CutPrefix(typ, "response.")
	return ok && slices.ContainsFunc(hostedCalls, func(call string) bool { return strings.HasPrefix(typ, call) }) &&
		strings.Trim(typ, "abcdefghijklmnopqrstuvwxyz_.") == "" // it becomes the name of an event
}

// block is one text of a message or of reasoning: an element of content or summary.
type block struct {
	list  string
	index int64
	typ   string
	text  codec.Joined // so far
	ended bool
}

// change returns the item at that place for a change of its progress.
func (s *stream) change(at int) *partialItem {
	it := s.items[at]
	if it.epoch != s.epoch {
		it.epoch, it.before = s.epoch, progress{it.done, slices.Clone(it.blocks), it.events}
	}
	return it
}

// outputIndex returns the output_index of an event. Some servers send none
// (llama-server): their items are known by their id.
func outputIndex(event rawjson.Value) (index int64, ok bool) {
	n := event.Get("output_index")
	if n.Kind() != rawjson.Number {
		return 0, false
	}
	index, err := strconv.ParseInt(n.Raw(), 10, 64)
	return index, err == nil
}

// find returns the place of the item that an event is about: by its output_index, as
// servers exist that give an item another id in each event, else by its id, else the
// last one.
func (s *stream) find(event rawjson.Value, id string) (at int, ok bool) {
	if index, indexed := outputIndex(event); indexed {
		if at, ok = s.open[index]; ok {
			return at, true
		}
		at, ok = s.byID[id]
		return at, ok && id != ""
	}
	if id != "" {
		at, ok = s.byID[id]
		return at, ok
	}
	return len(s.items) - 1, len(s.items) > 0
}

// item reads output_item.added and output_item.done:
//
//	{"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": …, "arguments": ""}}
//	{"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{\"city\":"}
//	{"type": "response.output_item.done", "output_index": 1, "item": {…, "arguments": "{\"city\":\"Oslo\"}"}}
//
// An item that is done frees its place: some servers give the next item the same
// output_index. Another event with the same ids is a copy.
func (s *stream) item(event rawjson.Value, done bool) error {
	v := event.Get("item")
	if v.Kind() != rawjson.Object {
		return nil // no client reads an item there
	}
	kind, err := answerItem(v)
	if err != nil {
		return err
	}
	id := v.Get("id").Str()
	at, ok := s.find(event, id)
	if !ok || !s.items[at].isCopy(v, kind.sort, done) {
		index, indexed := outputIndex(event)
		at = len(s.items)
		if !indexed {
			index = int64(at)
		}
		s.open[index] = at
		s.items = append(s.items, &partialItem{index: index, epoch: s.epoch})
	}
	if id != "" {
		s.byID[id] = at
	}
	it := s.change(at)
	it.sort, it.typ, it.id, it.callID = kind.sort, v.Get("type").Str(), id, v.Get("call_id").Str()
	if !done {
		it.added = v.Raw()
		if it.sort == isOpaque {
			it.events = append(it.events, itemEvent{added, event.Raw()})
		}
		return nil
	}
	it.done = v.Raw()
	if it.inSink || kind.sort != isMessage && kind.sort != isReasoning || kind.odd || kind.read() != nil {
		return nil
	}
	it.inSink = true
	return codec.EmitParts(s.Sink, kind.parts)
}

// isCopy reports whether v, an item that is announced or done, is the item.
func (it *partialItem) isCopy(v rawjson.Value, kind sort, done bool) bool {
	if (it.sort == isCall) != (kind == isCall) || (it.sort == isMessage) != (kind == isMessage) {
		return false
	}
	return done && it.done == "" || it.id != "" && it.id == v.Get("id").Str() && it.callID == v.Get("call_id").Str()
}

// arguments reads the arguments of a call as they come in: in pieces, in events of type
// …delta, and whole, in the event of type …done. They come before the call itself is done.
func (s *stream) arguments(u *codec.Unit, typ string) error {
	event := u.Value
	at, ok := s.find(event, event.Get("item_id").Str())
	if !ok || s.items[at].sort != isCall {
		return codec.Shapef("arguments without a call that they belong to")
	}
	it := s.items[at]
	if strings.HasSuffix(typ, ".delta") {
		if _, err := on.Text(event, "delta"); err != nil {
			return err
		}
		it.pieces.Add(event.Get("delta"))
		s.RepeatsPiece(u, it.pieces.AddRaw, event.Get("delta"), event.Get("sequence_number"), event.Get("obfuscation"))
		return nil
	}
	_, key := arguments(event, calls[it.typ])
	if _, err := on.Text(event, key); err != nil {
		return err
	}
	it.full = event.Get(key).Raw()
	return nil
}

// block reads an event about a text, and tells the sink. Where another piece of
// reasoning begins, the space between the two comes first.
func (s *stream) block(u *codec.Unit, typ string) error {
	v := u.Value
	at, ok := s.find(v, v.Get("item_id").Str())
	if !ok {
		return nil
	}
	if s.items[at].sort == isOpaque && isHostedEvent(typ) {
		it := s.change(at)
		it.events = append(it.events, itemEvent{typ, v.Raw()})
		return nil
	}
	list, counter, kind, part := "content", "content_index", middleware.PartText, "output_text"
	switch name := strings.TrimPrefix(typ, "response."); {
	case strings.HasPrefix(name, "reasoning_summary_"):
		list, counter, kind = "summary", "summary_index", middleware.PartReasoning
	case strings.HasPrefix(name, "reasoning_text."):
		kind = middleware.PartReasoning
	case strings.HasPrefix(name, "refusal."):
		part = "refusal"
	case !strings.HasPrefix(name, "output_text.") && !strings.HasPrefix(name, "content_part."):
		return nil
	}
	n := s.change(at).block(list, codec.Int(v.Get(counter)))
	if n > maxBlocks {
		return codec.Shapef("an item of more than %d texts", maxBlocks)
	}
	it := s.items[at]
	b := &it.blocks[n]
	b.typ = part
	switch first, delta := b.text.Len() == 0, v.Get("delta"); {
	case strings.HasSuffix(typ, "_part.done"):
		b.ended = true
	case strings.HasSuffix(typ, ".done") && first:
		b.text.Add(v.Get("text"))
		b.text.Add(v.Get("refusal"))
	case strings.HasSuffix(typ, ".delta") && delta.Kind() == rawjson.String:
		text := delta.Str()
		if kind == middleware.PartReasoning && it.inSink && first {
			text = between + text
		}
		b.text.Add(delta)
		it.inSink = true
		if kind == middleware.PartText {
			s.Repeats(u, func(text string) error {
				s.opening.next += int64(s.Repeated())
				_ = s.change(at).blocks[n].text.AddRaw(text)
				return codec.Emit(s.Sink, kind, text)
			}, delta, v.Get("sequence_number"), v.Get("obfuscation"))
		}
		return codec.Emit(s.Sink, kind, text)
	}
	return nil
}

// maxBlocks bounds the texts of an item: they are searched for each delta.
const maxBlocks = 1 << 10

// block returns the place of a block, which may be new.
func (it *partialItem) block(list string, index int64) int {
	for i, b := range slices.Backward(it.blocks) {
		if b.list == list && b.index == index {
			return i
		}
	}
	it.blocks = append(it.blocks, block{list: list, index: index})
	return len(it.blocks) - 1
}

// fold makes the answer of the items.
func (s *stream) fold() (*answer, error) {
	env, err := parse(s.end, answerTree)
	if err != nil {
		return nil, err
	}
	output, err := on.Kind(env, "output", rawjson.Array)
	if err != nil {
		return nil, err
	}
	var ends []item
	for v := range output.Each() {
		end, err := answerItem(v)
		if err != nil {
			return nil, err
		}
		if v.Kind() == rawjson.Object { // null and such are ignored
			ends = append(ends, end)
		}
	}
	order := make([]int, len(s.items))
	for i := range order {
		order[i] = i
	}
	copies, rest := s.pair(ends)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.items[a].index, s.items[b].index) })
	var items []rawjson.Value
	var from []int
	var events [][]itemEvent
	begun := false // a hosted call that did not end
	for _, i := range order {
		v, err := s.items[i].value(copies[i])
		if err != nil {
			return nil, err
		}
		if v.Exists() {
			items, from, events = append(items, v), append(from, i), append(events, s.items[i].events)
		}
		begun = begun || !v.Exists() && s.items[i].sort == isOpaque
	}
	for _, end := range rest {
		items, from = append(items, end.val), append(from, -1)
	}
	a, err := newAnswer(s, env, items)
	if err == nil {
		a.from, a.events, a.Is.Unpaired = from, events, a.Is.Unpaired || begun
	}
	return a, err
}

// value returns the item: as it was done or, of one that was not, as the end has it. A
// call or a message that has neither is what was announced, with the arguments or the
// texts that came.
func (it *partialItem) value(end rawjson.Value) (rawjson.Value, error) {
	text := cmp.Or(it.done, end.Raw())
	if text == "" && (it.sort == isCall || it.sort == isMessage) {
		text = it.added
	}
	if text == "" {
		return rawjson.Value{}, nil
	}
	v, err := parse(text, itemTree)
	if err != nil {
		return v, err
	}
	switch {
	case it.sort == isCall && (it.full != "" || it.pieces.Len() > 0):
		args, key := arguments(v, calls[v.Get("type").Str()])
		if args.Kind() != rawjson.Object && args.Str() == "" {
			return on.Changed(v, lens.Raw(key, cmp.Or(it.full, it.pieces.JSON())))
		}
	case it.sort == isMessage && it.done == "" && !end.Exists():
		raws := lens.TextsOf(it.blocks, func(b block) string {
			return on.Object(lens.Text("type", b.typ), lens.Raw(textMember(b.typ), b.text.JSON()))
		})
		return on.Changed(v, lens.Raw("content", codec.Array(raws)))
	}
	return v, nil
}

// pair finds the copy of each item among the items at the end: the one with its call_id, else
// with its id, else the next of its type. Items of the same sort are paired first: where an item
// was announced as another sort than it was done, the stream has two items with the id of one,
// and the copy belongs to the one that was done. pair returns the copies, absent for items
// without one, and the items at the end without an event.
func (s *stream) pair(ends []item) (copies []rawjson.Value, rest []item) {
	type name struct {
		sort sort // isOpaque in the names of any sort
		text string
	}
	names := func(sort sort, typ, id, callID string) [6]name {
		if outputs[typ] != nil { // it repeats the call_id of a call
			callID = ""
		}
		return [...]name{{sort, callID}, {sort, id}, {sort, typ}, {text: callID}, {text: id}, {text: typ}}
	}
	copies = make([]rawjson.Value, len(s.items))
	for n := range names(isOpaque, "", "", "") {
		left, taken := map[name][]rawjson.Value{}, map[rawjson.Value]bool{}
		for _, end := range ends {
			v := end.val
			name := names(end.sort, v.Get("type").Str(), v.Get("id").Str(), v.Get("call_id").Str())[n]
			left[name] = append(left[name], v)
		}
		for i, it := range s.items {
			name := names(it.sort, it.typ, it.id, it.callID)[n]
			if same := left[name]; !copies[i].Exists() && name.text != "" && len(same) > 0 {
				copies[i], left[name] = same[0], same[1:]
				taken[same[0]] = true
			}
		}
		ends = slices.DeleteFunc(ends, func(end item) bool { return taken[end.val] })
	}
	return copies, ends
}
