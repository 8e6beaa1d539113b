package responses

import (
	"cmp"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// tape is a stream on its way out: it begins with events of a recording and goes
// on with events that are written afresh. The manner of the recording is kept
// throughout, as a client may go by any of it: whether events have names, numbers and
// an output_index, and whether lines end with carriage returns alone.
type tape struct {
	*recording
	out      strings.Builder
	head     rawjson.Value // the response that the client has seen begin
	begun    bool          // the answer has begun
	named    bool          // events have a name line
	numbered bool          // events have a sequence_number
	bare     bool          // events of items have no output_index
	returns  bool          // lines end with carriage returns alone
	number   int64         // the next one
	moved    bool          // the numbers of what follows have changed
	index    int64         // the output_index of the next item
	shown    []int         // the flows that have begun
	has      map[int]bool  // the same
}

// newTape returns an empty tape for events in the manner of those of r, numbered
// on from the first of them.
func newTape(r *recording) *tape {
	t := &tape{recording: r, has: map[int]bool{}}
	t.returns = len(r.events) > 0 && strings.HasSuffix(r.buf.Text()[:r.events[0].End], "\r")
	for _, ev := range r.events {
		t.named = t.named || ev.Name != ""
		t.bare = t.bare || ev.flow >= 0 && !ev.root.Get("output_index").Exists()
		if n := ev.root.Get("sequence_number"); n.Kind() == rawjson.Number && !t.numbered {
			t.numbered, t.number = true, codec.Int(n)
		}
	}
	return t
}

// Rest is part of codec.Stream.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	out, err := s.rest(sent, resp)
	return []byte(out), unencodable(err)
}

// rest is Rest. What was shown of an answer cannot change any more, so that an
// edit has to lie behind it.
func (s *stream) rest(sent int, resp *middleware.Response) (string, error) {
	text := s.buf.Text()
	if sent < 0 || sent > len(text) || sent > 0 && s.buf.IsWhole() {
		return "", codec.Unencodablef("a rest after bytes that were not to be shown")
	}
	a, err := lens.Answer(on, resp, readBody)
	if err != nil {
		return "", err
	}
	if sent > 0 && resp.Native.Raw != text {
		return s.splice(sent, a, resp)
	}
	out, err := a.encode(resp)
	switch {
	case err != nil:
		return "", err
	case !strings.HasPrefix(out, text[:sent]):
		return s.behind(sent, out)
	}
	return out[sent:], nil
}

// splice returns what makes one stream of the first sent bytes and a later
// answer. Items that were begun are finished; the later items follow, numbered
// on; the end is the later answer's, under the id that the client has seen. Its
// output begins with the items that were shown, so that history has what the
// user has read, but for the reasoning at their end: it led to what was rejected,
// and the provider refuses it without that.
func (s *stream) splice(sent int, a *answer, resp *middleware.Response) (string, error) {
	n := slices.IndexFunc(s.events, func(ev event) bool { return ev.End > sent })
	if n < 0 {
		n = len(s.events)
	}
	if n < len(s.events) && s.events[n].Start < sent && !s.events[n].root.Exists() {
		n++ // in the middle of what is not JSON
	} else if n > 0 && s.events[n-1].End != sent {
		n = len(s.events) + 1
	}
	if len(resp.Choices) > 0 || n > len(s.events) || n > s.last && s.last >= 0 {
		return "", codec.Unencodablef("a rest after bytes that were not to be shown")
	}
	items, err := a.turn.write(resp.Message, true, "")
	if err != nil {
		return "", err
	}
	t := newTape(s.recording)
	for _, ev := range s.events[:n] {
		t.seen(ev)
	}
	if err := t.finish(n, n); err != nil {
		return "", err
	}
	shown, err := t.history()
	if err != nil {
		return "", err
	}
	if err = t.follow(a, resp, items, shown); err == nil {
		_, err = showsCalls(s.buf.Text()[:sent]+t.out.String(), resp.Message)
	}
	return t.out.String(), err
}

// seen takes note of an event that stands on the tape: of the number and the
// output_index that come next, and of the items that have begun.
func (t *tape) seen(ev event) {
	if ev.head && !t.begun {
		t.begun, t.head = true, ev.root.Get("response")
	}
	if n := ev.root.Get("sequence_number"); n.Kind() == rawjson.Number {
		t.number = codec.Int(n) + 1
	}
	if ev.flow >= 0 && !t.has[ev.flow] {
		t.index = max(t.index, t.flows[ev.flow].index+1)
		t.shown, t.has[ev.flow] = append(t.shown, ev.flow), true
	}
}

