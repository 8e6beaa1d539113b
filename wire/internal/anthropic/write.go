package anthropic

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// given is what a client has of a stream. The zero given is nothing.
type given struct {
	begun   bool    // message_start
	named   bool    // its events have names
	figures figures // those of message_start
	blocks  []givenBlock
}

// givenBlock is what a client has of a block. In what was given, the index of a block is
// its place.
type givenBlock struct {
	v     rawjson.Value // the block so far
	input string        // of the pieces of its input
	ended bool
}

// Rest returns what follows the first sent bytes so that the client reads resp, the answer
// of s, perhaps with changes behind what was shown, or a later answer, which follows as
// further blocks of the message that was begun.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	a, err := lens.Answer(on, resp, readAnswer)
	if err != nil {
		return nil, err
	}
	own := on.Raw(resp.Native) == s.Text()
	switch {
	case own && a.plain && codec.SameResponse(&a.is, resp):
		return []byte(a.text[sent:]), nil
	case sent == 0:
		return Format{}.EncodeResponse(resp)
	}
	g, err := s.given(sent)
	if err != nil {
		return nil, err
	}
	out, err := a.events(resp, g, own)
	return []byte(out), err
}

// given returns what the client has after the first sent bytes.
func (s *stream) given(sent int) (g given, err error) {
	if out, safe, _ := s.Shown(); sent != safe || !s.Marked() {
		s = newStream(false)
		if _, err := s.Write([]byte(out[:sent])); err != nil {
			return g, err
		}
		s.Mark()
	}
	g = given{begun: s.marked.begun, named: s.named, figures: s.marked.figures}
	for _, b := range s.blocks[:s.marked.blocks] {
		text, input, err := b.text(true)
		if err != nil {
			return g, err
		}
		v, err := codec.ParseObject(text)
		if err != nil {
			return g, err
		}
		g.blocks = append(g.blocks, givenBlock{v, input, b.shown.ended})
	}
	return g, nil
}

// events writes resp, which a is the answer behind, as what follows g in a stream: of this
// answer if own, else of an earlier one. A later answer brings no reasoning behind blocks
// of the earlier one, because the provider refuses a history in which reasoning of two
// answers meets.
func (a *answer) events(resp *middleware.Response, g given, own bool) (string, error) {
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	root, err := codec.ParseObject(a.object)
	if err != nil {
		return "", err
	}
	w := writer{named: g.named || !g.begun}
	if !g.begun {
		start := []lens.Member{lens.Raw("content", "[]"), lens.Raw("stop_reason", "null")}
		if resp.Model != a.is.Model {
			start = append(start, lens.Text("model", resp.Model))
		}
		message, err := on.Set(root, start...)
		if err != nil {
			return "", err
		}
		w.event("message_start", lens.Raw("message", message))
	}
	if !own {
		for n, b := range g.blocks {
			if !b.ended && b.v.Get("type").Str() != "text" { // it would be there without its end: reasoning unsigned, a call cut off
				return "", codec.Unencodablef("another answer behind a block that was shown in part, and is not text")
			}
			if !b.ended {
				w.blockEvent("content_block_stop", n)
			}
		}
	}
	next := len(g.blocks)
	for i, it := range items {
		raw, err := it.text()
		if err != nil {
			return "", err
		}
		v, err := codec.ParseObject(raw)
		switch {
		case err != nil && it.same: // clients skip what is not a block
		case err != nil:
			return "", codec.Unencodablef("a block that is not a JSON object")
		case own && i < len(g.blocks):
			tail, err := w.follow(i, v, g.blocks[i])
			if err != nil {
				return "", err
			}
			if tail == "" {
				break
			}
			if i < len(g.blocks)-1 {
				return "", errShown
			}
			if raw, err = on.Set(v, lens.Raw("text", tail), lens.None("citations")); err != nil {
				return "", err
			}
			if v, err = codec.ParseObject(raw); err != nil {
				return "", err
			}
			fallthrough
		case own || len(g.blocks) == 0 || !isReasoning(v.Get("type").Str()):
			if err := w.block(next, v, it.call); err != nil {
				return "", err
			}
			next++
		}
	}
	if own && len(items) < len(g.blocks) {
		return "", errShown
	}
	err = a.ending(&w, root, resp, g.figures)
	return w.out.String(), err
}

var errShown = codec.Unencodablef("a change of what was shown already")

// ending writes the end of the message. The figures are those of resp for a client that
// has so.
func (a *answer) ending(w *writer, root rawjson.Value, resp *middleware.Response, so figures) error {
	keep := func(key string) lens.Member { return lens.Raw(key, root.Get(key).Raw()) }
	usage, inDelta, beside := a.usage, a.end.delta.list, a.end.beside.list
	if !a.streamed {
		usage, inDelta = root.Get("usage").Raw(), []lens.Member{keep("stop_sequence"), keep("stop_details"), keep("container")}
		beside = []lens.Member{keep("context_management")}
	}
	if v, err := codec.ParseObject(usage); err == nil {
		edits, err := so.over(v).edits(v, resp.Usage)
		if err != nil {
			return err
		}
		if usage, err = codec.Within(v, edits); err != nil {
			return err
		}
	} else {
		usage = ""
	}
	delta := codec.Object(append([]lens.Member{lens.Raw("stop_reason", stopText(a.stopNow(resp)))}, inDelta...)...)
	w.event("message_delta", append([]lens.Member{lens.Raw("delta", delta), lens.Raw("usage", usage)}, beside...)...)
	w.event("message_stop", a.end.stop.list...)
	return nil
}

