package chat

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// streamEdits returns the edits of a streamed answer. It reads the stream a
// second time, as it was read first, and edits each delta where it stands.
func (a *answer) streamEdits(resp *middleware.Response) ([]rawjson.Edit, error) {
	p, err := a.plan(resp)
	if err != nil || p.empty() {
		return nil, err
	}
	w := &rewriter{plan: p, a: a, resp: resp, began: map[piece]bool{}, s: &stream{buf: codec.NewBuffer(false), turns: map[int64]*turn{}}}
	w.s.see = w
	if a.main.index != 0 {
		return nil, codec.Unencodablef("a change of a stream without a choice 0")
	}
	edits, err := eachEvent(a.text, w.event)
	if err != nil {
		return nil, err
	}
	at, before := a.safe, ""
	if at == 0 && strings.HasPrefix(a.text, bom) {
		at, before = len(bom), "\n" // not every reader sees the line behind the mark
	}
	for _, delta := range p.insert {
		text := before + "data: " + codec.OneLine(chunkOf(w.envelope, delta, "null")) + "\n\n"
		edits, before = append(edits, rawjson.Edit{Start: at, End: at, Text: text}), ""
	}
	return edits, nil
}

// bom may stand before a stream.
const bom = "\ufeff"

// eachEvent returns the edits that each makes of the events of a stream. v is
// absent for an event that is no JSON object.
func eachEvent(text string, each func(v rawjson.Value) (edits []rawjson.Edit, drop bool, err error)) ([]rawjson.Edit, error) {
	var out []rawjson.Edit
	event := func(e codec.Event) (bool, error) {
		var v rawjson.Value
		if strings.HasPrefix(strings.TrimSpace(e.Data), "{") {
			v, _ = codec.ParseObject(e.Data)
		}
		edits, drop, err := each(v)
		if err != nil {
			return true, err
		}
		if drop {
			out = append(out, rawjson.Edit{Start: e.Start, End: e.End})
			return false, nil
		}
		edits, err = e.Edits(edits)
		out = append(out, edits...)
		return false, err
	}
	buf := codec.NewBuffer(false)
	if err := buf.Feed([]byte(text), event); err != nil {
		return nil, err
	}
	return out, buf.End(event)
}

// rewriter carries a plan out. It is the seer of the second reading.
type rewriter struct {
	plan     *plan
	a        *answer
	resp     *middleware.Response
	s        *stream
	events   int
	envelope rawjson.Value  // the first chunk, best one with a choice: Azure begins with one that has neither choice nor id
	chosen   bool           // envelope has a choice
	edits    []rawjson.Edit // of the event that is read
	hollow   int            // deltas of it that say nothing any more
	began    map[piece]bool
}

func (w *rewriter) event(v rawjson.Value) (edits []rawjson.Edit, drop bool, err error) {
	w.events++
	w.edits, w.hollow = nil, 0
	if !v.Exists() {
		return nil, false, nil
	}
	if choices := v.Get("choices"); choices.Len() > 0 && !w.chosen || choices.Exists() && !w.envelope.Exists() {
		w.envelope, w.chosen = v, choices.Len() > 0
	}
	alone := v.Get("choices").Len() == 1
	for c := range v.Get("choices").Each() {
		if codec.Int(c.Get("index")) == 0 {
			empty, err := w.choice(c)
			if err != nil {
				return nil, false, err
			}
			drop = empty && alone && len(w.s.turns) > 0 && len(usageIn(v)) == 0
		}
	}
	if w.plan.model != "" && v.Get("model").Str() != "" {
		w.edits = append(w.edits, codec.Replace(v.Get("model"), rawjson.Quote(w.plan.model)))
	}
	if w.plan.usage {
		for _, u := range usageIn(v) {
			if w.events != w.a.usageAt && readUsage(u) != w.a.usage {
				continue // it counts what came so far
			}
			more, err := usageEdits(u, w.a.usage, w.resp.Usage)
			if err != nil {
				return nil, false, err
			}
			w.edits = append(w.edits, more...)
		}
	}
	_, err = w.s.chunk(v, false)
	return w.edits, drop || w.hollow > 0 && w.saysNoMore(v), err
}

