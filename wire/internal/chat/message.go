package chat

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// message is the handle of a message.
type message struct {
	native middleware.Native
	v      rawjson.Value
	snap   middleware.Message // as decoded; shares no slice with what was handed out
	named  bool               // ToolName stands there, and is no view
}

// functionRole is the role of the reply to a call in the old form.
const functionRole = "function"

// roles are the neutral roles of the wire's words; others pass as they are.
var roles = map[string]middleware.Role{
	"developer":  middleware.RoleSystem,
	functionRole: middleware.RoleTool,
}

// readMessage decodes a message of a request's history.
func readMessage(v rawjson.Value) (middleware.Message, error) {
	h := &message{v: v}
	h.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: h}
	m := middleware.Message{Native: &h.native}
	if v.Kind() != rawjson.Object {
		return m, codec.Shapef("a message is of kind %s", v.Kind())
	}
	f := readFields(v)
	if err := f.check(); err != nil {
		return m, err
	}
	word := f.role.Str()
	if word == "" {
		return m, codec.Shapef("a message without a role")
	}
	m.Role = middleware.Role(word)
	if role, ok := roles[word]; ok {
		m.Role = role
	}
	if m.Role == middleware.RoleTool {
		m.ToolCallID, m.ToolName, h.named = codec.Text(f.callID), f.name.Str(), f.name.Str() != ""
	}
	var err error
	if m.Parts, err = readParts(&f); err != nil {
		return m, err
	}
	if m.ToolCalls, err = readCalls(&f); err != nil {
		return m, err
	}
	h.snap = m
	h.snap.Parts, h.snap.ToolCalls = slices.Clone(m.Parts), slices.Clone(m.ToolCalls)
	return m, nil
}

// readParts decodes what a message says: reasoning first, then its content.
func readParts(f *fields) ([]middleware.Part, error) {
	var parts []middleware.Part
	add := func(v rawjson.Value) error {
		p, err := readPart(v)
		parts = append(parts, p)
		return err
	}
	if f.hasReasoning() {
		if err := addMembers(add, f.reasoningRaw()); err != nil {
			return nil, err
		}
	}
	switch f.content.Kind() {
	case rawjson.String:
		if f.content.Str() != "" {
			_ = add(f.content)
		}
	case rawjson.Array:
		for item := range f.content.Each() {
			if isMember(item) {
				return nil, codec.Shapef("a message in a content list")
			}
			if err := add(item); err != nil {
				return nil, err
			}
		}
	case rawjson.Object: // Cloudflare sends structured output as it is
		p := middleware.Part{Text: f.content.Raw()}
		if err := addMembers(add, rawjson.Quote(p.Text)); err != nil {
			return nil, err
		}
	}
	if f.refusal.Str() != "" {
		if err := addMembers(add, memberRaw(codec.Member{Key: "refusal", Raw: f.refusal.Raw()})); err != nil {
			return nil, err
		}
	}
	if id := f.audio.Get("id"); id.Str() != "" {
		audio := codec.Object(codec.Member{Key: "id", Raw: id.Raw()})
		if err := addMembers(add, memberRaw(codec.Member{Key: "audio", Raw: audio})); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// addMembers adds a part whose Raw stands nowhere in one piece.
func addMembers(add func(rawjson.Value) error, raw string) error {
	doc, err := codec.Parse(raw)
	if err != nil {
		return err
	}
	return add(doc.Root())
}

// readCalls decodes the calls of a message, in whichever form it has them.
func readCalls(f *fields) ([]middleware.ToolCall, error) {
	if f.calls.Empty() || !f.calls.Exists() {
		if !f.hasFunction() {
			return nil, nil
		}
		c, err := readCall(f.function, true)
		return []middleware.ToolCall{c}, err
	}
	calls := make([]middleware.ToolCall, 0, f.calls.Len())
	for v := range f.calls.Each() {
		c, err := readCall(v, false)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, nil
}

// messageHandle returns m's own handle; nil if m has none of this dialect.
func messageHandle(m middleware.Message) (*message, error) {
	return codec.Handle(m.Native, dialect, func(raw string) (*message, error) {
		v, err := codec.ParseObject(raw)
		if err != nil {
			return nil, err
		}
		again, err := readMessage(v)
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*message), nil
	})
}

// same reports whether m is what was decoded.
func (h *message) same(m middleware.Message) bool {
	return m.Role == h.snap.Role && !h.otherID(m) && !h.otherName(m) &&
		slices.EqualFunc(m.Parts, h.snap.Parts, samePart) && slices.EqualFunc(m.ToolCalls, h.snap.ToolCalls, sameCall)
}

// otherID reports whether m answers another call. The id of a reply in the old
// form is that of a place, which no wire has.
func (h *message) otherID(m middleware.Message) bool {
	return m.ToolCallID != h.snap.ToolCallID && !(h.old() && codec.IsPlaceID(m.ToolCallID))
}

func (h *message) otherName(m middleware.Message) bool {
	return h.named && m.ToolName != h.snap.ToolName
}

// old reports whether the message is a reply in the old form.
func (h *message) old() bool { return h.v.Get("role").Str() == functionRole }

// samePart compares a part with one of a snapshot, whose Data may be shared:
// the handle has its own.
func samePart(p, snap middleware.Part) bool {
	if h, ok := snap.Native.Ref.(*part); ok {
		snap.Data = h.snap.Data
	}
	return codec.SameNative(p.Native, snap.Native) && codec.SamePart(p, snap)
}

// sameCall is samePart for calls.
func sameCall(c, snap middleware.ToolCall) bool {
	if !codec.SameNative(c.Native, snap.Native) {
		return false
	}
	h, ok := snap.Native.Ref.(*call)
	return ok && h.same(c)
}

// oldCall reports whether m's only call stands in function_call.
func oldCall(m middleware.Message) bool {
	if len(m.ToolCalls) != 1 {
		return false
	}
	h, err := callHandle(m.ToolCalls[0])
	return err == nil && h != nil && h.old
}