// text returns it as a block of a history.
func (it item) text() (string, error) {
	switch {
	case it.call == nil && it.same:
		return asBlocks(it.part.Native.Raw)[0], nil
	case it.call == nil:
		return it.partText()
	case !it.same && !utf8.ValidString(it.call.Arguments), it.own != nil && !it.same && it.call.Arguments == "":
		return "", codec.Unencodablef("arguments that a stream has no form for")
	}
	return callText(*it.call, true)
}

// writer writes events.
type writer struct {
	out   strings.Builder
	named bool
}

// event writes an event in the provider's manner: its name, and the same word as the type
// in its data. Behind events without names there is none: a client that goes by names
// would read only those that have one.
func (w *writer) event(kind string, members ...lens.Member) {
	if w.named {
		w.out.WriteString("event: " + kind + "\n")
	}
	data := codec.Object(append([]lens.Member{lens.Text("type", kind)}, members...)...)
	w.out.WriteString("data: " + strings.ToValidUTF8(codec.OneLine(data), "\ufffd") + "\n\n")
}

// blockEvent is event for an event of the block of that index.
func (w *writer) blockEvent(kind string, index int, members ...lens.Member) {
	w.event(kind, append([]lens.Member{lens.Raw("index", codec.Count(int64(index)))}, members...)...)
}

// deltaKinds has the members of blocks that come in deltas, in their order, by the type of
// the block.
var deltaKinds = map[string][]struct{ key, delta, in string }{
	"text":            {{"citations", "citations_delta", "citation"}, {"text", "text_delta", "text"}},
	"thinking":        {{"thinking", "thinking_delta", "thinking"}, {"signature", "signature_delta", "signature"}},
	"tool_use":        {{"input", "input_json_delta", "partial_json"}},
	"server_tool_use": {{"input", "input_json_delta", "partial_json"}},
	"mcp_tool_use":    {{"input", "input_json_delta", "partial_json"}},
}

// delta writes a delta of a block.
func (w *writer) delta(index int, kind, key, raw string) {
	w.blockEvent("content_block_delta", index, lens.Raw("delta", codec.Object(lens.Text("type", kind), lens.Raw(key, raw))))
}

// block writes v as the block of that index: its start without what deltas bring, each of
// those in one piece, and its stop. call is the call that v is, nil for none.
func (w *writer) block(index int, v rawjson.Value, call *middleware.ToolCall) error {
	var start []lens.Member
	var deltas writer
	deltas.named = w.named
	for _, d := range deltaKinds[v.Get("type").Str()] {
		switch m := v.Get(d.key); {
		case d.key == "input":
			start = append(start, lens.Raw("input", "{}"))
			input := m.Raw()
			if call != nil { // whatever the model wrote
				input = call.Arguments
			}
			if input != "" {
				deltas.delta(index, d.delta, d.in, codec.QuoteAsSent(input))
			}
		case m.Kind() == rawjson.Array && !m.Empty():
			start = append(start, lens.Raw(d.key, "[]"))
			for e := range m.Each() {
				deltas.delta(index, d.delta, d.in, e.Raw())
			}
		case m.Str() != "":
			start = append(start, lens.Text(d.key, ""))
			deltas.delta(index, d.delta, d.in, m.Raw())
		}
	}
	raw, err := on.Set(v, start...)
	if err != nil {
		return err
	}
	w.blockEvent("content_block_start", index, lens.Raw("content_block", raw))
	w.out.WriteString(deltas.out.String())
	w.blockEvent("content_block_stop", index)
	return nil
}

// follow writes what of the block v follows g, its beginning, and its stop. tail is text,
// a JSON string, that has to follow in a block of its own, since the block has ended.
func (w *writer) follow(index int, v rawjson.Value, g givenBlock) (tail string, err error) {
	kind := v.Get("type").Str()
	switch {
	case kind != g.v.Get("type").Str():
		return "", errShown
	case deltaKinds[kind] == nil || g.ended && kind != "text":
		if v.Raw() != g.v.Raw() {
			return "", errShown
		}
	}
	for _, d := range deltaKinds[kind] {
		now, was := v.Get(d.key), g.v.Get(d.key)
		switch {
		case g.ended && kind != "text":
		case d.key == "input":
			rest, ok := strings.CutPrefix(now.Raw(), g.input)
			if !ok {
				return "", errShown
			}
			if rest != "" {
				w.delta(index, d.delta, d.in, codec.QuoteAsSent(rest))
			}
		case d.key == "citations":
			had := was.Len()
			for e := range slices.Values(slices.Collect(now.Each())[min(had, now.Len()):]) {
				if g.ended {
					return "", errShown
				}
				w.delta(index, d.delta, d.in, e.Raw())
			}
		default:
			rest, err := left(now, was)
			switch {
			case err != nil:
				return "", err
			case rest == "":
			case g.ended:
				tail = rest
			default:
				w.delta(index, d.delta, d.in, rest)
			}
		}
	}
	if !g.ended {
		w.blockEvent("content_block_stop", index)
	}
	return tail, nil
}

// left returns what of a text follows its beginning, as a JSON string; "" for nothing. The
// two may spell the same text in different ways.
func left(now, was rawjson.Value) (string, error) {
	if rest, ok := strings.CutPrefix(content(now), content(was)); ok {
		if rest == "" {
			return "", nil
		}
		return `"` + rest + `"`, nil
	}
	rest, ok := strings.CutPrefix(now.Str(), was.Str())
	switch {
	case !ok:
		return "", errShown
	case rest == "":
		return "", nil
	}
	return rawjson.Quote(rest), nil
}
