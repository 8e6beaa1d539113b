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

// given is what a client has of a stream, and how that stream read on.
type given struct {
	beginning
	items []givenItem
}

// givenItem is an item that the client has at least the beginning of.
type givenItem struct {
	at    int // its place in the stream
	index int64
	sort  sort
	progress
	final  rawjson.Value // the item, as the stream read on; absent if it never ended
	goesOn string        // the item that it becomes, as JSON; "": none of the answer's own
}

// given returns what the client has after the first sent bytes.
func (s *stream) given(sent int) (*given, error) {
	from, err := codec.Given(s, newStream(false), sent)
	if err != nil {
		return nil, err
	}
	g, final := &given{beginning: from.marked}, map[int]rawjson.Value{}
	if s.answer != nil {
		for i, at := range s.answer.from {
			final[at] = s.answer.turn.items[i].val
		}
	}
	for i, it := range from.items[:from.marked.itemCount] {
		has := givenItem{at: i, index: it.index, sort: it.sort, progress: it.progress, final: final[i]}
		if it.epoch == from.epoch {
			has.progress = it.before
		}
		if !has.final.Exists() {
			v, err := s.items[i].value(rawjson.Value{})
			if err != nil {
				return nil, err
			}
			has.final = v
		}
		g.items = append(g.items, has)
	}
	slices.SortStableFunc(g.items, func(a, b givenItem) int { return cmp.Compare(a.index, b.index) })
	return g, nil
}

// Rest returns what completes a stream of which the client has a part. resp is the answer of s, perhaps with changes behind
// what was shown, or a later answer: its items follow, numbered on, and its end, under
// the id that the client has seen.
func (s *stream) Rest(sent int, resp *middleware.Response) ([]byte, error) {
	return lens.Rest(on, &s.Units, sent, resp, readBody, s.given)
}

// Stream writes the answer, with what differs in resp, as a stream behind what is given,
// of this answer if own, else of an earlier one. Items that were begun are finished. The
// end names the items that were shown, so that history has what the user has read, and
// those that follow them.
func (a *answer) Stream(resp *middleware.Response, g *given, own bool) (string, error) {
	if g == nil {
		g = &given{}
	}
	items, err := a.items(resp)
	if err != nil {
		return "", err
	}
	t := tape{beginning: g.beginning, ids: map[string]bool{}}
	if !t.begun {
		t.named, t.numbered = true, true
	}
	if t.head == "" {
		if err := t.created(a, resp); err != nil {
			return "", err
		}
	}
	var output []string
	if own {
		items = a.begun(g, items)
	}
	for _, has := range g.items {
		raw := has.goesOn
		if raw == "" && (!own || has.sort == isReasoning) && has.final.Exists() {
			raw = has.final.Raw()
		}
		if raw, err = t.item(raw, has); err != nil {
			return "", err
		}
		output = append(output, raw)
	}
	for _, o := range items {
		if !strings.HasPrefix(o.raw, "{") {
			continue // no item, and no event could bring it
		}
		raw, err := t.item(o.raw, givenItem{at: -1, index: t.index})
		if err != nil {
			return "", err
		}
		output = append(output, raw)
	}
	return t.end(a, resp, output)
}

// begun notes which of items, the items of the stream itself, go on with what is given, and
// returns the others. A text that was written anew goes on with the text that was begun.
func (a *answer) begun(g *given, items []written) (others []written) {
	at := map[int]*givenItem{}
	for i := range g.items {
		at[g.items[i].at] = &g.items[i]
	}
	for _, o := range items {
		if o.from >= 0 && o.from < len(a.from) && at[a.from[o.from]] != nil {
			at[a.from[o.from]].goesOn = o.raw
		} else {
			others = append(others, o)
		}
	}
	i := 0
	return slices.DeleteFunc(others, func(o written) bool {
		for ; i < len(g.items); i++ {
			if has := &g.items[i]; has.goesOn == "" && has.sort == isMessage && has.done == "" {
				break
			}
		}
		if o.from >= 0 || o.sort != isMessage || i == len(g.items) {
			return false
		}
		v, _ := codec.ParseObject(o.raw)
		raw, err := on.Set(v, lens.Raw("id", cmp.Or(g.items[i].final.Get("id").Raw(), v.Get("id").Raw())))
		g.items[i].goesOn = raw
		return err == nil
	})
}

// tape is a stream on its way out, behind what a client has.
type tape struct {
	beginning
	out   strings.Builder
	index int64           // the output_index of the next item
	ids   map[string]bool // of the items so far
}

// write writes an event, with a name and the next number if events have them.
func (t *tape) write(typ string, members ...lens.Member) {
	all := []lens.Member{lens.Text("type", typ)}
	if t.numbered {
		all = append(all, lens.Raw("sequence_number", codec.Count(t.next)))
		t.next++
	}
	if t.named {
		t.out.WriteString("event: " + typ + "\n")
	}
	t.out.WriteString("data: " + codec.OneLine(on.Object(append(all, members...)...)) + "\n\n")
}

// created writes the event that opens the stream.
func (t *tape) created(a *answer, resp *middleware.Response) error {
	head, set := a.env, []lens.Member{lens.Text("status", "in_progress"), lens.Raw("output", "[]")}
	if a.head != "" {
		head, _ = codec.ParseObject(a.head)
		set = nil
	}
	if resp.Model != a.Is.Model {
		set = append(set, lens.Text("model", resp.Model))
	}
	raw, err := on.Set(head, set...)
	if err == nil {
		t.head, err = canonical(raw, headTree)
	}
	t.write("response.created", lens.Raw("response", t.head))
	return err
}