// keep copies an event as it is, but for the model's name, which stands in the
// response objects of the first events.
func (t *tape) keep(ev event, was, model string) error {
	t.seen(ev)
	var edits []rawjson.Edit
	if env := ev.root.Get("response"); ev.head && model != was && env.Get("model").Exists() {
		var err error
		if edits, err = on.Put(env, lens.Text("model", model)); err != nil {
			return err
		}
	}
	return t.copy(ev, t.buf.Text(), edits)
}

// lineEnd returns the end of the lines of new events.
func (t *tape) lineEnd() string {
	if t.returns {
		return "\r"
	}
	return "\n"
}

// copy writes an event of the stream text with edits of its data.
func (t *tape) copy(ev event, text string, edits []rawjson.Edit) error {
	edits, err := ev.Edits(edits)
	if err != nil {
		return err
	}
	out, err := codec.Apply(text[ev.Start:ev.End], codec.Shift(edits, -ev.Start))
	t.out.WriteString(out)
	if !strings.HasSuffix(out, t.lineEnd()+t.lineEnd()) && !strings.HasSuffix(out, "\n\r\n") { // the last one may lack its end
		t.out.WriteString(t.lineEnd() + t.lineEnd())
	}
	return err
}

// finish copies what the recording has, from event n on, of the items that have
// begun, under other numbers; before the event end also what is of no item, such
// as comments and events that the format does not define.
func (t *tape) finish(n, end int) error {
	for i := n; i < len(t.events); i++ {
		ev := t.events[i]
		if ev.flow < 0 && i >= end || ev.flow >= 0 && !t.has[ev.flow] {
			continue
		}
		var edits []rawjson.Edit
		if ev.root.Get("sequence_number").Exists() {
			var err error
			if edits, err = on.Put(ev.root, lens.Raw("sequence_number", codec.Count(t.number))); err != nil {
				return err
			}
			t.number++
		}
		if err := t.copy(ev, t.buf.Text(), edits); err != nil {
			return err
		}
	}
	return nil
}

// history ends the items that have begun and returns those that belong into
// history. A call cannot be among them, as none is ever shown before it is validated;
// an item that was announced and that the recording never ends cannot be ended
// either, because the rest of it is not known.
func (t *tape) history() ([]string, error) {
	var raws []string
	var values []rawjson.Value
	last := 0
	for _, at := range t.shown {
		f := t.flows[at]
		v := f.done
		if !v.Exists() {
			v = f.end
			t.write("response.output_item.done", lens.Raw("output_index", codec.Count(f.index)), lens.Raw("item", v.Raw()))
		}
		if !v.Exists() || f.isCall() {
			return nil, codec.Unencodablef("an item that was shown and never finished")
		}
		raws, values = append(raws, v.Raw()), append(values, v)
		if f.sort != isReasoning {
			last = len(raws)
		}
	}
	if _, err := readAnswer(values, false); err != nil {
		return nil, codec.Unencodablef("an item that was shown and is none")
	}
	return raws[:last], nil
}

// follow writes an answer behind what stands on the tape: its beginning, if there
// is none yet, its items and its end. shown are the items of before in its output.
func (t *tape) follow(a *answer, resp *middleware.Response, items []written, shown []string) error {
	if !t.begun {
		members := []lens.Member{lens.Text("status", "in_progress"), lens.Raw("output", "[]")}
		if resp.Model != a.is.Model {
			members = append(members, lens.Text("model", resp.Model))
		}
		raw, err := on.Set(a.env, members...)
		if err != nil {
			return err
		}
		t.write("response.created", lens.Raw("response", raw))
	}
	t.moved = true
	for _, o := range items {
		if err := t.item(o.raw); err != nil {
			return err
		}
	}
	return t.end(a, resp, items, shown)
}

// end writes the end of an answer, and what follows it there. The answer is the
// one whose beginning was shown: clients refuse the end of another.
func (t *tape) end(a *answer, resp *middleware.Response, items []written, shown []string) error {
	var identity []lens.Member
	for _, key := range []string{"id", "created_at"} {
		if first := t.head.Get(key); first.Exists() && first.Raw() != a.env.Get(key).Raw() {
			identity = append(identity, lens.Raw(key, first.Raw()))
		}
	}
	edits, status, err := a.edits(resp, items, shown, identity...)
	if err != nil {
		return err
	}
	if a.last < 0 { // no stream
		if cmp.Or(status, a.env.Get("status").Str()) != "incomplete" {
			status = "completed"
		} else {
			status = "incomplete"
		}
		raw, err := codec.Within(a.env, edits)
		t.write("response."+status, lens.Raw("response", raw))
		return err
	}
	ev := a.events[a.last]
	edit := on.Edit(ev.root)
	edit.Add(edits, nil)
	if t.moved && ev.root.Get("sequence_number").Exists() {
		edit.Put(lens.Raw("sequence_number", codec.Count(t.number)))
	}
	if status == "" {
		if edits, err = edit.Edits(); err == nil {
			err = t.copy(ev, a.buf.Text(), edits)
		}
	} else {
		edit.Put(lens.Text("type", "response."+status))
		var data string
		if data, err = edit.Text(); err == nil {
			t.data("response."+status, data)
		}
	}
	for _, ev := range a.events[a.last+1:] {
		if err == nil {
			err = t.copy(ev, a.buf.Text(), nil)
		}
	}
	return err
}

