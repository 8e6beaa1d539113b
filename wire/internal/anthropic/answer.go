package anthropic

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read. It is what lens remembers behind the Native
// of a response, and what an edit starts from. It holds no parsed text: an edit, which is
// rare, reads it again. No field of it changes after reading.
type answer struct {
	is       middleware.Response // without Native
	text     string              // the body, of a stream all of its bytes
	plain    bool                // no reader finds a call in text: unchanged, it passes as it is
	streamed bool
	object   string  // the answer in one spelling, of a stream the message of message_start without content
	blocks   []block // in the order in which clients list them
	figures  figures
	stop     string // the provider's word for the finish reason

	usage string // of a stream: the last figures, "" for none
	end   ending // of a stream
}

// ending is what events at the end of a stream bring beside the finish reason and the
// figures.
type ending struct {
	delta, beside memberSet // message_delta, in delta and beside it
	stop          memberSet // message_stop
}

// whole reads an answer that is one object:
//
//	{"id": …, "type": "message", "role": "assistant", "model": …, "content": [block, …],
//	 "stop_reason": "tool_use", "stop_sequence": null, "usage": {…}}
func (s *stream) whole(u *codec.Unit) error {
	if err := u.Unreadable(); err != nil {
		return err
	}
	if anyMayBeCall(u.Value.Get("content")) {
		return errMayBeCall
	}
	s.stopped = true
	a := s.a
	a.text, a.plain = s.Text(), s.Plain()
	if a.plain {
		a.object = a.text
		return s.object(u.Value)
	}
	a.object = ofMessage.Write(u.Value)
	return codec.Borrow(a.object, s.object)
}

// object reads the object of an answer. It keeps no value of it. An error with calls
// beside it is an answer.
func (s *stream) object(root rawjson.Value) error {
	a, content := s.a, root.Get("content")
	switch {
	case isFailure(root) && !holdsCall(content):
		s.fail(root)
		return nil
	case content.Kind() != rawjson.Array:
		return codec.Shapef("an answer without a list of content")
	}
	a.is.ID, a.is.Model = codec.Text(root.Get("id")), codec.Text(root.Get("model"))
	a.figures = a.figures.over(root.Get("usage"))
	a.stop = codec.Text(root.Get("stop_reason"))
	for v := range content.Each() {
		b, err := readAnswered(v)
		if err != nil {
			return err
		}
		a.blocks = append(a.blocks, b)
		if err := codec.Tell(s.sink, b.part.Kind, b.part.Text); err != nil {
			return err
		}
	}
	return nil
}

// readAnswered reads a content block of an answer: what is out of shape is
// opaque. The text of a call is that which history may have. The error wraps
// ErrShape: a client might read a call there.
func readAnswered(v rawjson.Value) (block, error) {
	if mayBeCall(v) {
		return block{}, errMayBeCall
	}
	b, err := readBlock(v, middleware.RoleAssistant)
	switch {
	case err != nil && b.isCall:
		return b, err
	case err != nil, v.Kind() != rawjson.Object:
		b = block{part: middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}, odd: true}
	case b.isCall && v.Get("input").Kind() != rawjson.Object:
		text, err := on.Set(v, lens.Raw("input", "{}"))
		if err != nil {
			return b, codec.Shapef("a tool_use with two inputs")
		}
		b.call.Native = on.Native(text)
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
		return namesCall(v)
	case kind.Kind() != rawjson.String:
		for m := range v.Each() {
			if rawjson.Fold(m.Key()) == "input" {
				return true
			}
		}
		return false
	case slices.Contains([]string{"text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"}, kind.Str()),
		strings.HasSuffix(kind.Str(), "_tool_result") && codec.Free(kind.Raw()), codec.Free(v.Raw()):
		return false
	}
	return namesCall(v, "tool_use_id")
}

var errMayBeCall = codec.Shapef("a content block that may be a tool call, and is not of type tool_use")

// anyMayBeCall is mayBeCall for a list of content.
func anyMayBeCall(content rawjson.Value) bool {
	return slices.ContainsFunc(slices.Collect(content.Each()), mayBeCall)
}

// holdsCall reports whether a list of content has a call.
func holdsCall(content rawjson.Value) bool {
	return slices.ContainsFunc(slices.Collect(content.Each()), func(v rawjson.Value) bool { return v.Get("type").Str() == "tool_use" })
}

// response puts together what was read, sharing nothing that can be changed.
//
// The Native of its message is the message as a later request repeats it, which
// is not always what was received: a block out of shape and an empty text are left
// out, the provider refuses both, and arguments that are not a JSON object are {}.
func (a *answer) response() *middleware.Response {
	m := middleware.Message{Role: middleware.RoleAssistant}
	var contents []string
	for _, b := range a.blocks {
		add(&m, b)
		emptyText := !b.isCall && b.part.Kind == middleware.PartText && b.part.Text == "" // which the provider refuses in history
		if !b.odd && !emptyText {
			contents = append(contents, b.native().Raw)
		}
	}
	m.Native = on.Native(on.Object(lens.Text("role", "assistant"), lens.Raw("content", codec.Array(contents))))
	a.is.Message, a.is.FinishReason, a.is.Usage = m, finishOf(a.stop), a.figures.usage()
	resp := a.is.Clone()
	resp.Native = on.Remember(a.text, a)
	return resp
}

