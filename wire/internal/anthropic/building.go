package anthropic

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// building is a block of a stream, of which deltas bring more and more:
//
//	{"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": …, "name": …, "input": {}}}
//	{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{\"city\": "}}
//	{"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "\"Oslo\"}"}}
//	{"type": "content_block_stop", "index": 1}
type building struct {
	index     int
	start     rawjson.Value // as it stands in content_block_start, or in message_start
	isCall    bool
	early     bool                        // it stands whole in message_start
	ended     bool                        // its content_block_stop has come
	joined    map[string]*strings.Builder // pieces of text, by the member that they are of
	keys      []string                    // of joined, in order
	citations []string                    // each is whole; they follow those of start
}

// kept returns v in a document of its own: that of an event is not kept.
func kept(v rawjson.Value) (rawjson.Value, error) {
	doc, err := codec.Parse(v.Raw())
	if err != nil {
		return rawjson.Value{}, err
	}
	return doc.Root(), nil
}

// add takes a delta in. Of an unknown kind, its texts are added to the members
// of the same name, as those of all known ones are: so a block of a kind that this
// package does not know is complete in history. Only text and thinking are shown.
func (b *building) add(delta rawjson.Value, kind string, show func(middleware.PartKind, string) error) error {
	if b.isCall && kind != "input_json_delta" {
		return notOfCall(delta)
	}
	switch kind {
	case "citations_delta":
		if c := delta.Get("citation"); c.Kind() == rawjson.Object {
			b.citations = append(b.citations, c.Raw())
		}
		return nil
	case "text_delta":
		return b.shown(delta, "text", middleware.PartText, show)
	case "thinking_delta":
		return b.shown(delta, "thinking", middleware.PartReasoning, show)
	case "input_json_delta":
		piece, err := on.Text(delta, "partial_json")
		if err == nil && delta.Get("partial_json").Kind() != rawjson.String {
			return codec.Shapef("a delta of arguments without its text") // clients in JavaScript would add the word null or undefined
		}
		b.join("input", piece)
		return err
	case "signature_delta":
		piece, err := on.Text(delta, "signature")
		b.join("signature", piece)
		return err
	}
	for m := range delta.Each() {
		if m.Kind() == rawjson.String && m.Key() != "type" {
			b.join(m.Key(), m.Str())
		}
	}
	return nil
}

// fits returns an error where clients give a delta to different blocks: some
// take its index, some the block that started last, and some are done with a
// block at its stop.
func (s *stream) fits(i int, kind string) error {
	b, last := s.open[i], s.open[len(s.open)-1]
	switch {
	case b.early:
		return codec.Shapef("a delta of a block that came whole")
	case b.isCall && b.ended:
		return codec.Shapef("a delta behind the end of a call")
	case b != last && (b.isCall || last.isCall && kind == "input_json_delta"):
		return codec.Shapef("a delta of a block in front of the last one")
	}
	return nil
}

// notOfCall returns an error if a delta of another kind than that of arguments
// has a member that a client may add to a call.
func notOfCall(delta rawjson.Value) error {
	for m := range delta.Each() {
		switch strings.ToLower(m.Key()) {
		case "partial_json", "input", "name", "id":
			return codec.Shapef("a delta of an unknown kind with %s of a call", m.Key())
		}
	}
	return nil
}

// shown joins a piece of a text, and shows it.
func (b *building) shown(delta rawjson.Value, key string, kind middleware.PartKind, show func(middleware.PartKind, string) error) error {
	piece := delta.Get(key).Str()
	b.join(key, piece)
	return show(kind, piece)
}

// join adds a piece to the member key. It copies no text that has come before, so
// that a long answer in short pieces takes linear time.
func (b *building) join(key, piece string) {
	if piece == "" {
		return
	}
	joined := b.joined[key]
	if joined == nil {
		if b.joined == nil {
			b.joined = map[string]*strings.Builder{}
		}
		joined = new(strings.Builder)
		b.joined[key] = joined
		b.keys = append(b.keys, key)
	}
	joined.WriteString(piece)
}

// block returns the whole block, as it would stand in a request, with what the
// model wrote as arguments. The arguments are the joined pieces, byte for byte,
// even if they are no JSON: the validator is to see what was written.
func (b *building) block() (out block, err error) {
	if b.isCall && b.joined["input"] != nil && !b.bare() && b.start.Get("input").Raw() != b.joined["input"].String() {
		// Some clients put deltas in the place of the input, some behind it.
		return out, codec.Shapef("a call that starts with other arguments than its deltas bring")
	}
	if len(b.keys)+len(b.citations) == 0 {
		out, err = readAnswered(b.start)
		out.early = b.early
		return out, err
	}
	text, input, err := b.history()
	if err != nil {
		return out, codec.Shapef("a block with two members of one name")
	}
	doc, err := codec.Parse(text)
	if err != nil {
		return out, err
	}
	out, err = readAnswered(doc.Root())
	if out.isCall && input != "" {
		out.call.Arguments = input
	}
	return out, err
}

// bare reports whether a call starts without arguments, as those in deltas do.
func (b *building) bare() bool {
	v := b.start.Get("input")
	return v.Kind() == rawjson.Invalid || v.Kind() == rawjson.Null || v.Kind() == rawjson.Object && v.Empty() || v.Raw() == `""`
}

// history returns the block's text, and what the model wrote for its input,
// which a request has no place for unless it is an object. input is "" if there
// was no delta for it.
func (b *building) history() (text, input string, err error) {
	var members []lens.Member
	for _, key := range b.keys {
		all := b.joined[key].String()
		if key != "input" {
			members = append(members, lens.Text(key, b.start.Get(key).Str()+all))
			continue
		}
		object := "{}"
		if input = all; codec.IsObject(all) {
			object = all
		}
		members = append(members, lens.Raw("input", object))
	}
	if len(b.citations) > 0 {
		all := lens.Raws(slices.Collect(b.start.Get("citations").Each()))
		members = append(members, lens.List("citations", append(all, b.citations...)))
	}
	text, err = on.Set(b.start, members...)
	return text, input, err
}

// mayBeCall reports whether a block that this package does not take for a call
// looks like one to a client that compares types without case, or that takes a
// block without a type for a call because it has an input. Such an answer is
// unreadable, because clients would run different calls.
func mayBeCall(v rawjson.Value) bool {
	typ := v.Get("type")
	if typ.Kind() == rawjson.String {
		return typ.Str() != "tool_use" && strings.EqualFold(typ.Str(), "tool_use")
	}
	for m := range v.Each() {
		if v.Kind() == rawjson.Object && strings.EqualFold(m.Key(), "input") {
			return true
		}
	}
	return false
}

// holdsCall reports whether a list of content has a call.
func holdsCall(content rawjson.Value) bool {
	for v := range content.Each() {
		if v.Get("type").Str() == "tool_use" || mayBeCall(v) {
			return true
		}
	}
	return false
}