// write writes a new event, with the next number if events have one.
func (t *tape) write(typ string, members ...lens.Member) {
	all := []lens.Member{lens.Text("type", typ)}
	if t.numbered {
		all = append(all, lens.Raw("sequence_number", codec.Count(t.number)))
		t.number++
	}
	t.moved = true
	for _, m := range members {
		if !t.bare || m.Key != "output_index" {
			all = append(all, m)
		}
	}
	t.data(typ, on.Object(all...))
}

// data writes the data of a new event, in the manner of the stream: with a name line
// if events have one.
func (t *tape) data(typ, data string) {
	if t.named {
		t.out.WriteString("event: " + typ + t.lineEnd())
	}
	t.out.WriteString("data: " + codec.OneLine(data) + t.lineEnd() + t.lineEnd())
}

// item unfolds an item into its events, as the provider does: announced without
// what follows, then piece by piece, then whole.
func (t *tape) item(raw string) error {
	v, err := codec.ParseObject(raw)
	if err != nil {
		return err
	}
	bare, err := announced(v)
	if err != nil {
		return err
	}
	index := lens.Raw("output_index", codec.Count(t.index))
	place := []lens.Member{lens.Raw("item_id", textOr(v.Get("id"), `""`)), index}
	t.write("response.output_item.added", index, lens.Raw("item", bare))
	typ := v.Get("type").Str()
	switch f, isACall := calls[typ]; {
	case typ == "message" || typ == "reasoning":
		for _, key := range []string{"summary", "content"} {
			i := int64(0)
			for b := range v.Get(key).Each() {
				t.block(place, key, i, b)
				i++
			}
		}
	case isACall && f.kind != middleware.KindBuiltin:
		event, args := "response.function_call_arguments", textOr(v.Get(f.args[0]), `""`)
		if f.kind == middleware.KindCustom {
			event = "response.custom_tool_call_input"
		}
		t.write(event+".delta", slices.Concat(place, []lens.Member{lens.Raw("delta", args)})...)
		t.write(event+".done", slices.Concat(place, []lens.Member{lens.Raw(f.args[0], args)})...)
	}
	t.write("response.output_item.done", index, lens.Raw("item", raw))
	t.index++
	return nil
}

// textOr returns the JSON text of v, if v is a string, else other, a JSON text as
// well.
func textOr(v rawjson.Value, other string) string {
	if v.Kind() == rawjson.String {
		return v.Raw()
	}
	return other
}

// block unfolds one block of a message or of reasoning: the part without its text,
// the text in one delta, the text again, the part with its text. What has no text
// comes as a part alone. place says of which item the block is, list in which member
// of it, and i at which index.
func (t *tape) block(place []lens.Member, list string, i int64, b rawjson.Value) {
	typ := b.Get("type").Str()
	key, event, part, counter := textMember(typ), "response."+typ, "response.content_part", "content_index"
	if list == "summary" {
		event, part, counter = "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"
	}
	write := func(typ string, members ...lens.Member) {
		t.write(typ, slices.Concat(place, []lens.Member{lens.Raw(counter, codec.Count(i))}, members)...)
	}
	whole, text := lens.Raw("part", b.Raw()), textOr(b.Get(key), `""`)
	if key == "" || event == "response.text" {
		write(part+".added", whole)
		write(part+".done", whole)
		return
	}
	annotations, probs := lens.None("annotations"), lens.None("logprobs")
	if typ == "output_text" {
		annotations.Raw, probs.Raw = "[]", "[]"
	}
	write(part+".added", lens.Raw("part", on.Object(lens.Text("type", typ), lens.Text(key, ""), annotations)))
	write(event+".delta", lens.Raw("delta", text), probs)
	write(event+".done", lens.Raw(key, text), probs)
	write(part+".done", whole)
}
