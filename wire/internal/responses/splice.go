package responses

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// Rest is part of codec.Stream.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	out, err := Format{}.EncodeResponse(resp)
	switch {
	case err != nil || sent == 0:
		return out, err
	case s.buf.IsWhole() || sent < 0 || sent > len(s.buf.Text()):
		return nil, codec.Unencodablef("a rest after bytes that were not to be shown")
	}
	shown := s.buf.Text()[:sent]
	if own := resp.Native.Ref == any(s.answer); own || resp.Native.Ref == nil && resp.Native.Raw == s.buf.Text() {
		if len(out) < sent || string(out[:sent]) != shown {
			return nil, codec.Unencodablef("a change of what was shown already")
		}
		return out[sent:], nil
	}
	later := Format{}.NewStream(nil, nil).(*stream)
	if _, err := codec.Decode(later, out); err != nil {
		return nil, codec.Unencodablef("an answer that cannot follow another: %v", err)
	}
	rest, err := s.splice(sent, later)
	return []byte(rest), err
}

// splice returns what makes one stream of the first sent bytes and a later
// answer. Items that were begun are finished; the later items follow, numbered
// on; the end is the later answer's, under the id that the client has seen. Its
// output begins with the items that were shown, so that history has
// what the user has read, but for the reasoning at their end: it led to what
// was rejected, and the provider refuses it without that.
func (s *stream) splice(sent int, later *stream) (string, error) {
	n := slices.IndexFunc(s.events.all, func(ev event) bool { return ev.End > sent })
	if n < 0 {
		n = len(s.events.all)
	}
	if n < len(s.events.all) && s.events.all[n].Start < sent && !s.events.all[n].root.Exists() {
		n++ // in the middle of what is no JSON
	} else if n > 0 && s.events.all[n-1].End != sent {
		n = len(s.events.all) + 1
	}
	if n > len(s.events.all) || n > s.events.last && s.events.last >= 0 {
		return "", codec.Unencodablef("a rest after bytes that were not to be shown")
	}
	t := newTape(s.events.all)
	t.next = -1
	begun := false
	for _, ev := range s.events.all[:n] {
		if ev.head && !begun {
			begun, t.head = true, ev.root.Get("response")
		}
		if k := ev.root.Get("sequence_number"); k.Kind() == rawjson.Number {
			t.number = codec.Int(k) + 1
		}
	}
	shown, err := s.finishShown(t, n)
	if err != nil {
		return "", err
	}
	if later.answer.stream == nil {
		err = t.object(later.answer, begun, shown)
	} else {
		err = t.events(later, begun, shown)
	}
	return t.out.String(), err
}

// finishShown writes what is missing of the items that the first n events have
// begun, and returns those that belong into history.
func (s *stream) finishShown(t *tape, n int) ([]string, error) {
	var shown []int
	seen := map[int]bool{}
	for _, ev := range s.events.all[:n] {
		if ev.flow >= 0 && !seen[ev.flow] {
			seen[ev.flow] = true
			shown = append(shown, ev.flow)
			t.index = max(t.index, int(s.events.flows[ev.flow].index)+1)
		}
	}
	for _, ev := range s.events.all[n:] {
		if ev.flow >= 0 && seen[ev.flow] {
			if err := t.copy(s.buf.Text(), ev, 0, -1, nil); err != nil {
				return nil, err
			}
		}
	}
	final := map[int]int{} // where in the answer a flow is
	if s.answer != nil {
		for i, at := range s.answer.kept {
			final[at] = i
		}
	}
	var raws []string
	var items []rawjson.Value
	for _, at := range shown {
		f := s.events.flows[at]
		v := f.done
		if i, ok := final[at]; ok && !v.Exists() {
			v = s.answer.msg.items[i].val // as the end has it
		}
		if !v.Exists() || f.isCall() {
			return nil, codec.Unencodablef("an item that was shown and never finished")
		}
		if !f.done.Exists() {
			t.write("response.output_item.done", codec.Member{Key: "output_index", Raw: codec.Count(f.index)}, codec.Member{Key: "item", Raw: v.Raw()})
		}
		raws, items = append(raws, v.Raw()), append(items, v)
	}
	if _, err := readTurn(slices.Values(items), "", true); err != nil {
		return nil, codec.Unencodablef("an item that was shown and is none")
	}
	for len(shown) > 0 && s.events.flows[shown[len(shown)-1]].it.sort == isReasoning {
		shown = shown[:len(shown)-1]
	}
	return raws[:len(shown)], nil
}

// events writes a later stream behind what was shown.
func (t *tape) events(later *stream, begun bool, shown []string) error {
	base := t.index
	for i, ev := range later.events.all {
		index := -1
		var edits []rawjson.Edit
		switch {
		case ev.head && begun:
			continue
		case ev.flow >= 0:
			index = base + int(later.events.flows[ev.flow].index)
		case i == later.events.last:
			env := ev.root.Get("response")
			same, err := t.identity(env)
			if err != nil {
				return err
			}
			edits = append(before(env, shown), same...)
		}
		if err := t.copy(later.buf.Text(), ev, 0, index, edits); err != nil {
			return err
		}
	}
	return nil
}

// identity makes the response env the one whose beginning was shown: clients
// refuse the end of another.
func (t *tape) identity(env rawjson.Value) ([]rawjson.Edit, error) {
	var members []codec.Member
	for _, key := range []string{"id", "created_at"} {
		if first := t.head.Get(key); first.Exists() && first.Raw() != env.Get(key).Raw() {
			members = append(members, codec.Member{Key: key, Raw: first.Raw()})
		}
	}
	return codec.SetAll(env, members...)
}

// before puts items at the front of a response object's output, unless that is
// empty though there were items: then clients take no notice of it.
func before(env rawjson.Value, items []string) []rawjson.Edit {
	output := env.Get("output")
	if output.Kind() != rawjson.Array || output.Empty() || len(items) == 0 {
		return nil
	}
	for v := range output.Each() {
		items = append(items, v.Raw())
	}
	return codec.Splice(output, items)
}

// object writes a later answer that is no stream behind what was shown.
func (t *tape) object(later *answer, begun bool, shown []string) error {
	if !begun {
		bare, err := codec.SetAll(later.env, member("status", "in_progress"), codec.Member{Key: "output", Raw: "[]"})
		if err != nil {
			return err
		}
		raw, err := codec.Within(later.env, bare)
		if err != nil {
			return err
		}
		t.write("response.created", codec.Member{Key: "response", Raw: raw})
	}
	for _, it := range later.msg.items {
		if err := t.item(it.val.Raw()); err != nil {
			return err
		}
	}
	same, err := t.identity(later.env)
	if err != nil {
		return err
	}
	raw, err := codec.Within(later.env, append(before(later.env, shown), same...))
	if err != nil {
		return err
	}
	typ := "response.completed"
	if later.env.Get("status").Str() == "incomplete" {
		typ = "response.incomplete"
	}
	t.write(typ, codec.Member{Key: "response", Raw: raw})
	return nil
}
