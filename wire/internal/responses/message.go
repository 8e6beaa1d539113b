package responses

import (
	"math"
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// place says where in a request a message stands.
type place uint8

const (
	asItems        place = iota // one item, or those of the model's turn
	asInstructions              // the member instructions
	asInput                     // the text that stands for the whole input
)

// turn is a message and the items that it is made of. What the model wrote is
// several items, such as
//
//	{"type": "reasoning", "id": …, "summary": […]}
//	{"type": "message", "role": "assistant", "content": […]}
//	{"type": "function_call", "call_id": …, "name": …, "arguments": text}
//
// and what the client wrote is one, or a text in another place.
type turn struct {
	message middleware.Message
	items   []item
	place   place
	answer  bool // it is that of an answer
	lost    bool // the provider did not keep that answer ("store": false)
}

// readInstructions reads the member instructions.
func readInstructions(v rawjson.Value) turn {
	return turn{place: asInstructions, message: middleware.Message{
		Role: middleware.RoleSystem, Parts: []middleware.Part{readBare(v)}, Native: on.Native(v.Raw()),
	}}
}

// readBareInput reads an input that is one text: as the message that it is
// short for. So it has the Native of an item, and can be followed by others.
func readBareInput(v rawjson.Value) (turn, error) {
	object, err := codec.ParseObject(on.Object(lens.Text("role", "user"), lens.Raw("content", v.Raw())))
	if err != nil {
		return turn{}, err
	}
	t, err := readItems([]item{{val: object, sort: isMessage}})
	t.place = asInput
	return t, err
}

// readItems reads the items of one message: those of the model, or one that the client put in.
func readItems(items []item) (turn, error) {
	it := items[0]
	if it.ofAssistant() {
		return readTurn(items)
	}
	v := it.val
	m := middleware.Message{Native: on.Native(v.Raw())}
	var err error
	switch it.sort {
	case isOutput:
		m.Role = middleware.RoleTool
		err = readOutput(&m, v)
	case isTools:
		m.Role, m.Parts = middleware.RoleSystem, []middleware.Part{readOpaque(v)}
	default:
		m.Role = middleware.RoleUser
		if role := v.Get("role").Str(); role == "system" || role == "developer" {
			m.Role = middleware.RoleSystem
		}
		m.Parts, err = readContent(v)
	}
	return turn{message: m, items: items}, err
}

// readOutput reads what answers a call:
//
//	{"type": "function_call_output", "call_id": …, "output": text or blocks}
//
// The output of a computer is an object, which is one opaque part.
func readOutput(m *middleware.Message, v rawjson.Value) (err error) {
	_, key := answeredID(v)
	if m.ToolCallID, err = on.Text(v, key); err != nil {
		return err
	}
	switch out := v.Get("output"); out.Kind() {
	case rawjson.String:
		m.Parts = []middleware.Part{readBare(out)}
	case rawjson.Array:
		m.Parts, err = readBlocks(out)
	case rawjson.Object:
		m.Parts = []middleware.Part{readOpaque(out)}
	case rawjson.Invalid, rawjson.Null:
	default:
		err = codec.Shapef("%s where an output should be", out.Kind())
	}
	return err
}

// readTurn reads the items that one message of the model's is made of.
func readTurn(items []item) (turn, error) {
	for i := range items {
		if err := items[i].read(); err != nil {
			return turn{}, err
		}
	}
	t := joined(items)
	t.message.Native = on.Native(codec.Array(texts(items)))
	return t, nil
}

// joined makes one message of items that were read. Its parts are in the order of
// the items, and so are its calls; which call stood behind which part, only the items
// tell.
func joined(items []item) turn {
	t := turn{message: middleware.Message{Role: middleware.RoleAssistant}, items: items}
	for _, it := range items {
		t.message.Parts = append(t.message.Parts, it.parts...)
		if it.call != nil {
			t.message.ToolCalls = append(t.message.ToolCalls, *it.call)
		}
	}
	return t
}

// texts returns the texts of items.
func texts(items []item) []string {
	raws := make([]string, len(items))
	for i, it := range items {
		raws[i] = it.val.Raw()
	}
	return raws
}

// readAnswer is readTurn for the items of an answer. An output among them is the
// provider's, and so is its call. What is out of shape, and no call, is opaque.
// lost says that the provider kept none of them.
func readAnswer(values []rawjson.Value, lost bool) (turn, error) {
	items := make([]item, len(values))
	var err error
	for i, v := range values {
		if items[i], err = answerItem(v); err != nil {
			return turn{}, err
		}
	}
	hosted(items)
	for i := range items {
		it := &items[i]
		if err = it.read(); err != nil && it.sort != isCall {
			it.sort, it.odd = isOpaque, true
			err = it.read()
		}
		if err != nil {
			return turn{}, err
		}
	}
	t := joined(items)
	t.answer, t.lost = true, lost
	kept := lens.None("store")
	if lost {
		kept = lens.Raw("store", "false")
	}
	t.message.Native = on.Native(on.Object(lens.Raw("output", codec.Array(texts(items))), kept))
	return t, nil
}

// hosted makes opaque what the provider has run and answered itself: an output in
// an answer, and the call with its id.
func hosted(items []item) {
	answered := map[string]bool{}
	for i, it := range items {
		if it.sort == isOutput {
			id, _ := answeredID(it.val)
			answered[id.Str()], items[i].sort = true, isOpaque
		}
	}
	delete(answered, "")
	for i, it := range items {
		if it.sort == isCall && answered[it.val.Get("call_id").Str()] {
			items[i].sort = isOpaque
		}
	}
}

// again reads the message again that m was decoded from; nil if it was not. The
// text of its Native says what it was: a string for instructions, an array for
// what a request had of the model, an object with output for an answer, else an
// item.
func again(m middleware.Message) (*turn, error) {
	v, err := on.Value(m.Native)
	if err != nil || !v.Exists() {
		return nil, err
	}
	var t turn
	switch output := v.Get("output"); {
	case v.Kind() == rawjson.String:
		t = readInstructions(v)
	case v.Kind() == rawjson.Object && output.Kind() == rawjson.Array && !v.Get("type").Exists():
		t, err = readAnswer(slices.Collect(output.Each()), v.Get("store").Raw() == "false")
	case v.Kind() == rawjson.Array:
		var items []item
		if items, err = newItems(v); err == nil {
			t, err = readTurn(items)
		}
	default:
		var it item
		if it, err = newItem(v); err == nil {
			t, err = readItems([]item{it})
		}
	}
	return &t, err
}

// written is one item as it will stand in the body.
type written struct {
	raw  string // a JSON object
	from int    // its place among the items of the turn, -1: it was not there
	sort sort
}

// writing is a message of the model's on its way to items.
type writing struct {
	turn
	m    middleware.Message
	seed string // of the ids of new messages in an answer; "": not an answer, whose items have ids, and whose reasoning always stays
	used map[int]bool
	out  []written
}

// write returns the items of m, a message of the model's that was t. What t has
// stays in the order of its items as far as m keeps it; what is new follows the
// part or the call that stands before it.
// seed is that of the ids of new messages in an answer, "" in a request.
func (t *turn) write(m middleware.Message, seed string) ([]written, error) {
	w := writing{m: m, seed: seed, used: map[int]bool{}}
	if t != nil {
		w.turn = *t
	}
	if t != nil && codec.SameMessage(t.message, m) {
		for i, it := range t.items {
			w.out = append(w.out, written{it.val.Raw(), i, it.sort})
		}
		return w.out, nil
	}
	for places := w.places(); len(places) > 0; {
		n, err := 1, error(nil)
		if places[0].second {
			err = w.call(places[0])
		} else {
			n, err = w.part(places)
		}
		if err != nil {
			return nil, err
		}
		places = places[n:]
	}
	if seed == "" {
		w.out = withoutOrphans(w.out, w.items)
	}
	return w.out, nil
}

// spot is a part or, second, a call, and the item that it comes from: the i-th of
// the parts, or of the calls, of the message that is written.
type spot struct {
	second bool
	i      int
	from   int // -1: none
}

// places returns the parts and calls of m in the order of the wire: both are
// found again by their texts, and what is new follows what stands before it. Several
// parts may come from one item, as a message has a part for each block.
func (w *writing) places() []spot {
	var old []string
	var of []int
	for i, it := range w.items {
		for _, p := range it.parts {
			old, of = append(old, p.Native.Raw), append(of, i)
		}
		if it.call != nil {
			old, of = append(old, it.call.Native.Raw), append(of, i)
		}
	}
	var out []spot
	for _, it := range on.Order(w.m, old, math.MaxInt) {
		s := spot{it.Second, it.I, -1}
		if it.Was >= 0 {
			s.from = of[it.Was]
		}
		out = append(out, s)
	}
	return out
}

// part writes the first of places, and those that stand in the same message. It
// returns how many that are. Texts that came out of one message go back into it;
// new ones make a message of their own, because the blocks of a message have one
// id.
func (w *writing) part(places []spot) (int, error) {
	p, from := w.m.Parts[places[0].i], places[0].from
	own := on.Raw(p.Native)
	if p.Kind == middleware.PartReasoning && own == "" {
		return 1, nil // no provider takes another's reasoning
	}
	if from >= 0 && (w.items[from].sort != isMessage || own == w.items[from].val.Raw()) || from < 0 && !isBlock(p) {
		return 1, w.item(p, from)
	}
	n := 1
	for n < len(places) && !places[n].second && places[n].from == from && (from >= 0 || isBlock(w.m.Parts[places[n].i])) {
		n++
	}
	parts := w.m.Parts[places[0].i : places[0].i+n]
	if from >= 0 && !w.used[from] {
		w.used[from] = true
		raw, err := withContent(w.items[from].val, "content", parts, "output_text")
		w.out = append(w.out, written{raw, from, isMessage})
		return n, err
	}
	raws, err := blocks(parts, "output_text", rawjson.Value{})
	members := []lens.Member{lens.Text("type", "message"), lens.None("id"), lens.None("status"),
		lens.Text("role", "assistant"), lens.Raw("content", codec.Array(raws))}
	if w.seed != "" {
		members[1], members[2] = lens.Text("id", "msg_"+w.seed+"_"+codec.Count(int64(len(w.out)))), lens.Text("status", "completed")
	}
	w.out = append(w.out, written{on.Object(members...), -1, isMessage})
	return n, err
}

// item writes a part that is an item of its own: reasoning, or what the provider
// ran. from is the item that it was, -1 if another message had it.
func (w *writing) item(p middleware.Part, from int) error {
	if from >= 0 && codec.SamePart(w.items[from].parts[0], p) {
		w.out = append(w.out, written{w.items[from].val.Raw(), from, w.items[from].sort})
		return nil
	}
	raw, err := partText(p, "")
	if err != nil {
		return err
	}
	v, err := on.Value(p.Native)
	if err != nil {
		return err
	}
	it, err := answerItem(v)
	w.out = append(w.out, written{raw, from, it.sort})
	return err
}

// call writes a call: a changed one in its own text, a new one afresh. One that comes
// from another message has its text in its Native.
func (w *writing) call(s spot) error {
	c := w.m.ToolCalls[s.i]
	o := written{on.Raw(c.Native), s.from, isCall}
	var err error
	if s.from < 0 || w.items[s.from].call == nil || !codec.SameCall(*w.items[s.from].call, c) {
		o.raw, err = callText(c, w.seed != "" && s.from < 0)
	}
	w.out = append(w.out, o)
	return err
}