// onlyIn reports whether a delta has nothing beside its place and at.
func onlyIn(v rawjson.Value, at string) bool {
	for m := range v.Each() {
		switch m.Key() {
		case "index", "type", at:
		default:
			if !m.Empty() && m.Raw() != `""` {
				return false
			}
		}
	}
	return true
}

// saysNoMore reports whether a chunk has hollow deltas and nothing else. It
// goes: langchaingo takes a delta without text for a new call.
func (w *rewriter) saysNoMore(v rawjson.Value) bool {
	if v.Get("choices").Len() != 1 || len(usageIn(v)) > 0 {
		return false
	}
	for c := range v.Get("choices").Each() {
		if c.Get("finish_reason").Str() != "" || c.Get("delta").Get("tool_calls").Len() != w.hollow {
			return false
		}
		for m := range c.Get("delta").Each() {
			switch {
			case m.Key() == "tool_calls" || m.Key() == "role":
			case m.Str() != "" || !isText(m) && !m.Empty():
				return false
			}
		}
	}
	return true
}

// choice makes the edits that need no more than the choice. empty says that a
// cut leaves nothing of it.
func (w *rewriter) choice(c rawjson.Value) (empty bool, err error) {
	if w.plan.finish != "" && c.Get("finish_reason").Str() != "" {
		w.edits = append(w.edits, codec.Replace(c.Get("finish_reason"), rawjson.Quote(w.plan.finish)))
	}
	t := w.s.turns[0]
	if t == nil {
		t = newTurn(0)
	}
	delta := deltaOf(c, t)
	if len(w.plan.texts) > 0 {
		edits, err := unspelled(c)
		if err != nil {
			return false, err
		}
		w.edits = append(w.edits, edits...)
	}
	if err := w.copies(c, delta); err != nil || len(w.plan.cut) == 0 || delta.Kind() != rawjson.Object {
		return false, err
	}
	cut := false
	empty = c.Get("finish_reason").Str() == ""
	members := make([]codec.Member, len(w.plan.cut))
	for i, key := range w.plan.cut {
		members[i].Key = key
	}
	for m := range delta.Each() {
		switch {
		case slices.Contains(w.plan.cut, m.Key()):
			cut = cut || !m.Empty()
		case m.Str() != "" || !isText(m) && !m.Empty():
			empty = false
		}
	}
	if !cut {
		return false, nil
	}
	edits, err := codec.SetAll(delta, members...)
	w.edits = append(w.edits, edits...)
	return empty, err
}

// copies deals with the message that Perplexity sends beside each delta: it
// repeats what was said so far.
func (w *rewriter) copies(c, delta rawjson.Value) error {
	m := c.Get("message")
	if m.Kind() != rawjson.Object || delta == m {
		return nil
	}
	f := readFields(m)
	text, changed := w.plan.texts[pieceText]
	if changed && f.content.Str() != "" {
		w.edits = append(w.edits, codec.Replace(f.content, rawjson.Quote(text)))
	}
	if f.hasReasoning() || f.calls.Len() > 0 {
		return codec.Unencodablef("a message beside the deltas that repeats more than text")
	}
	return nil
}

// piece is part of seer: the first piece gets all of a new text.
func (w *rewriter) piece(p piece, v rawjson.Value, _ string, _ bool) error {
	text, changed := w.plan.texts[p]
	if !changed {
		return nil
	}
	if w.began[p] {
		text = ""
	}
	w.began[p] = true
	w.edits = append(w.edits, codec.Replace(v, rawjson.Quote(text)))
	return nil
}

