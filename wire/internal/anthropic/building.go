package anthropic

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// building is a block of a stream, of which deltas bring more and more.
type building struct {
	index     int
	start     rawjson.Value // as it stands in content_block_start, or in message_start
	kind      string
	isCall    bool
	early     bool                        // it stands whole in message_start
	ended     bool                        // its content_block_stop has come
	joined    map[string]*strings.Builder // pieces of text, by the member that they are of
	keys      []string                    // of joined, in order
	citations []string
}

// add takes a delta in. Of an unknown kind, its texts are added to the members
// of the same name, as those of all known ones are.
func (b *building) add(delta rawjson.Value, kind string, show func(middleware.EventKind, string) error) error {
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
		return b.shown(delta, "text", middleware.EventText, show)
	case "thinking_delta":
		return b.shown(delta, "thinking", middleware.EventReasoning, show)
	case "input_json_delta":
		piece, err := text(delta, "partial_json")
		b.join("input", piece)
		return err
	case "signature_delta":
		piece, err := text(delta, "signature")
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

func (b *building) shown(delta rawjson.Value, key string, kind middleware.EventKind, show func(middleware.EventKind, string) error) error {
	piece := delta.Get(key).Str()
	b.join(key, piece)
	return show(kind, piece)
}

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

// block returns the whole block, as it would stand in a request.
func (b *building) block(h *home, at int) (*block, error) {
	if b.isCall && b.joined["input"] != nil && !b.bare() && b.start.Get("input").Raw() != b.joined["input"].String() {
		// Some clients put deltas in the place of the input, some behind it.
		return nil, codec.Shapef("a call that starts with other arguments than its deltas bring")
	}
	raw, input, err := b.history()
	if err != nil {
		return nil, codec.Shapef("a block with two members of one name")
	}
	doc, err := codec.Parse(raw)
	if err != nil {
		return nil, err
	}
	out, err := readAnswered(doc.Root(), h, at)
	if out != nil {
		out.early = b.early
	}
	if err == nil && out.isCall && input != "" {
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
// which a request has no place for unless it is an object.
func (b *building) history() (raw, input string, err error) {
	var members []member
	for _, key := range b.keys {
		all := b.joined[key].String()
		if key != "input" {
			members = append(members, kv(key, quote(b.start.Get(key).Str()+all)))
			continue
		}
		object := "{}"
		if input = all; codec.IsObject(all) {
			object = all
		}
		members = append(members, kv("input", object))
	}
	if len(b.citations) > 0 {
		var all []string
		for v := range b.start.Get("citations").Each() {
			all = append(all, v.Raw())
		}
		members = append(members, kv("citations", codec.Array(append(all, b.citations...))))
	}
	if len(members) == 0 {
		return b.start.Raw(), "", nil
	}
	raw, err = edited(b.start, members...)
	return raw, input, err
}

// shown returns what a sink sees of a block that comes at once.
func (b *block) shown() (middleware.EventKind, string) {
	switch b.part.Kind {
	case middleware.PartText:
		return middleware.EventText, b.part.Text
	case middleware.PartReasoning:
		return middleware.EventReasoning, b.part.Text
	}
	return middleware.EventText, ""
}