// DecodeResponse reads an answer that is complete.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// readAnswer reads an answer again.
func readAnswer(body string) (*answer, error) {
	s := newStream(false)
	_, err := codec.Decode(s, []byte(body))
	return s.a, err
}

// EncodeResponse writes a response that was read. Without a call in it, it is what came,
// where nothing changed.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	out := a.text
	switch {
	case a.plain && codec.SameResponse(&a.is, resp):
	case a.streamed:
		out, err = a.events(resp, given{}, true)
	default:
		out, err = a.write(resp)
	}
	return []byte(out), err
}

// write returns an answer that is one object with the changes that resp has. Each is set
// where its value stands, so that all other members, and the blocks that did not change,
// keep their bytes.
func (a *answer) write(resp *middleware.Response) (string, error) {
	if codec.SameResponse(&a.is, resp) {
		return a.object, nil
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	contents, err := elements(items)
	if err != nil {
		return "", err
	}
	doc, err := codec.ParseBody(a.object)
	if err != nil {
		return "", err
	}
	root := doc.Root()
	e := on.Edit(root)
	e.Elements("content", contents)
	if stop := a.stopNow(resp); stop != a.stop {
		e.Put(lens.Raw("stop_reason", stopText(stop)))
	}
	if resp.Model != a.is.Model {
		e.Put(lens.Text("model", resp.Model))
	}
	e.Add(a.figures.edits(root.Get("usage"), resp.Usage))
	return e.Apply(doc)
}

// items returns what the answer is to hold, in the order of the wire. The format
// has one choice.
func (a *answer) items(resp *middleware.Response) ([]item, error) {
	if len(resp.Choices) > 0 {
		return nil, codec.Unencodablef("a second choice")
	}
	return arranged(resp.Message, a.blocks), codec.AnswerOnly(resp.Message)
}

// elements returns items as elements of a list of content. A block that did not
// change is its own text as received, not the text that history has.
func elements(items []item) ([]string, error) {
	out := make([]string, len(items))
	for i, it := range items {
		switch {
		case it.same:
			out[i] = it.own.raw
			continue
		case it.call == nil:
			text, err := it.partText()
			if err != nil {
				return nil, err
			}
			out[i] = text
			continue
		}
		c := *it.call
		if it.own != nil { // its input may not be that of its Native
			c.Native = on.Native(it.own.raw)
		}
		text, err := callText(c, false)
		if err != nil {
			return nil, err
		}
		out[i] = text
	}
	return out, nil
}

// partText returns a part that is new, or has changed, as a block.
func (it item) partText() (string, error) {
	text, err := partText(*it.part)
	if err == nil && text == "" {
		err = codec.Unencodablef("reasoning of another provider, or a block out of shape")
	}
	return asBlocks(text)[0], err
}

// stopNow returns the provider's word for the finish reason of resp. A finish
// reason that a middleware set counts. One that it left alone follows the calls:
// many clients run calls only if stop_reason says tool_use. A message that was cut off
// stays cut off, whatever calls it has.
func (a *answer) stopNow(resp *middleware.Response) string {
	was, now := len(a.is.Message.ToolCalls) > 0, len(resp.Message.ToolCalls) > 0
	switch {
	case resp.FinishReason != a.is.FinishReason:
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
	return codec.EncodeAnswer(f, path, body, resp, codec.Writing{Streamed: codec.FormEvents, Objects: true, Whole: freshAnswer, Stream: freshStream})
}

// freshAnswer writes a response as one object: as a change of an answer without
// content, so that there is one function that writes blocks.
func freshAnswer(resp *middleware.Response) (string, error) {
	a, now, err := begun(resp)
	if err != nil {
		return "", err
	}
	return a.write(now)
}

// freshStream writes a response as a stream; whole is its body if it came as one
// object. A stream takes arguments that are not a JSON object, which freshAnswer
// refuses: so it is not unfolded from one.
func freshStream(resp *middleware.Response, whole string) (string, error) {
	a, _, err := lens.Again(on, resp.Native, readAnswer)
	if err == nil && whole == "" {
		a, resp, err = begun(resp)
	}
	if err != nil {
		return "", err
	}
	return a.events(resp, given{}, true)
}

// begun returns an answer without content and resp as a change of it. Reasoning
// of another provider is left out: the provider would refuse it, unsigned, in
// the next request.
func begun(resp *middleware.Response) (*answer, *middleware.Response, error) {
	u := codec.FiguresOf(resp)
	usage := figuresOf(u).members()
	if u.Reasoning == 0 {
		usage = usage[:len(usage)-1]
	}
	a, err := readAnswer(on.Object(lens.Text("id", codec.NewID("msg_")), lens.Text("type", "message"), lens.Text("role", "assistant"),
		lens.Text("model", resp.Model), lens.Raw("content", "[]"), lens.Raw("stop_reason", "null"), lens.Raw("stop_sequence", "null"),
		lens.Raw("usage", on.Object(usage...))))
	if err != nil {
		return nil, nil, err
	}
	now := *resp
	now.FinishReason, now.Usage = codec.FinishOf(resp), u
	now.Message = codec.WithCallIDs(resp.Message, "toolu_")
	now.Message.Parts = nil
	for _, p := range resp.Message.Parts {
		if on.Raw(p.Native) == "" && (p.Kind == middleware.PartReasoning || p.Kind == middleware.PartText && p.Text == "") {
			continue
		}
		now.Message.Parts = append(now.Message.Parts, p)
	}
	return a, &now, nil
}
