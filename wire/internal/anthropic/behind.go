package anthropic

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// behind returns what follows the first sent bytes of a stream, for out, an edit of the
// whole stream in which a text changed behind the part that was shown. An edit
// puts a text that changed into the text's first delta. Here that delta holds
// the rest of the text.
//
//	{"text": "Let me "} {"text": "see: x"}    the stream, of which the first delta was shown
//	{"text": "Let me see."} …                 the edit
//	                    {"text": "see."} …    what follows
func behind(text string, sent int, out string) (string, error) {
	refused := codec.Unencodablef("what was shown cannot be taken back")
	was, err := eventsOf(text[:sent])
	if err != nil {
		return "", err
	}
	now, err := eventsOf(out)
	if err != nil {
		return "", err
	}
	first := 0
	for first < len(was) && textOf(was[first]) == "" {
		first++
	}
	if first >= len(was) || first >= len(now) || out[:now[first].Event.Start] != text[:was[first].Event.Start] {
		return "", refused
	}
	block := textOf(was[first])
	shown, n := deltas(was[first:], block)
	full, replaced := deltas(now[first:], block)
	rest, ok := strings.CutPrefix(full, shown)
	if !ok || first+n != len(was) || was[len(was)-1].Event.End != sent || replaced == 0 {
		return "", refused
	}
	end := now[first+replaced-1].Event.End
	if rest == "" {
		return out[end:], nil
	}
	delta := now[first]
	edits, err := on.Put(delta.Root().Get("delta"), lens.Text("text", rest))
	if err != nil {
		return "", err
	}
	if edits, err = delta.Event.Edits(edits); err != nil {
		return "", err
	}
	from := delta.Event.Start
	piece, err := rawjson.Apply(out[from:delta.Event.End], codec.Shift(edits, -from))
	return piece + out[end:], err
}

// eventsOf returns the events of a stream whose data are JSON.
func eventsOf(text string) ([]*lens.Chunk, error) {
	var all []*lens.Chunk
	err := codec.Each(text, func(e codec.Event) error {
		doc, err := codec.Parse(e.Data)
		if err == nil && doc.Root().Kind() == rawjson.Object {
			all = append(all, &lens.Chunk{Event: e, Doc: doc})
		}
		return nil
	})
	return all, err
}

// textOf returns the index of the block that a piece of a text belongs to; "" for any
// other event.
func textOf(c *lens.Chunk) string {
	if c.Root().Get("type").Str() != "content_block_delta" || c.Root().Get("delta").Get("type").Str() != "text_delta" {
		return ""
	}
	return c.Root().Get("index").Raw()
}

// deltas joins the pieces of the text of a block that events begin with, and
// returns their number.
func deltas(events []*lens.Chunk, block string) (text string, n int) {
	for n < len(events) && textOf(events[n]) == block {
		text += events[n].Root().Get("delta").Get("text").Str()
		n++
	}
	return text, n
}
