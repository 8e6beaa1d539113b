package responses

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// A stream holds a call up to five times: in output_item.added and output_item.done, in
// the deltas and the done event of its arguments, and at the end. Clients differ in the
// copy that they take. What counts here is the last output_item.done of the item, else
// the end, else what was announced with its arguments; what leaves has all copies anew,
// from that one value.

// piecemeal is one item as it comes in.
type piecemeal struct {
	index  int64
	sort   sort   // as it was added, or done
	typ    string // the same
	id     string
	callID string
	added  string       // "": it was never announced
	pieces codec.Joined // the deltas of the arguments
	full   string       // the arguments as their own done event has them
	told   bool         // its text went to the sink

	progress
	epoch  int      // the mark since which it has changed
	before progress // at that mark
}

// progress is how far an item has come for a client.
type progress struct {
	done   string // the item as it was done last; "": it is not
	blocks []block
}

// block is one text of a message or of reasoning: an element of content or summary.
type block struct {
	list  string
	index int64
	typ   string
	text  codec.Joined // so far
	ended bool
}

// change returns the item at that place for a change of its progress.
func (s *stream) change(at int) *piecemeal {
	it := s.items[at]
	if it.epoch != s.epoch {
		it.epoch, it.before = s.epoch, progress{it.done, slices.Clone(it.blocks)}
	}
	return it
}

// outputIndex returns the output_index of an event. Some servers send none
// (llama-server): their items are known by their id.
func outputIndex(event rawjson.Value) (index int64, ok bool) {
	n := event.Get("output_index")
	if n.Kind() != rawjson.Number {
		return 0, false
	}
	index, err := strconv.ParseInt(n.Raw(), 10, 64)
	return index, err == nil
}

// find returns the place of the item that an event is about: by its output_index, as
// servers exist that give an item another id in each event, else by its id, else the
// last one.
func (s *stream) find(event rawjson.Value, id string) (at int, ok bool) {
	if index, indexed := outputIndex(event); indexed {
		if at, ok = s.open[index]; ok {
			return at, true
		}
		at, ok = s.byID[id]
		return at, ok && id != ""
	}
	if id != "" {
		at, ok = s.byID[id]
		return at, ok
	}
	return len(s.items) - 1, len(s.items) > 0
}

// item reads output_item.added and output_item.done:
//
//	{"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": …, "arguments": ""}}
//	{"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{\"city\":"}
//	{"type": "response.output_item.done", "output_index": 1, "item": {…, "arguments": "{\"city\":\"Oslo\"}"}}
//
// An item that is done frees its place: some servers give the next item the same
// output_index. Another event with the same ids is a copy.
func (s *stream) item(event rawjson.Value, done bool) error {
	v := event.Get("item")
	if v.Kind() != rawjson.Object {
		return nil // no client reads an item there
	}
	kind, err := answerItem(v)
	if err != nil {
		return err
	}
	id := v.Get("id").Str()
	at, ok := s.find(event, id)
	if !ok || !s.items[at].isCopy(v, kind.sort, done) {
		index, indexed := outputIndex(event)
		at = len(s.items)
		if !indexed {
			index = int64(at)
		}
		s.open[index] = at
		s.items = append(s.items, &piecemeal{index: index, epoch: s.epoch})
	}
	if id != "" {
		s.byID[id] = at
	}
	it := s.change(at)
	it.sort, it.typ, it.id, it.callID = kind.sort, v.Get("type").Str(), id, v.Get("call_id").Str()
	if !done {
		it.added = v.Raw()
		return nil
	}
	it.done = v.Raw()
	if it.told || kind.sort != isMessage && kind.sort != isReasoning || kind.odd || kind.read() != nil {
		return nil
	}
	it.told = true
	return codec.TellAll(s.sink, kind.parts)
}

// isCopy reports whether v, an item that is announced or done, is the item.
func (it *piecemeal) isCopy(v rawjson.Value, kind sort, done bool) bool {
	if (it.sort == isCall) != (kind == isCall) || (it.sort == isMessage) != (kind == isMessage) {
		return false
	}
	return done && it.done == "" || it.id != "" && it.id == v.Get("id").Str() && it.callID == v.Get("call_id").Str()
}

// arguments reads the arguments of a call as they come in: in pieces, in events of
// type …delta, and whole, in the one of type …done. Those of a call that is done have
// come before.
func (s *stream) arguments(event rawjson.Value, typ string) error {
	at, ok := s.find(event, event.Get("item_id").Str())
	if !ok || s.items[at].sort != isCall {
		return codec.Shapef("arguments without a call that they belong to")
	}
	it := s.items[at]
	if strings.HasSuffix(typ, ".delta") {
		if _, err := on.Text(event, "delta"); err != nil {
			return err
		}
		it.pieces.Add(event.Get("delta"))
		return nil
	}
	_, key := arguments(event, calls[it.typ])
	if _, err := on.Text(event, key); err != nil {
		return err
	}
	it.full = event.Get(key).Raw()
	return nil
}

