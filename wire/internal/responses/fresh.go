package responses

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// rewrite returns the text of v, a copy of the call, with the change made.
func (e *callEdit) rewrite(v rawjson.Value) (string, error) {
	if e == nil {
		return v.Raw(), nil
	}
	edits, err := e.edits(v)
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// edits returns the change as edits of v, a copy of the call.
func (e *callEdit) edits(v rawjson.Value) ([]rawjson.Edit, error) {
	f, ok := calls[v.Get("type").Str()]
	switch {
	case !ok || f.kind != e.now.Kind:
		return nil, codec.Unencodablef("a call that became one of another kind")
	case e.was.Name != e.now.Name && f.kind == middleware.KindBuiltin:
		return nil, codec.Unencodablef("a name for a call that has none")
	case e.was.ID != e.now.ID && f.id == "id":
		return nil, codec.Unencodablef("another id for an item")
	}
	patch := codec.NewPatch(v)
	if e.was.ID != e.now.ID {
		patch.Set(f.id, rawjson.Quote(e.now.ID))
	}
	if e.was.Name != e.now.Name {
		patch.Set("name", rawjson.Quote(e.now.Name))
	}
	if e.was.Arguments != e.now.Arguments {
		args, key := arguments(v, f)
		raw := rawjson.Quote(e.now.Arguments)
		if k := args.Kind(); k == rawjson.Object || k == rawjson.Array {
			raw = e.now.Arguments
			if !codec.IsObject(raw) {
				return nil, codec.Unencodablef("arguments that are no object, where an object stands")
			}
		}
		patch.Set(key, raw)
	}
	return patch.Edits()
}

// freshCall writes a call from its neutral fields.
func (w writer) freshCall(c middleware.ToolCall) (string, error) {
	var typ, key string
	switch c.Kind {
	case middleware.KindFunction:
		typ, key = "function_call", "arguments"
	case middleware.KindCustom:
		typ, key = "custom_tool_call", "input"
	default:
		return "", codec.Unencodablef("a call of kind %s that is not of this format", c.Kind)
	}
	members := []codec.Member{member("type", typ), member("call_id", c.ID), member("name", c.Name), member(key, c.Arguments)}
	if w.answer {
		members = append(members, member("id", idOf("fc_", c.ID)), member("status", "completed"))
	}
	return codec.Object(members...), nil
}

// withID gives an item of an answer the id that its events go by.
func withID(raw string, c middleware.ToolCall) (string, error) {
	v, err := codec.ParseObject(raw)
	if err != nil || v.Get("id").Kind() == rawjson.String {
		return raw, err
	}
	patch := codec.NewPatch(v)
	patch.Set("id", rawjson.Quote(idOf("fc_", c.ID)))
	return patch.Text()
}

// freshMessage writes a message of the assistant that holds blocks.
func (t *turn) freshMessage(blocks []string) string {
	content := codec.Member{Key: "content", Raw: codec.Array(blocks)}
	if !t.answer {
		return codec.Object(member("type", "message"), member("role", "assistant"), content)
	}
	return codec.Object(member("type", "message"), member("id", t.messageID()),
		member("status", "completed"), member("role", "assistant"), content)
}

// messageID returns the id of a new message in an answer.
func (t *turn) messageID() string {
	n := codec.Count(int64(len(t.out)))
	if t.seed == "" {
		return "msg_toolmend_" + n
	}
	return "msg_" + t.seed + "_" + n
}

// withContent returns the text of v with parts in its member key, which holds
// one text or a list of blocks.
func withContent(v rawjson.Value, key string, parts []middleware.Part, text string) (string, error) {
	content, err := codec.Only(v, key)
	if err != nil {
		return "", err
	}
	if content.Kind() != rawjson.Array && len(parts) == 1 && parts[0].Kind == middleware.PartText {
		if content.Kind() == rawjson.String && content.Str() == parts[0].Text {
			return v.Raw(), nil
		}
		e, err := codec.Set(v, key, rawjson.Quote(parts[0].Text))
		if err != nil {
			return "", err
		}
		return codec.Within(v, []rawjson.Edit{e})
	}
	raws, err := blocks(parts, text)
	if err != nil {
		return "", err
	}
	if content.Kind() == rawjson.Array {
		return codec.Within(v, codec.Splice(content, raws))
	}
	e, err := codec.Set(v, key, codec.Array(raws))
	if err != nil {
		return "", err
	}
	return codec.Within(v, []rawjson.Edit{e})
}

// blocks writes parts as blocks of a message; text is the type of a fresh text.
func blocks(parts []middleware.Part, text string) ([]string, error) {
	raws := make([]string, 0, len(parts))
	for _, p := range parts {
		h, err := handlePart(p)
		if err != nil {
			return nil, err
		}
		if h == nil && p.Kind == middleware.PartReasoning {
			continue
		}
		raw, err := block(p, h, text)
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}

func block(p middleware.Part, h *part, text string) (string, error) {
	switch {
	case h != nil && h.item:
		return "", codec.Unencodablef("an item inside of a message")
	case h != nil && p.Kind == middleware.PartText && h.val.Kind() == rawjson.Object && otherSide(h.val, text):
		h = nil
	case h != nil && h.val.Kind() != rawjson.Object && p.Kind == middleware.PartText:
		h = nil // it was no block
	case h != nil:
		return h.rewrite(p)
	}
	switch p.Kind {
	case middleware.PartText:
		members := []codec.Member{member("type", text), member("text", p.Text)}
		if text == "output_text" {
			members = append(members, codec.Member{Key: "annotations", Raw: "[]"})
		}
		return codec.Object(members...), nil
	case middleware.PartMedia:
		if text == "output_text" {
			return "", codec.Unencodablef("media in a message of the model")
		}
		return freshMedia(p)
	}
	return "", codec.Unencodablef("a part of kind %s that is not of this format", p.Kind)
}

// otherSide reports whether block is text of the model's where the client's
// should be, or the reverse.
func otherSide(block rawjson.Value, text string) bool {
	typ := block.Get("type").Str()
	return (typ == "input_text" || typ == "output_text") && typ != text
}

// rewrite returns the part's own text with what has changed in it. A text that
// changes loses its logprobs, which spell it out; annotations stay.
func (h *part) rewrite(p middleware.Part) (string, error) {
	if h.same(p) {
		return h.val.Raw(), nil
	}
	if h.was.Kind != p.Kind {
		return "", codec.Unencodablef("a part that became one of another kind")
	}
	switch {
	case p.Kind == middleware.PartMedia:
		return h.rewriteMedia(p)
	case h.text.Kind() != rawjson.String:
		return "", codec.Unencodablef("a change of a part of kind %q that has no one text", p.Kind)
	}
	for v := h.text; v != h.val; v = v.Parent() {
		if _, err := codec.Only(v.Parent(), v.Key()); v.IsMember() && err != nil {
			return "", err
		}
	}
	patch := codec.NewPatch(h.val)
	patch.Add([]rawjson.Edit{codec.Replace(h.text, rawjson.Quote(p.Text))}, nil)
	if probs := h.val.Get("logprobs"); probs.Kind() == rawjson.Array && !probs.Empty() {
		patch.Set("logprobs", "[]")
	}
	return patch.Text()
}

func (h *part) rewriteMedia(p middleware.Part) (string, error) {
	url := mediaURL(p)
	_, key := readMedia(h.val, h.val.Get("type").Str())
	isData := key == "file_data"
	if url == "" || key != "image_url" && isData != (len(p.Data) > 0) || len(p.Data) > 0 && p.MediaType == "" {
		return "", codec.Unencodablef("media that this block cannot hold")
	}
	patch := codec.NewPatch(h.val)
	patch.Set(key, rawjson.Quote(url))
	return patch.Text()
}
