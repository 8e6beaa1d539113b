package chat

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// messageEdits returns the edits that make v, the message that h was decoded
// from, say what m does. v stands in a request's history or in an answer.
func messageEdits(v rawjson.Value, h *message, m middleware.Message) ([]rawjson.Edit, error) {
	switch {
	case m.Role == "":
		return nil, codec.Unencodablef("a message without a role")
	case h.old() && h.otherID(m):
		return nil, codec.Unencodablef("an id for the reply to a function_call")
	}
	var members []codec.Member
	if m.Role != h.snap.Role {
		members = append(members, codec.Member{Key: "role", Raw: rawjson.Quote(string(m.Role))})
	}
	if h.otherID(m) {
		members = append(members, codec.Member{Key: "tool_call_id", Raw: rawjson.Quote(m.ToolCallID)})
	}
	if h.otherName(m) {
		members = append(members, codec.Member{Key: "name", Raw: rawjson.Quote(m.ToolName)})
	}
	said, inner, err := partEdits(v, h, m)
	if err != nil {
		return nil, err
	}
	called, more, err := callEdits(v, h, m)
	if err != nil {
		return nil, err
	}
	members = append(append(members, said...), called...)
	edits, err := codec.SetAll(v, members...)
	return append(append(edits, inner...), more...), err
}

// partEdits returns what has to change for m's parts: members of v, and edits
// inside of one.
func partEdits(v rawjson.Value, h *message, m middleware.Message) (members []codec.Member, inner []rawjson.Edit, err error) {
	if slices.EqualFunc(m.Parts, h.snap.Parts, samePart) {
		return nil, nil, nil
	}
	was, err := sortParts(h.snap.Parts)
	if err != nil {
		return nil, nil, err
	}
	now, err := sortParts(m.Parts)
	if err != nil {
		return nil, nil, err
	}
	if members, err = memberEdits(v, was.members, now.members); err != nil {
		return nil, nil, err
	}
	if slices.EqualFunc(now.items, was.items, samePart) {
		return members, nil, nil
	}
	content := v.Get("content")
	if content.Kind() == rawjson.Array && len(now.items) > 0 {
		if _, err := codec.Only(v, "content"); err != nil {
			return nil, nil, err
		}
		items, err := itemsOf(now.items)
		for i := range min(len(items), len(was.items)) {
			if samePart(now.items[i], was.items[i]) { // a bare text stays one
				items[i] = was.items[i].Native.Raw
			}
		}
		return members, codec.Splice(content, items), err
	}
	raw, err := contentOf(m.Role, now.items)
	return append(members, codec.Member{Key: "content", Raw: raw}), nil, err
}

// sorted are the parts of a message by where they stand.
type sorted struct {
	items   []middleware.Part // in content
	members []middleware.Part // in members of their own
}

// sortParts sorts parts. Reasoning that this format did not write has no
// place: no provider takes another's.
func sortParts(parts []middleware.Part) (sorted, error) {
	var s sorted
	for _, p := range parts {
		h, err := handleOf(p)
		switch {
		case err != nil:
			return s, err
		case h != nil && h.member:
			s.members = append(s.members, p)
		case h != nil || p.Kind != middleware.PartReasoning:
			s.items = append(s.items, p)
		}
	}
	return s, nil
}

// memberEdits returns the members of v that change when the parts was become
// the parts now.
func memberEdits(v rawjson.Value, was, now []middleware.Part) ([]codec.Member, error) {
	var out []codec.Member
	for _, old := range was {
		if !slices.ContainsFunc(now, func(p middleware.Part) bool { return codec.SameNative(p.Native, old.Native) }) {
			for _, m := range old.Native.Ref.(*part).members() {
				out = append(out, codec.Member{Key: m.Key()}) // none: it goes
			}
		}
	}
	for _, p := range now {
		if slices.ContainsFunc(was, func(old middleware.Part) bool { return samePart(p, old) }) {
			continue
		}
		members, err := partMembers(p)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			out = slices.DeleteFunc(out, func(gone codec.Member) bool { return gone.Key == m.Key })
			if v.Get(m.Key).Raw() != m.Raw {
				out = append(out, m)
			}
		}
	}
	return out, nil
}

// partMembers returns p as members of a message. Text of reasoning_details
// cannot be told apart from what is signed there.
func partMembers(p middleware.Part) ([]codec.Member, error) {
	h, err := handleOf(p)
	if err != nil {
		return nil, err
	}
	changed := !codec.SamePart(p, h.snap)
	var out []codec.Member
	for _, m := range h.members() {
		raw := m.Raw()
		if changed {
			if m.Kind() != rawjson.String || p.Kind != h.snap.Kind {
				return nil, codec.Unencodablef("%s holds a copy of what was changed", m.Key())
			}
			raw = rawjson.Quote(p.Text)
		}
		out = append(out, codec.Member{Key: m.Key(), Raw: raw})
	}
	return out, nil
}

// itemsOf writes parts as the elements of a content list.
func itemsOf(parts []middleware.Part) ([]string, error) {
	items := make([]string, len(parts))
	for i, p := range parts {
		var err error
		if items[i], err = itemOf(p); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// contentOf writes parts as content: a text wherever that loses nothing, as
// not every server takes a list.
func contentOf(role middleware.Role, parts []middleware.Part) (string, error) {
	assistant := role == middleware.RoleAssistant
	if len(parts) == 0 && assistant {
		return "null", nil
	}
	plain := len(parts) < 2 || assistant
	var text strings.Builder
	for _, p := range parts {
		h, err := handleOf(p)
		if err != nil {
			return "", err
		}
		if p.Kind == middleware.PartMedia && assistant && h == nil {
			return "", codec.Unencodablef("media in an assistant message")
		}
		plain = plain && p.Kind == middleware.PartText && (h == nil || h.v.Kind() == rawjson.String)
		text.WriteString(p.Text)
	}
	if plain {
		return rawjson.Quote(text.String()), nil
	}
	items, err := itemsOf(parts)
	return codec.Array(items), err
}

// callEdits is partEdits for the calls.
func callEdits(v rawjson.Value, h *message, m middleware.Message) (members []codec.Member, inner []rawjson.Edit, err error) {
	if slices.EqualFunc(m.ToolCalls, h.snap.ToolCalls, sameCall) {
		return nil, nil, nil
	}
	f := readFields(v)
	old := oldCall(h.snap)
	if !old && f.hasFunction() && len(h.snap.ToolCalls) > 0 {
		return nil, nil, codec.Unencodablef("a call in both forms")
	}
	if len(m.ToolCalls) == 0 {
		key := "tool_calls"
		if old {
			key = "function_call"
		}
		return []codec.Member{{Key: key}}, nil, nil
	}
	if old && len(m.ToolCalls) > 1 {
		return nil, nil, codec.Unencodablef("a function_call has room for one call")
	}
	items := make([]string, len(m.ToolCalls))
	for i, c := range m.ToolCalls {
		if items[i], err = callText(c, old); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case old:
		return []codec.Member{{Key: "function_call", Raw: items[0]}}, nil, nil
	case f.calls.Kind() == rawjson.Array && f.calls.Len() > 0:
		if _, err := codec.Only(v, "tool_calls"); err != nil {
			return nil, nil, err
		}
		return nil, codec.Splice(f.calls, items), nil
	}
	return []codec.Member{{Key: "tool_calls", Raw: codec.Array(items)}}, nil, nil
}
