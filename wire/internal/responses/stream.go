package responses

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
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
	codec.Units
	req     *middleware.Request // that is answered; nil: not known
	sink    middleware.Sink
	items   []*piecemeal   // in the order in which they began
	open    map[int64]int  // output_index: the item that came last
	byID    map[string]int // id of an item: the item that came last
	opening beginning      // what the events so far say of the stream
	marked  beginning      // what those say that the client may be shown
	epoch   int            // counts the marks
	end     string         // the response object of the event that ended the answer
	ending  string         // the type of that event
	done    bool           // [DONE] came
	fault   error          // of the provider, in the stream
	broken  error          // an event that is not JSON, unless the answer is cut off in it
	answer  *answer        // nil: there is none yet, or it was not readable
}

// beginning is what a client knows of a stream.
type beginning struct {
	head      string // the response object of the event that opened it
	next      int64  // the next sequence_number
	begun     bool   // an event came
	named     bool   // events have a name line
	numbered  bool   // events have a sequence_number
	itemCount int    // how many items have begun
}

// The members that are written though a word for calls stands in them: text may speak
// of calls, and the head of an answer repeats instructions and tools.
var (
	blockTree = codec.Tree{"type": nil, "text": nil, "refusal": nil, "annotations": nil, "logprobs": nil}
	itemTree  = codec.Tree{"type": nil, "id": nil, "call_id": nil, "name": nil, "namespace": nil, "status": nil, "role": nil, "content": blockTree,
		"summary": blockTree, "encrypted_content": nil, "arguments": nil, "input": nil, "action": nil, "actions": nil, "operation": nil,
		"execution": nil, "pending_safety_checks": nil, "queries": nil, "results": nil, "result": nil, "code": nil, "outputs": nil,
		"output": nil, "error": nil, "tools": nil, "server_label": nil, "call_ids": nil}
	headTree = codec.Tree{"id": nil, "status": nil, "model": nil, "error": nil, "incomplete_details": nil, "instructions": nil, "tools": nil,
		"tool_choice": nil, "prompt": nil, "metadata": nil, "text": nil, "reasoning": nil,
		"output_text": nil, "usage": nil, "user": nil, "store": nil}
	eventTree = codec.Tree{"type": nil, "sequence_number": nil, "output_index": nil, "item_id": nil, "content_index": nil, "summary_index": nil,
		"delta": nil, "text": nil, "refusal": nil, "part": blockTree, "annotation": nil, "arguments": nil, "input": nil, "code": nil,
		"item": itemTree, "response": headTree}
	answerTree = withOutput(headTree)
)

// withOutput returns the members of a response object that ends an answer.
func withOutput(head codec.Tree) codec.Tree {
	tree := codec.Tree{"output": itemTree}
	for key, sub := range head {
		tree[key] = sub
	}
	return tree
}

// NewStream returns a reader of one answer.
func (Format) NewStream(req *middleware.Request, sink middleware.Sink) codec.Stream {
	s := newStream(req != nil && len(req.Tools) > 0)
	s.req, s.sink = req, sink
	return s
}

