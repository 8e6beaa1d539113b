package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// answer is the handle of a response.
type answer struct {
	native  middleware.Native
	is      middleware.Response // as decoded, without Native
	home    *home
	blocks  []*block
	figures figures
	stop    string // the provider's word for the finish reason

	root  rawjson.Value // of an answer that is no stream
	event codec.Event   // where that stands

	events []event // of a stream
	named  bool    // they have names, as the provider's do; those of some servers have none
	start  int     // which event is message_start, -1: none
	delta  int     // the last message_delta
	counts int     // the last one with figures
}

// event is one event of a stream.
type event struct {
	codec.Event
	kind  string // its type
	delta string // the type of its delta
	block int    // the block that it is of, -1: none
	index int    // what the event calls it
}

// streamed reports whether a came as events.
func (a *answer) streamed() bool { return !a.root.Exists() }

// message reads what an answer and message_start have in common.
func (a *answer) message(v rawjson.Value) {
	a.is.Model = codec.Text(v.Get("model"))
	a.figures = a.figures.over(v.Get("usage"))
}

// neutral returns what a was decoded to, sharing nothing that can be changed.
func (a *answer) neutral() *middleware.Response {
	h := &message{is: middleware.Message{Role: middleware.RoleAssistant}, home: a.home, answer: true}
	var contents []string
	asWritten := !a.streamed()
	for _, b := range a.blocks {
		h.append(b)
		if b.odd || b.kind == "text" && b.part.Text == "" { // the provider refuses empty text in history
			asWritten = false
			continue
		}
		raw := b.native.Raw
		if b.isCall {
			if fixed, err := b.withCall(b.call, true); err == nil && fixed != raw {
				raw, asWritten = fixed, false
			}
		}
		contents = append(contents, raw)
	}
	content := codec.Array(contents)
	if asWritten {
		content = a.root.Get("content").Raw()
	}
	raw := codec.Object(kv("role", `"assistant"`), kv("content", content))
	h.native = middleware.Native{Dialect: dialect, Raw: raw, Ref: h}
	h.group = &group{raw: raw, shares: 1}
	if len(contents) == 0 {
		h.group = nil // no message that a request could hold
	}
	a.is.Message, a.is.FinishReason, a.is.Usage = h.is, finishOf(a.stop), a.figures.usage()
	resp := a.is.Clone()
	resp.Message, resp.Native = h.neutral(), &a.native
	return resp
}

// EncodeResponse is part of wire.Codec.
func (Format) EncodeResponse(resp *middleware.Response) ([]byte, error) {
	a, err := codec.Handle(resp.Native, dialect, readAnswer)
	switch {
	case err != nil:
		return nil, codec.Unencodablef("a Native that holds no answer")
	case a == nil:
		return nil, codec.Unencodablef("an answer of another format")
	}
	body, err := a.write(resp)
	return []byte(body), err
}

// readAnswer decodes an answer that comes from storage.
func readAnswer(body string) (*answer, error) {
	resp, err := codec.Decode(Format{}.NewStream(nil, nil), []byte(body))
	if err != nil {
		return nil, err
	}
	return resp.Native.Ref.(*answer), nil
}

// write returns a's body with the changes that resp has.
func (a *answer) write(resp *middleware.Response) (string, error) {
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	if !a.streamed() {
		return a.writeWhole(resp, items)
	}
	edits, err := a.frame(resp, a.figures)
	if err != nil {
		return "", err
	}
	same := len(items) == len(a.blocks)
	for i, it := range items {
		same = same && it.intact() && it.b == a.blocks[i]
	}
	if same && len(edits) == 0 {
		return a.native.Raw, nil
	}
	return a.compose(items, edits, 0, true)
}

// items returns what the answer is to hold, in the order of the wire.
func (a *answer) items(resp *middleware.Response) ([]item, error) {
	m := resp.Message
	switch {
	case m.Role != middleware.RoleAssistant, m.ToolCallID != "", m.ToolName != "", m.IsError:
		return nil, codec.Unencodablef("an answer that is not the assistant's")
	case len(resp.Choices) > 0:
		return nil, codec.Unencodablef("a second choice")
	}
	return arranged(adopted(m, a.is.Message), a.home)
}

// writeWhole writes an answer that is no stream.
func (a *answer) writeWhole(resp *middleware.Response, items []item) (string, error) {
	contents := make([]string, len(items))
	for i, it := range items {
		var err error
		if contents[i], err = it.answered(); err != nil {
			return "", err
		}
	}
	p := codec.NewPatch(a.root)
	if more := codec.Splice(a.root.Get("content"), contents); len(more) > 0 {
		_, err := codec.Only(a.root, "content")
		p.Add(more, err)
	}
	if stop := a.stopNow(resp); stop != a.stop {
		p.Set("stop_reason", stopText(stop))
	}
	if resp.Model != a.is.Model {
		p.Set("model", quote(resp.Model))
	}
	p.Add(a.figures.edits(a.root.Get("usage"), resp.Usage))
	edits, err := p.Edits()
	if err != nil {
		return "", err
	}
	if edits, err = a.event.Edits(edits); err != nil {
		return "", err
	}
	return codec.Apply(a.native.Raw, edits)
}

// stopNow returns the provider's word for the finish reason of resp. Where
// calls came or went and nobody said more, it follows them, but for a message
// that was cut off.
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

// frame returns the edits of the events around the content, by event. A reader
// of the stream has the figures so in the end.
func (a *answer) frame(resp *middleware.Response, so figures) (map[int][]rawjson.Edit, error) {
	patches := map[int]*codec.Patch{}
	of := func(i int) (*codec.Patch, rawjson.Value) {
		root := a.data(i)
		if patches[i] == nil {
			patches[i] = codec.NewPatch(root)
		}
		return patches[i], root
	}
	if resp.Model != a.is.Model {
		p, root := of(a.start)
		p.Add(codec.SetAll(root.Get("message"), kv("model", quote(resp.Model))))
	}
	if stop := a.stopNow(resp); stop != a.stop {
		if a.delta < 0 {
			return nil, codec.Unencodablef("a finish reason where none is given")
		}
		p, root := of(a.delta)
		if delta := root.Get("delta"); delta.Kind() == rawjson.Object {
			p.Add(codec.SetAll(delta, kv("stop_reason", stopText(stop))))
		} else {
			p.Set("delta", codec.Object(kv("stop_reason", stopText(stop))))
		}
	}
	if a.counts >= 0 {
		p, root := of(a.counts)
		p.Add(so.edits(root.Get("usage"), resp.Usage))
	}
	edits := map[int][]rawjson.Edit{}
	for i, p := range patches {
		more, err := p.Edits()
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			edits[i] = more
		}
	}
	return edits, nil
}

// stopText returns a stop_reason as JSON.
func stopText(stop string) string {
	if stop == "" {
		return "null"
	}
	return quote(stop)
}
