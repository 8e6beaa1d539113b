package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// behind returns what follows the first sent bytes of s, for an edit of the whole
// stream in which a text changed behind the part that was shown. An edit puts a
// text that changed into the text's first delta. Here that delta holds the rest
// of the text, and everything behind it is numbered anew.
//
//	{"delta": "Let me "} {"delta": "see: x"}    the stream, of which the first delta was shown
//	{"delta": "Let me see."} …                  the edit
//	                     {"delta": "see."} …    what follows
func (s *stream) behind(sent int, out string) (string, error) {
	out, edited, err := s.sameItem(out)
	if err != nil {
		return "", err
	}
	first, end := -1, 0
	for i, ev := range s.events {
		if ev.End > sent {
			break
		}
		if end = i + 1; first < 0 && textOf(ev) != "" {
			first = i
		}
	}
	if first < 0 || s.events[end-1].End != sent || first >= len(edited.events) ||
		out[:edited.events[first].Start] != s.buf.Text()[:s.events[first].Start] {
		return "", codec.Unencodablef("a change of what was shown already")
	}
	shown, at := deltas(s.events[first:end], textOf(s.events[first]))
	full, behind := deltas(edited.events[first:], textOf(s.events[first]))
	rest, ok := strings.CutPrefix(full, shown)
	if !ok || first+at != end || behind == 0 {
		return "", codec.Unencodablef("a change of what was shown already")
	}
	t := newTape(edited.recording)
	for _, ev := range s.events[:end] {
		t.seen(ev)
	}
	later := edited.events[first+behind:]
	if rest != "" {
		later = append([]event{edited.events[first]}, later...)
	}
	for i, ev := range later {
		var members []lens.Member
		if i == 0 && rest != "" {
			members = append(members, lens.Text("delta", rest))
		}
		if ev.root.Get("sequence_number").Exists() {
			members = append(members, lens.Raw("sequence_number", codec.Count(t.number)))
			t.number++
		}
		var edits []rawjson.Edit
		if len(members) > 0 {
			if edits, err = on.Put(ev.root, members...); err != nil {
				return "", err
			}
		}
		if err := t.copy(ev, out, edits); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

// sameItem gives the first text of out, an edit of s, the id that it has in s: an
// edit gives an item that it changes an id of its own, and the client knows the
// first one already.
func (s *stream) sameItem(out string) (string, *stream, error) {
	read := func(text string) (*stream, string, error) {
		edited := newStream(s.req, nil)
		if _, err := codec.Decode(edited, []byte(text)); err != nil {
			return nil, "", codec.Unencodablef("an edit that is not an answer: %v", err)
		}
		return edited, idOfText(edited.events), nil
	}
	edited, id, err := read(out)
	if known := idOfText(s.events); err == nil && id != "" && known != "" && id != known {
		out = strings.ReplaceAll(out, id, known) // with its quotation marks: in a text they would have backslashes
		edited, _, err = read(out)
	}
	return out, edited, err
}

// idOfText returns the id of the item of the first delta of a text, as JSON.
func idOfText(events []event) string {
	for _, ev := range events {
		if textOf(ev) != "" {
			return ev.root.Get("item_id").Raw()
		}
	}
	return ""
}

// textOf returns where the text of a delta belongs; "" for any other event.
func textOf(ev event) string {
	if ev.root.Get("type").Str() != "response.output_text.delta" {
		return ""
	}
	return ev.root.Get("item_id").Raw() + " " + ev.root.Get("output_index").Raw() + " " + ev.root.Get("content_index").Raw()
}

// deltas joins the deltas of one place that events begin with, and returns their number.
func deltas(events []event, of string) (text string, n int) {
	for n < len(events) && textOf(events[n]) == of {
		text += events[n].root.Get("delta").Str()
		n++
	}
	return text, n
}
