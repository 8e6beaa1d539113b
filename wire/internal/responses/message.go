package responses

import (
	"math"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// place is where a request has a message.
type place uint8

const (
	asItems        place = iota // one item, or the items of the model's turn
	asInstructions              // the member instructions
	asInput                     // the text that is the whole input
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
	answer  bool // it belongs to an answer
	lost    bool // the provider did not keep that answer ("store": false)
	halves  bool // it has a call of a provider-executed tool without its result, or the reverse
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

// readItems reads the items of one message: the model's items, or one item that the client put in.
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

// joined makes one message of items that were read. Its parts are in the order of the items,
// and so are its calls; only the items show which call came after which part.
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
	return lens.TextsOf(items, func(it item) string { return it.val.Raw() })
}

// readAnswer is readTurn for the items of an answer. An output among them belongs to the
// provider, and so does its call. A malformed item that is not a call is opaque. lost means
// that the provider kept none of them.
func readAnswer(values []rawjson.Value, lost bool) (turn, error) {
	items, err := lens.Convert(values, answerItem)
	if err != nil {
		return turn{}, err
	}
	halves := hosted(items)
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
	t.answer, t.lost, t.halves = true, lost, halves
	kept := lens.None("store")
	if lost {
		kept = lens.Raw("store", "false")
	}
	t.message.Native = on.Native(on.Object(lens.Raw("output", codec.Array(texts(items))), kept))
	return t, nil
}

// hosted makes opaque what the provider has run and answered itself: an output in
// an answer, and the call with its id. It reports whether the answer has only one half of
// such a pair: an output without its call, or a call that has not ended.
func hosted(items []item) (halves bool) {
	answered := map[string]bool{}
	for i, it := range items {
		switch {
		case it.sort == isOutput:
			id, _ := answeredID(it.val)
			answered[id.Str()], items[i].sort = true, isOpaque
		case slices.Contains(unfinished, it.val.Get("status").Str()) && slices.Contains(hostedCalls, it.val.Get("type").Str()) && it.val.Get("result").Str() == "":
			halves = true
		}
	}
	delete(answered, "")
	pairs := len(answered)
	for i, it := range items {
		if it.sort == isCall && answered[it.val.Get("call_id").Str()] {
			items[i].sort = isOpaque
			pairs--
		}
	}
	return halves || pairs > 0
}

// unfinished are the states of a hosted call whose result comes in a later answer.
var unfinished = []string{"in_progress", "searching", "interpreting", "generating", "calling"}

// again decodes the message that m came from; nil for a fresh one. The text of its Native has
// its kind: a string for instructions, an array for the model's items of a request, an object
// with output for an answer, else an item.
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

// written is one item of the new body.
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

// write returns the items of m, a message of the model that was t. The items of t stay in
// their order as far as m keeps it; a new part or call follows the one before it. The ids of
// new messages in an answer are made from seed. It is "" in a request.
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
		if places[0].Second {
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

// places returns the parts and calls of m in the order of the wire, with the item that each comes
// from, -1 for none, as its old place. Both are found by their texts, and new ones follow the ones
// before them. Several parts may come from one item, as a message has a part for each block.
func (w *writing) places() []lens.Item {
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
	out := on.Order(w.m, old, math.MaxInt)
	for i, p := range out {
		if p.Was >= 0 {
			out[i].Was = of[p.Was]
		}
	}
	return out
}

// part writes the first of places, and the ones after it in the same message. It returns their
// number. Texts that came out of one message go back into it; new ones make a message of their
// own, because the blocks of a message have one id.
func (w *writing) part(places []lens.Item) (int, error) {
	p, from := w.m.Parts[places[0].I], places[0].Was
	own := on.Raw(p.Native)
	if p.Kind == middleware.PartReasoning && own == "" {
		return 1, nil // no provider takes another's reasoning
	}
	if from >= 0 && (w.items[from].sort != isMessage || own == w.items[from].val.Raw()) || from < 0 && !isBlock(p) {
		return 1, w.item(p, from)
	}
	n := 1
	for n < len(places) && !places[n].Second && places[n].Was == from && (from >= 0 || isBlock(w.m.Parts[places[n].I])) {
		n++
	}
	parts := w.m.Parts[places[0].I : places[0].I+n]
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
func (w *writing) call(p lens.Item) error {
	c := w.m.ToolCalls[p.I]
	o := written{on.Raw(c.Native), p.Was, isCall}
	var err error
	if p.Was < 0 || w.items[p.Was].call == nil || !codec.SameCall(*w.items[p.Was].call, c) {
		o.raw, err = callText(c, w.seed != "" && p.Was < 0)
	}
	w.out = append(w.out, o)
	return err
}

// readContent reads the content of a message: a text or a list of blocks. A
// message without any is one empty text, so that it is not lost.
func readContent(v rawjson.Value) ([]middleware.Part, error) {
	if content := v.Get("content"); content.Kind() == rawjson.String {
		return []middleware.Part{readBare(content)}, nil
	}
	blocks, err := on.Kind(v, "content", rawjson.Array)
	if err != nil {
		return nil, err
	}
	if !blocks.Exists() || blocks.Empty() {
		return []middleware.Part{{Native: on.Native(v.Raw())}}, nil
	}
	return readBlocks(blocks)
}

// readBlocks reads a list of blocks, each as one part.
func readBlocks(v rawjson.Value) (parts []middleware.Part, err error) {
	for b := range v.Each() {
		p, err := readBlock(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// readBare reads a text in the place of a list of blocks. The Native of the part is that text,
// which distinguishes it from a block after storage.
func readBare(v rawjson.Value) middleware.Part {
	return middleware.Part{Text: v.Str(), Native: on.Native(v.Raw())}
}

// readOpaque reads what only the provider understands: a block or a whole item.
func readOpaque(v rawjson.Value) middleware.Part {
	return middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}
}

// readBlock reads one block of a message or of a result, such as
//
//	{"type": "output_text", "text": text, "annotations": [], "logprobs": []}
//	{"type": "input_image", "image_url": address}
//	{"type": "refusal", "refusal": text}
//
// A refusal is a text: clients show it as one.
func readBlock(v rawjson.Value) (p middleware.Part, err error) {
	if v.Kind() != rawjson.Object {
		return p, codec.Shapef("%s where a block should be", v.Kind())
	}
	if key := textMember(v.Get("type").Str()); key != "" {
		p.Native = on.Native(v.Raw())
		p.Text, err = on.Text(v, key)
		return p, err
	}
	if p = readMedia(v); p.URL != "" || p.Data != nil {
		p.Native = on.Native(v.Raw())
		return p, nil
	}
	return readOpaque(v), nil
}

// textMember names the member that holds a block's text.
func textMember(typ string) string {
	switch typ {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return "text"
	case "refusal":
		return "refusal"
	}
	return ""
}

// isBlock reports whether p is in a message, not an item of its own. Parts from elsewhere are
// in a message, but for reasoning.
func isBlock(p middleware.Part) bool {
	v, err := on.Value(p.Native)
	if err != nil || v.Kind() != rawjson.Object {
		return v.Exists() || p.Kind != middleware.PartReasoning
	}
	typ := v.Get("type").Str()
	return textMember(typ) != "" || strings.HasPrefix(typ, "input_") || strings.HasPrefix(typ, "output_")
}

// readReasoning reads a reasoning item: its summaries, then the reasoning
// itself, where the server gives it.
func readReasoning(v rawjson.Value) (middleware.Part, error) {
	p := middleware.Part{Kind: middleware.PartReasoning, Native: on.Native(v.Raw())}
	all, err := reasoningTexts(v)
	p.Text = strings.Join(lens.TextsOf(all, rawjson.Value.Str), between)
	return p, err
}

// between separates the texts of one reasoning item.
const between = "\n\n"

// reasoningTexts returns the texts of a reasoning item in the order in which a
// stream shows them. The error wraps ErrShape.
func reasoningTexts(v rawjson.Value) (all []rawjson.Value, err error) {
	for _, key := range []string{"summary", "content"} {
		blocks, err := on.Kind(v, key, rawjson.Array)
		if err != nil {
			return nil, err
		}
		for b := range blocks.Each() {
			if _, err := on.Text(b, "text"); err != nil {
				return nil, err
			}
			all = append(all, b.Get("text"))
		}
	}
	return all, nil
}

// readMedia reads an image or a file. Neither URL nor Data: it is known only to the
// provider.
func readMedia(v rawjson.Value) middleware.Part {
	typ := v.Get("type").Str()
	for _, key := range map[string][]string{"input_image": {"image_url"}, "input_file": {"file_data", "file_url"}}[typ] {
		url := v.Get(key).Str()
		if url == "" {
			continue
		}
		p := middleware.Part{Kind: middleware.PartMedia, URL: url}
		switch {
		case typ == "input_file" && strings.HasSuffix(url, ".pdf"):
			p.MediaType = "application/pdf"
		case typ == "input_file":
			p.MediaType = "application/octet-stream" // not an image
		}
		if media, data, ok := codec.FromDataURL(url); ok {
			p.URL, p.MediaType, p.Data = "", media, data
		}
		return p
	}
	return middleware.Part{}
}

// partText returns p as a block or, if it was one, as an item: its own text with
// what has changed in it, or afresh. text is the type of a fresh text.
func partText(p middleware.Part, text string) (string, error) {
	v, err := on.Value(p.Native)
	if err != nil {
		return "", err
	}
	typ := v.Get("type").Str()
	if other := (typ == "input_text" || typ == "output_text") && typ != text; v.Kind() != rawjson.Object || other && p.Kind == middleware.PartText {
		v, typ = rawjson.Value{}, ""
	}
	var was middleware.Part
	switch {
	case !v.Exists():
	case isBlock(p):
		was, err = readBlock(v)
	case typ == "reasoning":
		was, err = readReasoning(v)
	default:
		was = readOpaque(v)
	}
	switch {
	case err != nil:
		return "", codec.Unencodablef("the Native of a part is none")
	case v.Exists() && codec.SamePart(was, p):
		return v.Raw(), nil
	case v.Exists() && was.Kind != p.Kind:
		return "", codec.Unencodablef("a part that became one of another kind")
	case typ == "reasoning":
		return editReasoning(p, v)
	}
	now, err := blockMembers(v, p, text)
	if err != nil {
		return "", err
	}
	before, _ := blockMembers(v, was, text)
	return on.Write(v, before, now)
}

// blockMembers projects p onto a block of the type of v or, without v, of the type that p is
// written as; text is the type of a text.
func blockMembers(v rawjson.Value, p middleware.Part, text string) ([]lens.Member, error) {
	typ := v.Get("type").Str()
	if !v.Exists() {
		typ = freshType(p, text)
	}
	var members []lens.Member
	switch key := textMember(typ); {
	case key != "" && p.Kind == middleware.PartText && (!v.Exists() || v.Get(key).Kind() == rawjson.String):
		members = textMembers(v, typ, key, p.Text)
	case p.Kind == middleware.PartMedia:
		members = mediaMembers(v, typ, p)
	}
	if members == nil {
		return nil, codec.Unencodablef("a part of kind %q for which its block, or this format, has no member", p.Kind)
	}
	return append([]lens.Member{lens.Text("type", typ)}, members...), nil
}

// freshType returns the type of block that p is written as; "" without one. Media without a
// type are taken for an image. The model, which writes output_text, writes no media.
func freshType(p middleware.Part, text string) string {
	switch {
	case p.Kind == middleware.PartText:
		return text
	case text == "output_text" || p.Kind != middleware.PartMedia:
		return ""
	case strings.HasPrefix(p.MediaType, "image/") || p.MediaType == "" && len(p.Data) == 0:
		return "input_image"
	}
	return "input_file"
}

// textMembers returns the members of a block with a text, which is its member key. logprobs
// spell the text out, so a new text removes them.
func textMembers(v rawjson.Value, typ, key, text string) []lens.Member {
	members := []lens.Member{lens.Text(key, text)}
	if probs := v.Get("logprobs"); probs.Kind() == rawjson.Array && !probs.Empty() && text != v.Get(key).Str() {
		members = append(members, lens.Raw("logprobs", "[]"))
	}
	if !v.Exists() && typ == "output_text" {
		members = append(members, lens.Raw("annotations", "[]"))
	}
	return members
}

// mediaMembers returns the members of a block with media; nil for one that cannot have those
// of p. An image has one member for an address and for data, a file two.
func mediaMembers(v rawjson.Value, typ string, p middleware.Part) []lens.Member {
	url, data := codec.DataURL(p), len(p.Data) > 0
	switch {
	case url == "", data && p.MediaType == "":
	case typ == "input_image":
		return []lens.Member{lens.Text("image_url", url)}
	case typ == "input_file" && !data:
		return []lens.Member{lens.Text("file_url", url), lens.None("file_data")}
	case typ == "input_file":
		members := []lens.Member{lens.None("file_url"), lens.Text("file_data", url)}
		if !v.Exists() { // the provider refuses a file without a name
			_, ext, _ := strings.Cut(p.MediaType, "/")
			members = append(members, lens.Text("filename", "file."+ext))
		}
		return members
	}
	return nil
}

// editReasoning returns v with the text of p. If v has several texts, it cannot be
// known which part of the joined text belongs to which of them.
func editReasoning(p middleware.Part, v rawjson.Value) (string, error) {
	all, err := reasoningTexts(v)
	if err != nil || len(all) != 1 || all[0].Kind() != rawjson.String {
		return "", codec.Unencodablef("a change of reasoning that has no one text")
	}
	block := all[0].Parent()
	if _, err := on.Only(v, block.Parent().Key()); err != nil {
		return "", err
	}
	edits, err := on.Put(block, lens.Text("text", p.Text))
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// blocks returns parts as blocks of a message; text is the type of a fresh text: input_text
// for the model's input, output_text for its output. The old blocks of the message may be of
// any kind. Reasoning of another provider is left out.
func blocks(parts []middleware.Part, text string, old rawjson.Value) ([]string, error) {
	known := map[string]bool{}
	for b := range old.Each() {
		known[b.Raw()] = true
	}
	raws := make([]string, 0, len(parts))
	for _, p := range parts {
		own := on.Raw(p.Native)
		switch {
		case own == "" && p.Kind == middleware.PartReasoning:
			continue
		case known[own] && codec.SamePart(p, middleware.Part{Kind: middleware.PartOpaque}):
			raws = append(raws, own)
			continue
		case own != "" && !isBlock(p):
			return nil, codec.Unencodablef("an item inside of a message")
		}
		raw, err := partText(p, text)
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}

// withContent returns the text of v with parts in its member key, which holds one text or a
// list of blocks. One text stays one; other content becomes a list. text is the type of a
// fresh text.
func withContent(v rawjson.Value, key string, parts []middleware.Part, text string) (string, error) {
	content, err := on.Only(v, key)
	if err != nil {
		return "", err
	}
	if content.Kind() != rawjson.Array && len(parts) == 1 && parts[0].Kind == middleware.PartText {
		if content.Kind() == rawjson.String && content.Str() == parts[0].Text {
			return v.Raw(), nil
		}
		return on.Set(v, lens.Text(key, parts[0].Text))
	}
	raws, err := blocks(parts, text, content)
	if err != nil {
		return "", err
	}
	if content.Kind() == rawjson.Array {
		return codec.Within(v, codec.Splice(content, raws))
	}
	return on.Set(v, lens.Raw(key, codec.Array(raws)))
}

// freshContent returns one text as it is, anything else as a list of blocks.
func freshContent(parts []middleware.Part) (string, error) {
	if len(parts) == 0 {
		return `""`, nil
	}
	raws, err := blocks(parts, "input_text", rawjson.Value{})
	if len(parts) == 1 && parts[0].Kind == middleware.PartText && (err != nil || raws[0] != on.Raw(parts[0].Native)) {
		_, err := on.Value(parts[0].Native)
		return rawjson.Quote(parts[0].Text), err
	}
	return codec.Array(raws), err
}
