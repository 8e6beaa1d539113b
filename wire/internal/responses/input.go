package responses

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// input turns the messages of a request into the items of its input.
type input struct {
	provider
	messages []middleware.Message
	turns    []turn                         // that the request had
	calls    map[string]middleware.ToolCall // the last one of each id; see called
}

// items returns the items of runs. A message that the request had is found by its
// place there, any other one by the text of its Native.
func (in *input) items(runs []lens.Run) ([]string, error) {
	var out []string
	for _, run := range runs {
		m := run.Messages[0]
		var t *turn
		var err error
		if at := run.At[0]; at >= 0 {
			t = &in.turns[at]
		} else if t, err = again(m); err != nil {
			return nil, err
		}
		raws, err := in.message(m, t)
		if err != nil {
			return nil, err
		}
		out = append(out, raws...)
	}
	return out, nil
}

// single returns the text of the one message that was the whole input, and still
// can be. As soon as there is a second message, the input becomes a list.
func (in *input) single(runs []lens.Run) (string, bool) {
	if len(runs) != 1 || runs[0].At[0] < 0 || in.turns[runs[0].At[0]].place != asInput {
		return "", false
	}
	m := runs[0].Messages[0]
	return m.Text(), m.Role == middleware.RoleUser && len(m.Parts) == 1 && m.Parts[0].Kind == middleware.PartText
}

// message returns the items of one message, which was t; nil: it is not of this
// format. A message of the client is one item, one of the model any number.
func (in *input) message(m middleware.Message, t *turn) ([]string, error) {
	switch {
	case t != nil && t.place == asInstructions && codec.SameMessage(t.message, m):
		return []string{on.Object(lens.Text("role", string(m.Role)), lens.Raw("content", m.Native.Raw))}, nil
	case t != nil && (t.place == asInstructions || t.place == asInput && t.message.Role != m.Role):
		t = nil
	case t != nil && t.message.Role != m.Role:
		return nil, codec.Unencodablef("a message that changed its role")
	}
	if m.Role == middleware.RoleAssistant {
		return in.turn(m, t)
	}
	if len(m.ToolCalls) > 0 {
		return nil, codec.Unencodablef("calls in a %s message", m.Role)
	}
	var raw string
	var err error
	switch {
	case t == nil || len(t.items) != 1:
		raw, err = in.fresh(m)
	case codec.SameMessage(t.message, m):
		raw = t.items[0].val.Raw()
	case m.Role == middleware.RoleTool:
		raw, err = in.result(m, t.message, t.items[0].val)
	case t.items[0].sort != isMessage:
		err = codec.Unencodablef("a change of an item that holds no text")
	default:
		raw, err = withContent(t.items[0].val, "content", m.Parts, "input_text")
	}
	return []string{raw}, err
}

// turn writes the model's own message. That of an answer is not written where
// the provider holds the conversation, as it has it already; and reasoning that
// the provider neither kept nor gave away is left out, as it would look for it
// in vain.
func (in *input) turn(m middleware.Message, t *turn) ([]string, error) {
	echoed := t != nil && t.answer
	if echoed && in.held {
		m.ToolCalls = slices.Clone(m.ToolCalls)
		for i, was := range t.message.ToolCalls {
			if i == len(m.ToolCalls) {
				break
			}
			m.ToolCalls[i].Name = was.Name // package batch echoes rubbish in a form that any provider takes
			if m.ToolCalls[i].Arguments == "{}" {
				m.ToolCalls[i].Arguments = was.Arguments
			}
		}
		if !codec.SameMessage(t.message, m) {
			return nil, codec.Unencodablef("a change of a turn that the provider holds")
		}
		return nil, nil
	}
	out, err := t.write(m, "")
	var raws []string
	for _, o := range out {
		gone := false
		if echoed && o.from >= 0 {
			it := t.items[o.from]
			gone = it.odd || (!in.stored || t.lost) && o.sort == isReasoning && isReference(it.val)
		}
		if !gone {
			raws = append(raws, o.raw)
		}
	}
	return raws, err
}