// end writes the event that ends the answer, under the identity of its beginning:
// clients refuse the end of another answer.
func (t *tape) end(a *answer, resp *middleware.Response, output []string) (string, error) {
	var identity []lens.Member
	head, _ := codec.ParseObject(t.head)
	for _, key := range []string{"id", "created_at"} {
		if first := head.Get(key); first.Exists() && first.Raw() != a.env.Get(key).Raw() {
			identity = append(identity, lens.Raw(key, first.Raw()))
		}
	}
	env, status, err := a.edit(resp, output, identity...)
	if err != nil {
		return "", err
	}
	typ := cmp.Or(a.ending, "response.completed")
	if status == "completed" || status == "incomplete" {
		typ = "response." + status
	}
	t.write(typ, lens.Raw("response", env))
	if a.done {
		t.out.WriteString("data: [DONE]\n\n")
	}
	return t.out.String(), nil
}

// item writes what the client lacks of an item: announced without what follows, then
// piece by piece, then whole, as the provider does. It returns the item as the client
// has it then.
func (t *tape) item(raw string, has givenItem) (string, error) {
	if raw == "" {
		return "", codec.Unencodablef("an item that was shown and never finished, or was taken out")
	}
	raw, err := canonical(raw, itemTree)
	if err != nil {
		return "", err
	}
	v, err := codec.ParseObject(raw)
	if err != nil {
		return "", err
	}
	t.index = max(t.index, has.index+1)
	if has.done != "" {
		done, err := canonical(has.done, itemTree)
		if err == nil && done != raw {
			err = codec.Unencodablef("a change of what was shown already")
		}
		t.ids[v.Get("id").Str()] = true
		return raw, err
	}
	if has.at < 0 {
		if v, err = t.ownID(v); err != nil {
			return "", err
		}
	}
	t.ids[v.Get("id").Str()] = true
	index := lens.Raw("output_index", codec.Count(has.index))
	place := []lens.Member{lens.Raw("item_id", v.Get("id").Raw()), index}
	if has.at < 0 {
		bare, err := announced(v)
		if err != nil {
			return "", err
		}
		t.write("response.output_item.added", index, lens.Raw("item", bare))
	}
	typ := v.Get("type").Str()
	switch f, isACall := calls[typ]; {
	case typ == "message" || typ == "reasoning":
		for _, list := range []string{"summary", "content"} {
			i := int64(0)
			for b := range v.Get(list).Each() {
				if err := t.block(place, list, i, b, has.blocks); err != nil {
					return "", err
				}
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
	t.write("response.output_item.done", index, lens.Raw("item", v.Raw()))
	return v.Raw(), nil
}

// ownID returns an item with an id that no other item of the stream has: clients join
// what has one id, or none.
func (t *tape) ownID(v rawjson.Value) (rawjson.Value, error) {
	was := v.Get("id").Str()
	switch {
	case was != "" && !t.ids[was]:
		return v, nil
	case was == "":
		was = "item"
	case v.Get("type").Str() == "mcp_approval_request":
		return v, codec.Unencodablef("two items of one id, of which one is answered by it")
	}
	id := was
	for n := int64(2); t.ids[id]; n++ {
		id = was + "_" + codec.Count(n)
	}
	raw, err := on.Set(v, lens.Text("id", id))
	if err != nil {
		return v, err
	}
	return codec.ParseObject(raw)
}

// textOr returns the JSON text of v, if v is a string, else other, a JSON text as
// well.
func textOr(v rawjson.Value, other string) string {
	if v.Kind() == rawjson.String {
		return v.Raw()
	}
	return other
}

// block writes what the client lacks of a block of a message or of reasoning: the part
// without its text, the text in one delta, the text again, the part with its text. What
// has no text comes as a part alone. place says of which item the block is, list in
// which member of it, and i at which index; blocks are those that the client has.
func (t *tape) block(place []lens.Member, list string, i int64, b rawjson.Value, blocks []block) error {
	typ := b.Get("type").Str()
	key, event, part, counter := textMember(typ), "response."+typ, "response.content_part", "content_index"
	if list == "summary" {
		event, part, counter = "response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index"
	}
	write := func(typ string, members ...lens.Member) {
		t.write(typ, slices.Concat(place, []lens.Member{lens.Raw(counter, codec.Count(i))}, members)...)
	}
	whole, text := lens.Raw("part", b.Raw()), textOr(b.Get(key), `""`)
	at := slices.IndexFunc(blocks, func(b block) bool { return b.list == list && b.index == i })
	if key == "" || event == "response.text" {
		if at < 0 {
			write(part+".added", whole)
			write(part+".done", whole)
		}
		return nil
	}
	annotations, probs := lens.None("annotations"), lens.None("logprobs")
	if typ == "output_text" {
		annotations.Raw, probs.Raw = "[]", "[]"
	}
	delta := text
	if at < 0 {
		write(part+".added", lens.Raw("part", on.Object(lens.Text("type", typ), lens.Text(key, ""), annotations)))
	} else {
		rest, ok := strings.CutPrefix(b.Get(key).Str(), blocks[at].text.String())
		switch {
		case !ok || rest != "" && blocks[at].ended:
			return codec.Unencodablef("a change of what was shown already")
		case blocks[at].ended:
			return nil
		}
		delta = rawjson.Quote(rest)
	}
	if at < 0 || delta != `""` {
		write(event+".delta", lens.Raw("delta", delta), probs)
	}
	write(event+".done", lens.Raw(key, text), probs)
	write(part+".done", whole)
	return nil
}