// newStream returns a reader of an answer to a request that offered tools, or did not.
func newStream(tools bool) *stream {
	s := &stream{open: map[int64]int{}, byID: map[string]int{}}
	s.Units = codec.NewUnits(s, eventTree, false, tools)
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

// isHead reports whether events of that type say that the answer has begun. They
// hold the response object as far as it is known.
func isHead(typ string) bool {
	return typ == "response.created" || typ == "response.in_progress" || typ == "response.queued"
}

// isEnd reports whether an event of that type ends the answer. It holds the whole
// response object.
func isEnd(typ string) bool {
	return slices.Contains([]string{"response.completed", "response.incomplete", "response.failed", "response.cancelled"}, typ)
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

// isKnown reports whether events of that type are known to bring no call of the client: those
// of a text, of what the provider runs, and those that begin the answer.
func isKnown(typ string) bool {
	typ, ok := strings.CutPrefix(typ, "response.")
	begins := func(known string) bool { return strings.HasPrefix(typ, known) }
	return ok && (slices.ContainsFunc([]string{"output_text.", "refusal.", "content_part.", "reasoning", "audio.", "mcp_"}, begins) || slices.ContainsFunc(hostedCalls, begins)) ||
		isHead("response."+typ)
}

// Fate holds calls of the client, errors and the end, and lets reasoning wait. What the
// provider runs is shown at once.
func (s *stream) Fate(u *codec.Unit) (codec.Fate, error) {
	v, typ := u.Value, typeOf(u)
	switch {
	case s.Buf.IsWhole(), isEnd(typ), isArguments(typ), isFailure(u):
		return codec.FateHold, nil
	case !v.Exists():
		if strings.HasPrefix(strings.TrimSpace(u.Data), "{") {
			return codec.FateHold, nil
		}
		return codec.FatePass, nil
	case isItem(typ):
		return itemFate(v.Get("item"), typ)
	case !u.Free:
		if hold, err := s.stray(v, typ); hold || err != nil {
			return codec.FateHold, err
		}
	}
	switch {
	case strings.HasPrefix(typ, "response.reasoning"):
		return codec.FateWait, nil
	case typ == "response.output_text.delta", typ == "response.refusal.delta":
		if v.Get("delta").Str() != "" {
			return codec.FateShow, nil
		}
	}
	return codec.FatePass, nil
}

// itemFate returns the fate of an event with an item.
func itemFate(v rawjson.Value, typ string) (codec.Fate, error) {
	if v.Kind() != rawjson.Object {
		return codec.FatePass, nil // no client reads an item there
	}
	it, err := answerItem(v)
	if err != nil {
		return codec.FateHold, err
	}
	switch it.sort {
	case isCall, isOutput:
		return codec.FateHold, nil
	case isReasoning:
		return codec.FateWait, nil
	case isMessage:
		if typ == "response.output_item.done" && !it.odd && it.read() == nil && saysText(it.parts) {
			return codec.FateShow, nil
		}
		return codec.FatePass, nil
	}
	return codec.FateShow, nil
}

func saysText(parts []middleware.Part) bool {
	return slices.ContainsFunc(parts, func(p middleware.Part) bool { return p.Text != "" })
}

// stray looks for calls in an event in which none belongs: then the answer cannot be
// read, because a client may find them. Events about a call of the client are held.
func (s *stream) stray(v rawjson.Value, typ string) (hold bool, err error) {
	for _, member := range []rawjson.Value{v.Get("item"), v.Get("response").Get("output")} {
		if member.Exists() && !codec.Free(member.Raw()) {
			return true, codec.Shapef("a call in an event of type %q, which brings none", typ)
		}
	}
	about := v.Get("item_id").Str() != "" || v.Get("output_index").Exists()
	if at, ok := s.find(v, v.Get("item_id").Str()); about && ok && s.items[at].sort != isMessage {
		return s.items[at].sort == isCall, nil
	}
	if !isKnown(typ) && namesCall(v, 0) {
		return true, codec.Shapef("an event of an unknown type that may hold a call")
	}
	return false, nil
}

// namesCall reports whether a word for calls stands in a key or in a type below v, or v is
// too deep to say.
func namesCall(v rawjson.Value, depth int) bool {
	if depth > deepest {
		return true
	}
	for m := range v.Each() {
		if m.IsMember() && !codec.Free(rawjson.Quote(m.Key())) || m.Key() == "type" && !codec.Free(m.Raw()) || namesCall(m, depth+1) {
			return true
		}
	}
	return false
}

// deepest bounds how deep an event of an unknown type is searched.
const deepest = 1000

// Mark notes how far the items have come.
func (s *stream) Mark() {
	s.epoch++
	s.opening.itemCount = len(s.items)
	s.marked = s.opening
}

// Read reads an event. Behind the end only errors count.
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
		if env := v.Get("response"); s.opening.head == "" && env.Kind() == rawjson.Object {
			s.opening.head = headTree.Write(env)
		}
	case isEnd(typ):
		return s.finish(v.Get("response"), typ)
	case isItem(typ):
		return s.item(v, typ == "response.output_item.done")
	case isArguments(typ):
		return s.arguments(v, typ)
	default:
		return s.block(u, typ)
	}
	return nil
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

// Response puts the answer together. A fault of the provider counts more than what is
// wrong with the form of the stream.
func (s *stream) Response() (*middleware.Response, error) {
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
		err = a.turn.answered(s.req)
	}
	if err != nil {
		return nil, err
	}
	s.answer = a
	resp := a.Is.Clone()
	resp.Native = on.Remember(s.Text(), a)
	return resp, nil
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
	return codec.TellAll(s.sink, s.answer.Is.Message.Parts)
}

// parse returns the object text. One with members that not every reader takes for the
// same is written anew first.
func parse(text string, tree codec.Tree) (rawjson.Value, error) {
	doc, err := codec.ParseBody(text)
	if err != nil {
		return rawjson.Value{}, err
	}
	if doc.PlainKeys() {
		return doc.Root(), nil
	}
	return codec.ParseObject(tree.Write(doc.Root()))
}