// withoutOrphans leaves out reasoning whose call was taken out: the provider
// refuses it without the item that followed it.
func withoutOrphans(out []written, items []item) []written {
	keep := make([]bool, len(out))
	for i := len(out) - 1; i >= 0; i-- {
		at := out[i].from
		switch {
		case out[i].sort != isReasoning || at < 0 || at+1 == len(items):
			keep[i] = true
		case i+1 == len(out):
		case out[i+1].sort == isReasoning:
			keep[i] = out[i+1].from == at+1 && keep[i+1]
		default:
			keep[i] = true
		}
	}
	i := -1
	return slices.DeleteFunc(out, func(written) bool { i++; return !keep[i] })
}

// isReference reports whether a reasoning item is no more than its id and a
// summary: the provider has the rest. One with encrypted_content, which a client asks
// for, or with its content, as servers of open models write it, holds all of it.
func isReference(v rawjson.Value) bool {
	return v.Get("encrypted_content").Str() == "" && v.Get("content").Len() == 0
}

// result edits v, which answers a call. The format has no mark of failure and no
// name there; outputs that are objects belong to tools of the provider's making.
func (in *input) result(m, was middleware.Message, v rawjson.Value) (string, error) {
	switch {
	case m.IsError != was.IsError:
		return "", codec.Unencodablef("an error mark on a result")
	case m.ToolName != was.ToolName && m.ToolName != in.called(m.ToolCallID).Name:
		return "", codec.Unencodablef("a name for a result")
	}
	raw := v.Raw()
	if m.ToolCallID != was.ToolCallID {
		_, key := answeredID(v)
		var err error
		if raw, err = on.Set(v, lens.Text(key, m.ToolCallID)); err != nil {
			return "", err
		}
	}
	was.ToolCallID, was.ToolName = m.ToolCallID, m.ToolName
	if codec.SameMessage(was, m) {
		return raw, nil
	}
	if typ := v.Get("type").Str(); v.Get("output").Kind() == rawjson.Object || typ == "tool_search_output" || typ == "mcp_approval_response" {
		return "", codec.Unencodablef("another result for a call of kind %s", middleware.KindBuiltin)
	}
	v, err := codec.ParseObject(raw)
	if err != nil {
		return "", err
	}
	return withContent(v, "output", m.Parts, "input_text")
}

// called returns the last call of that id, the zero call if there is none. A fresh
// result needs its kind, which tells the type of the item.
func (in *input) called(id string) middleware.ToolCall {
	if in.calls == nil {
		in.calls = map[string]middleware.ToolCall{}
		for _, m := range in.messages {
			for _, c := range m.ToolCalls {
				in.calls[c.ID] = c
			}
		}
	}
	return in.calls[id]
}

// fresh writes a message of the client from its neutral fields. That a result
// is an error is for its text to say. The result of a built-in call has a form of its
// own, which neutral fields do not hold: a screenshot, the outcome of a patch.
func (in *input) fresh(m middleware.Message) (string, error) {
	switch m.Role {
	case middleware.RoleTool:
		typ := "function_call_output"
		switch in.called(m.ToolCallID).Kind {
		case middleware.KindCustom:
			typ = "custom_tool_call_output"
		case middleware.KindBuiltin:
			return "", codec.Unencodablef("a result for a call of kind %s", middleware.KindBuiltin)
		}
		out, err := freshContent(m.Parts)
		return on.Object(lens.Text("type", typ), lens.Text("call_id", m.ToolCallID), lens.Raw("output", out)), err
	case middleware.RoleSystem, middleware.RoleUser:
	default:
		return "", codec.Unencodablef("a message of role %q", m.Role)
	}
	if len(m.Parts) == 1 && on.Raw(m.Parts[0].Native) != "" && !isBlock(m.Parts[0]) {
		return partText(m.Parts[0], "") // an item that stands for the message
	}
	content, err := freshContent(m.Parts)
	return on.Object(lens.Text("role", string(m.Role)), lens.Raw("content", content)), err
}

// instructions returns what a leading system message is as instructions, which
// hold text only.
func instructions(m middleware.Message) (string, bool) {
	isText := func(p middleware.Part) bool { return p.Kind == middleware.PartText }
	only := !slices.ContainsFunc(m.Parts, func(p middleware.Part) bool { return !isText(p) })
	return m.Text(), only && m.Role == middleware.RoleSystem && len(m.ToolCalls) == 0
}