// call is part of seer: it changes one delta of a call that stays in its
// place.
func (w *rewriter) call(c *streamed, v rawjson.Value) error {
	if w.plan.calls == nil {
		return nil
	}
	n, first := 0, w.a.main.old // first is the call as it was read first
	if !c.old {
		n = w.a.main.order[c.seq]
		first = w.a.main.calls[n]
	}
	old, now := w.a.message.snap.ToolCalls[n], w.plan.calls[n]
	holder, at, key := payload(v, first.kind, c.old)
	var inner, outer []codec.Member
	if now.ID != old.ID && !c.old && (v.Get("id").Str() != "" || old.ID == "" && c.deltas == 0) {
		outer = append(outer, codec.Member{Key: "id", Raw: rawjson.Quote(now.ID)})
	}
	if c.old && now.ID != old.ID && !codec.IsPlaceID(now.ID) {
		return codec.Unencodablef("an id for a function_call")
	}
	if now.Name != old.Name {
		if name := holder.Get("name").Str(); name != "" || old.Name == "" && c.deltas == 0 {
			inner = append(inner, codec.Member{Key: "name", Raw: rawjson.Quote(rename(c, name, now.Name))})
		}
	}
	if now.Arguments != old.Arguments {
		if raw := newArguments(c, holder.Get(key), old.Arguments, now.Arguments, max(first.last, 0)); raw != "" {
			inner = append(inner, codec.Member{Key: key, Raw: raw})
			if raw == `""` && len(outer)+len(inner) == 1 && holder.Len() == 1 && onlyIn(v, at) {
				w.hollow++
			}
		}
	}
	if holder.Kind() != rawjson.Object && len(inner) > 0 {
		outer, inner = append(outer, codec.Member{Key: at, Raw: codec.Object(inner...)}), nil
	}
	edits, err := codec.SetAll(v, outer...)
	if err != nil {
		return err
	}
	w.edits = append(w.edits, edits...)
	edits, err = codec.SetAll(holder, inner...)
	w.edits = append(w.edits, edits...)
	return err
}

// rename returns what a delta says of a new name: all of it the first, and
// each that repeats it; nothing one that went on with it.
func rename(c *streamed, piece, name string) string {
	if c.name != "" && c.name != piece {
		return ""
	}
	return name
}

// newArguments returns what a delta says of new arguments, as JSON; "" leaves
// it as it is. The first delta that said something gets all; where none did,
// the one numbered last.
func newArguments(c *streamed, v rawjson.Value, old, now string, last int) string {
	here := argumentsOf(v)
	switch {
	case old == "" && c.deltas == last:
		return rawjson.Quote(now)
	case old == "" || here == "":
		return ""
	case c.args.Len() > 0:
		return `""`
	case here == old:
		return argumentsJSON(v, now)
	}
	return rawjson.Quote(now)
}

// chunkOf writes a chunk for choice 0 like the one given.
func chunkOf(like rawjson.Value, delta, finish string) string {
	choice := codec.Object(codec.Member{Key: "index", Raw: "0"}, codec.Member{Key: "delta", Raw: delta},
		codec.Member{Key: "finish_reason", Raw: finish})
	return codec.Object(append(envelope(like), codec.Member{Key: "choices", Raw: "[" + choice + "]"})...)
}

// envelope returns what every chunk of a stream repeats: the plain members,
// but for what pads a chunk.
func envelope(like rawjson.Value) []codec.Member {
	var members []codec.Member
	for m := range like.Each() {
		switch key := m.Key(); {
		case key == "obfuscation" || key == "p" || m.Kind() == rawjson.Null || m.Kind() == rawjson.Array || m.Kind() == rawjson.Object:
		case key == "object":
			members = append(members, codec.Member{Key: key, Raw: `"chat.completion.chunk"`})
		default:
			members = append(members, codec.Member{Key: key, Raw: m.Raw()})
		}
	}
	return members
}
