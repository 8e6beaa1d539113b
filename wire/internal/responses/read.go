package responses

import (
	"iter"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// sealed gives m its Native.
func sealed(m middleware.Message, raw string, h *message) middleware.Message {
	m.Native = native(raw, h)
	h.was = snapshot(m)
	return m
}

// readInstructions reads the member instructions. Stored, it is that text.
func readInstructions(v rawjson.Value) middleware.Message {
	m := middleware.Message{Role: middleware.RoleSystem, Parts: []middleware.Part{readBare(v, "input_text")}}
	return sealed(m, v.Raw(), &message{place: asInstructions})
}

// readInput reads an input that is one text.
func readInput(v rawjson.Value) middleware.Message {
	m := middleware.Message{Role: middleware.RoleUser, Parts: []middleware.Part{readBare(v, "input_text")}}
	return sealed(m, `{"role":"user","content":`+v.Raw()+`}`, &message{place: asInput})
}

// readItem reads an item that the client put in: a message of its own.
func readItem(v rawjson.Value) (middleware.Message, error) {
	it, err := newItem(v)
	if err != nil {
		return middleware.Message{}, err
	}
	if it.ofAssistant() {
		return readTurn(func(yield func(rawjson.Value) bool) { yield(v) }, "["+v.Raw()+"]", false)
	}
	var m middleware.Message
	switch it.sort {
	case isOutput:
		m, err = readOutput(v)
	case isTools:
		m = middleware.Message{Role: middleware.RoleSystem, Parts: []middleware.Part{readOpaque(v, true)}}
	default:
		m.Role = role(v.Get("role").Str())
		m.Parts, err = readContent(v)
	}
	if err != nil {
		return m, err
	}
	it.parts = len(m.Parts)
	return sealed(m, v.Raw(), &message{items: []item{it}}), nil
}

func role(name string) middleware.Role {
	switch name {
	case "assistant":
		return middleware.RoleAssistant
	case "system", "developer":
		return middleware.RoleSystem
	}
	return middleware.RoleUser
}

// readTurn reads the items that one assistant message is made of. raw is their
// array; answer says that they are all of one answer, so that an output among
// them is the provider's, and so is its call.
func readTurn(items iter.Seq[rawjson.Value], raw string, answer bool) (middleware.Message, error) {
	m := middleware.Message{Role: middleware.RoleAssistant}
	h := &message{}
	classify := newItem
	if answer {
		classify = answerItem
	}
	for v := range items {
		it, err := classify(v)
		if err != nil {
			return m, err
		}
		h.items = append(h.items, it)
	}
	if answer {
		hosted(h.items)
	}
	for i := range h.items {
		it, before := &h.items[i], len(m.Parts)
		err := it.read(&m)
		if err != nil && answer && it.sort != isCall {
			it.sort, it.odd, m.Parts = isOpaque, true, m.Parts[:before]
			err = it.read(&m)
		}
		if err != nil {
			return m, err
		}
		it.parts = len(m.Parts) - before
	}
	return sealed(m, raw, h), nil
}

// hosted makes opaque what the provider has run and answered itself.
func hosted(items []item) {
	var answered map[string]bool
	for i, it := range items {
		if it.sort == isOutput {
			if answered == nil {
				answered = map[string]bool{}
			}
			if id, _ := answeredID(it.val); id.Str() != "" {
				answered[id.Str()] = true
			}
			items[i].sort = isOpaque
		}
	}
	for i, it := range items {
		if it.sort == isCall && answered[it.val.Get("call_id").Str()] {
			items[i].sort = isOpaque
		}
	}
}

// answered returns an error if a call that the provider has answered itself is
// of a tool that req offers: many clients look at no answer but run their tool.
func (h *message) answered(req *middleware.Request) error {
	if req == nil {
		return nil
	}
	for _, it := range h.items {
		if f, ok := calls[it.val.Get("type").Str()]; !ok || it.sort != isOpaque || f.kind == middleware.KindBuiltin {
			continue
		}
		name := codec.Text(it.val.Get("name"))
		if slices.ContainsFunc(req.Tools, func(t middleware.Tool) bool { return t.Name == name }) {
			return codec.Shapef("a call of the client's tool with its answer")
		}
	}
	return nil
}

// read adds what stands in the item to the assistant's message.
func (it item) read(m *middleware.Message) error {
	switch it.sort {
	case isCall:
		c, err := readCall(it.val)
		m.ToolCalls = append(m.ToolCalls, c)
		return err
	case isReasoning:
		p, err := readReasoning(it.val)
		m.Parts = append(m.Parts, p)
		return err
	case isMessage:
		parts, err := readContent(it.val)
		m.Parts = append(m.Parts, parts...)
		return err
	}
	m.Parts = append(m.Parts, readOpaque(it.val, true))
	return nil
}

// readCall reads a call that the client answers.
func readCall(v rawjson.Value) (middleware.ToolCall, error) {
	f, ok := calls[v.Get("type").Str()]
	if !ok {
		return middleware.ToolCall{}, codec.Shapef("no call where a call should be")
	}
	c := middleware.ToolCall{Kind: f.kind, Name: f.name}
	var err error
	if c.ID, err = idText(v.Get(f.id), "the id of a call"); err != nil {
		return c, err
	}
	if f.kind != middleware.KindBuiltin {
		if c.Name, err = idText(v.Get("name"), "the name of a call"); err != nil {
			return c, err
		}
	}
	args, _ := arguments(v, f)
	if c.Arguments, err = argumentText(args, f.kind); err != nil {
		return c, err
	}
	h := &call{val: v, was: c}
	c.Native = native(v.Raw(), h)
	h.was.Native = c.Native
	return c, nil
}

// arguments returns the member with the arguments, and its key.
func arguments(v rawjson.Value, f form) (rawjson.Value, string) {
	for _, key := range f.args {
		if a := v.Get(key); a.Exists() {
			return a, key
		}
	}
	if len(f.args) == 0 {
		return rawjson.Value{}, "arguments"
	}
	return rawjson.Value{}, f.args[0]
}

// argumentText reads arguments: a string, or as some servers and the calls of
// KindBuiltin have it, an object.
func argumentText(v rawjson.Value, k middleware.Kind) (string, error) {
	if v.Kind() == rawjson.Object || v.Kind() == rawjson.Array && k == middleware.KindBuiltin {
		return v.Raw(), nil
	}
	return textOf(v, "the arguments of a call")
}

// readOutput reads what answers a call.
func readOutput(v rawjson.Value) (middleware.Message, error) {
	m := middleware.Message{Role: middleware.RoleTool}
	id, _ := answeredID(v)
	var err error
	if m.ToolCallID, err = textOf(id, "the id of a call"); err != nil {
		return m, err
	}
	switch out := v.Get("output"); out.Kind() {
	case rawjson.String:
		m.Parts = []middleware.Part{readBare(out, "input_text")}
	case rawjson.Array:
		m.Parts, err = readBlocks(out)
	case rawjson.Object:
		m.Parts = []middleware.Part{readOpaque(out, false)}
	case rawjson.Invalid, rawjson.Null:
	default:
		err = codec.Shapef("%s where an output should be", out.Kind())
	}
	return m, err
}

// readReasoning reads a reasoning item: its summaries, then the reasoning
// itself, where the server gives it.
func readReasoning(v rawjson.Value) (middleware.Part, error) {
	p := middleware.Part{Kind: middleware.PartReasoning}
	h := &part{val: v, item: true}
	var texts []string
	for _, key := range []string{"summary", "content"} {
		blocks, err := list(v.Get(key), "a list of reasoning")
		if err != nil {
			return p, err
		}
		for b := range blocks.Each() {
			h.text = b.Get("text")
			text, err := textOf(h.text, "text")
			if err != nil {
				return p, err
			}
			texts = append(texts, text)
		}
	}
	if len(texts) != 1 {
		h.text = rawjson.Value{}
	}
	p.Text = strings.Join(texts, between)
	return sealedPart(p, v.Raw(), h), nil
}

// between stands between the texts of one reasoning item.
const between = "\n\n"
