package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// answer is an answer as it was read. It is what lens remembers behind the Native
// of a response, and what an edit starts from. One that came whole is
//
//	{"id": …, "type": "message", "role": "assistant", "model": …, "content": [block, …],
//	 "stop_reason": "tool_use", "stop_sequence": null, "usage": {…}}
//
// and has whole; one that came as a stream has events. No field of it changes after
// reading.
type answer struct {
	is      middleware.Response // without Native
	text    string              // the body, of a stream all of its bytes
	blocks  []block             // in the order in which clients list them
	figures figures
	stop    string // the provider's word for the finish reason

	whole *lens.Chunk // of an answer that is not a stream; nil for a stream

	// of a stream
	events []event
	named  bool // events have names, as the provider's do; those of some servers have none
	start  int  // which event is message_start, -1: none
	delta  int  // the last message_delta
	counts int  // the last one with figures
}

// message reads what an answer and message_start have in common. The figures of
// message_start are those of the beginning: message_delta overwrites them.
func (a *answer) message(v rawjson.Value) {
	a.is.Model = codec.Text(v.Get("model"))
	a.figures = a.figures.over(v.Get("usage"))
}

// readAnswered reads a content block of an answer: what is out of shape is
// opaque. The text of a call is that which history may have. The error wraps
// ErrShape: a client might read a call there.
func readAnswered(v rawjson.Value) (block, error) {
	if mayBeCall(v) {
		return block{}, codec.Shapef("a call whose type is not a tool_use")
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
			return b, codec.Shapef("a call with two inputs")
		}
		b.call.Native = on.Native(text)
	}
	b.v = v
	return b, nil
}

// response puts together what was read, sharing nothing that can be changed.
//
// The Native of its message is the message as a later request repeats it, which
// is not always what was received: a block out of shape and an empty text are left
// out, the provider refuses both, and arguments that are not a JSON object are {}.
// Where nothing of that kind was found, the list of blocks keeps its own bytes.
func (a *answer) response() *middleware.Response {
	m := middleware.Message{Role: middleware.RoleAssistant}
	var contents []string
	asWritten := a.whole != nil
	for _, b := range a.blocks {
		add(&m, b)
		text := b.native().Raw
		emptyText := !b.isCall && b.part.Kind == middleware.PartText && b.part.Text == "" // which the provider refuses in history
		if b.odd || emptyText {
			asWritten = false
			continue
		}
		asWritten = asWritten && text == b.v.Raw()
		contents = append(contents, text)
	}
	content := codec.Array(contents)
	if asWritten {
		content = a.whole.Root().Get("content").Raw()
	}
	m.Native = on.Native(on.Object(lens.Text("role", "assistant"), lens.Raw("content", content)))
	a.is.Message, a.is.FinishReason, a.is.Usage = m, finishOf(a.stop), a.figures.usage()
	resp := a.is.Clone()
	resp.Native = on.Remember(a.text, a)
	return resp
}

// DecodeResponse is part of wire.Codec.
func (f Format) DecodeResponse(req *middleware.Request, body []byte) (*middleware.Response, error) {
	return codec.Decode(f.NewStream(req, nil), body)
}

// readAnswer reads an answer again.
func readAnswer(body string) (*answer, error) {
	s := newStream(nil)
	_, err := codec.Decode(s, []byte(body))
	return s.a, err
}

// EncodeResponse is part of wire.Codec.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	body, err := a.write(resp)
	return []byte(body), err
}

// write returns a's body with the changes that resp has. A stream is written by
// rewrite. In one object each change is set where its value stands, so that all
// other members, and the blocks that did not change, keep their bytes.
func (a *answer) write(resp *middleware.Response) (string, error) {
	if codec.SameResponse(&a.is, resp) {
		return a.text, nil
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	if a.whole == nil {
		return a.rewrite(resp, items, position{so: a.figures})
	}
	contents, err := a.elements(items)
	if err != nil {
		return "", err
	}
	root := a.whole.Root()
	e := on.Edit(root)
	e.Elements("content", contents)
	if stop := a.stopNow(resp); stop != a.stop {
		e.Put(lens.Raw("stop_reason", stopText(stop)))
	}
	if resp.Model != a.is.Model {
		e.Put(lens.Text("model", resp.Model))
	}
	e.Add(a.figures.edits(root.Get("usage"), resp.Usage))
	chunk := *a.whole
	if err := chunk.Add(e.Edits()); err != nil {
		return "", err
	}
	return lens.ApplyAll(a.text, []*lens.Chunk{&chunk})
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
func (a *answer) elements(items []item) ([]string, error) {
	out := make([]string, len(items))
	for i, it := range items {
		switch {
		case it.same:
			out[i] = it.own.v.Raw()
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
			c.Native = on.Native(it.own.v.Raw())
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

// EncodeAnswer is part of wire.Codec.
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
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	return a.asStream(resp, items)
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