// block reads an event about a text, and tells the sink. Where another piece of
// reasoning begins, the space between the two comes first.
func (s *stream) block(u *codec.Unit, typ string) error {
	v := u.Value
	at, ok := s.find(v, v.Get("item_id").Str())
	if !ok {
		return nil
	}
	list, counter, kind, part := "content", "content_index", middleware.PartText, "output_text"
	switch name := strings.TrimPrefix(typ, "response."); {
	case strings.HasPrefix(name, "reasoning_summary_"):
		list, counter, kind = "summary", "summary_index", middleware.PartReasoning
	case strings.HasPrefix(name, "reasoning_text."):
		kind = middleware.PartReasoning
	case strings.HasPrefix(name, "refusal."):
		part = "refusal"
	case !strings.HasPrefix(name, "output_text.") && !strings.HasPrefix(name, "content_part."):
		return nil
	}
	n := s.change(at).block(list, codec.Int(v.Get(counter)))
	if n > maxBlocks {
		return codec.Shapef("an item of more than %d texts", maxBlocks)
	}
	it := s.items[at]
	b := &it.blocks[n]
	b.typ = part
	switch first, delta := b.text.Empty(), v.Get("delta"); {
	case strings.HasSuffix(typ, "_part.done"):
		b.ended = true
	case strings.HasSuffix(typ, ".done") && first:
		b.text.Add(v.Get("text"))
		b.text.Add(v.Get("refusal"))
	case strings.HasSuffix(typ, ".delta") && delta.Kind() == rawjson.String:
		text := delta.Str()
		if kind == middleware.PartReasoning && it.told && first {
			text = between + text
		}
		b.text.Add(delta)
		it.told = true
		if kind == middleware.PartText {
			s.Repeats(u, func(text string) error {
				s.opening.next++
				s.change(at).blocks[n].text.AddLiteral(text)
				return codec.Tell(s.sink, kind, text)
			}, delta, v.Get("sequence_number"), v.Get("obfuscation"))
		}
		return codec.Tell(s.sink, kind, text)
	}
	return nil
}

// maxBlocks bounds the texts of an item: they are searched for each delta.
const maxBlocks = 1 << 10

// block returns the place of a block, which may be new.
func (it *piecemeal) block(list string, index int64) int {
	for i, b := range slices.Backward(it.blocks) {
		if b.list == list && b.index == index {
			return i
		}
	}
	it.blocks = append(it.blocks, block{list: list, index: index})
	return len(it.blocks) - 1
}

// fold makes the answer of the items.
func (s *stream) fold() (*answer, error) {
	env, err := parse(s.end, answerTree)
	if err != nil {
		return nil, err
	}
	output, err := on.Kind(env, "output", rawjson.Array)
	if err != nil {
		return nil, err
	}
	ends := slices.Collect(output.Each())
	for _, v := range ends {
		if _, err := answerItem(v); err != nil {
			return nil, err
		}
	}
	order := make([]int, len(s.items))
	for i := range order {
		order[i] = i
	}
	copies, rest := s.pair(ends)
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.items[a].index, s.items[b].index) })
	var items []rawjson.Value
	var from []int
	for _, i := range order {
		v, err := s.items[i].value(copies[i])
		if err != nil {
			return nil, err
		}
		if v.Exists() {
			items, from = append(items, v), append(from, i)
		}
	}
	for _, v := range rest {
		items, from = append(items, v), append(from, -1)
	}
	a, err := newAnswer(s, env, items)
	if err == nil {
		a.from = from
	}
	return a, err
}

// value returns the item: as it was done or, of one that was not, as the end has it. A
// call or a message that has neither is what was announced, with the arguments or the
// texts that came.
func (it *piecemeal) value(end rawjson.Value) (rawjson.Value, error) {
	text := cmp.Or(it.done, end.Raw())
	if text == "" && (it.sort == isCall || it.sort == isMessage) {
		text = it.added
	}
	if text == "" {
		return rawjson.Value{}, nil
	}
	v, err := parse(text, itemTree)
	if err != nil {
		return v, err
	}
	set := lens.Member{}
	switch {
	case it.sort == isCall && (it.full != "" || !it.pieces.Empty()):
		args, key := arguments(v, calls[v.Get("type").Str()])
		if args.Kind() != rawjson.Object && args.Str() == "" {
			set = lens.Raw(key, cmp.Or(it.full, it.pieces.JSON()))
		}
	case it.sort == isMessage && it.done == "" && !end.Exists():
		raws := make([]string, len(it.blocks))
		for i, b := range it.blocks {
			raws[i] = on.Object(lens.Text("type", b.typ), lens.Raw(textMember(b.typ), b.text.JSON()))
		}
		set = lens.Raw("content", codec.Array(raws))
	}
	if set.Key == "" {
		return v, nil
	}
	raw, err := on.Set(v, set)
	if err != nil {
		return v, err
	}
	return codec.ParseObject(raw)
}

// pair finds the copy of each item among the items at the end: the one with its call_id,
// else with its id, else the next of its type. It returns the copies, absent
// where there is none, and those at the end that no event was about.
func (s *stream) pair(ends []rawjson.Value) (copies, rest []rawjson.Value) {
	names := func(typ, id, callID string) [3]string {
		if outputs[typ] != nil { // it repeats the call_id of a call
			callID = ""
		}
		return [...]string{callID, id, typ}
	}
	copies = make([]rawjson.Value, len(s.items))
	for n := range names("", "", "") {
		left, taken := map[string][]rawjson.Value{}, map[rawjson.Value]bool{}
		for _, v := range ends {
			name := names(v.Get("type").Str(), v.Get("id").Str(), v.Get("call_id").Str())[n]
			left[name] = append(left[name], v)
		}
		for i, it := range s.items {
			name := names(it.typ, it.id, it.callID)[n]
			if same := left[name]; !copies[i].Exists() && name != "" && len(same) > 0 {
				copies[i], left[name] = same[0], same[1:]
				taken[same[0]] = true
			}
		}
		ends = slices.DeleteFunc(ends, func(v rawjson.Value) bool { return taken[v] })
	}
	return copies, ends
}
