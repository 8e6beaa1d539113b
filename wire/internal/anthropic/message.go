package anthropic

import (
	"math"
	"strconv"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// contentOf returns the blocks that the member key of holder holds: those of a
// list, or one text.
func contentOf(holder rawjson.Value, key string) ([]rawjson.Value, error) {
	if v := on.Get(holder, key); v.Kind() == rawjson.String {
		return []rawjson.Value{v}, nil
	}
	return on.List(holder, key, rawjson.Object)
}

// readPrompt reads a block of the system prompt.
func readPrompt(v rawjson.Value) (middleware.Message, error) {
	m := middleware.Message{Role: middleware.RoleSystem, Native: on.Native(v.Raw())}
	b, err := readBlock(v, m.Role)
	add(&m, b)
	return m, err
}

// readMessage reads an element of messages: a message for every tool result, and
// one for what stands between two of them. For example,
//
//	{"role": "user", "content": [{"type": "tool_result", …}, {"type": "tool_result", …}, {"type": "text", …}]}
//
// becomes two tool messages and a user message. The messages of one element are
// found again by lens.History, and written as one element. names has the names of
// the calls so far, by id, because a result does not repeat the name.
func readMessage(v rawjson.Value, names map[string]string) (out []middleware.Message, err error) {
	role := middleware.Role(v.Get("role").Str())
	switch role {
	case middleware.RoleUser, middleware.RoleAssistant, middleware.RoleSystem:
	default:
		return nil, codec.Shapef("a message of an unknown role, or none")
	}
	content, err := contentOf(v, "content")
	if err != nil {
		return nil, err
	}
	open := false // whether the last message takes further blocks
	for _, c := range content {
		if isResult(role, c) {
			m, err := readResult(c, names)
			if err != nil {
				return nil, err
			}
			out, open = append(out, m), false
			continue
		}
		if !open {
			out, open = append(out, middleware.Message{Role: role}), true
		}
		b, err := readBlock(c, role)
		if err != nil {
			return nil, err
		}
		if b.isCall {
			names[b.call.ID] = b.call.Name
		}
		add(&out[len(out)-1], b)
	}
	if len(out) == 0 {
		out = []middleware.Message{{Role: role}}
	}
	for i := range out {
		text := v.Raw()
		if len(out) > 1 {
			text = share(out[i])
		}
		out[i].Native = on.Native(text)
	}
	return out, nil
}

// isResult reports whether a block is a tool message of its own. Only the client
// answers calls: a result in a message of the assistant is of a hosted tool.
func isResult(role middleware.Role, v rawjson.Value) bool {
	return role == middleware.RoleUser && v.Get("type").Str() == "tool_result"
}

// add adds a block to the parts or to the calls of m.
func add(m *middleware.Message, b block) {
	if b.isCall {
		m.ToolCalls = append(m.ToolCalls, b.call)
	} else {
		m.Parts = append(m.Parts, b.part)
	}
}

// share returns m, one of several messages of an element, as an element of its
// own. Other members of the element are not repeated: they would be, for each of
// its results.
func share(m middleware.Message) string {
	var blocks []string
	if m.Role == middleware.RoleTool {
		blocks = []string{m.Native.Raw}
	} else {
		for _, p := range m.Parts {
			blocks = append(blocks, p.Native.Raw)
		}
	}
	return on.Object(lens.Text("role", "user"), lens.Raw("content", codec.Array(blocks)))
}

// readResult reads a tool_result, whose text it leaves as Native.
func readResult(v rawjson.Value, names map[string]string) (m middleware.Message, err error) {
	m = middleware.Message{Role: middleware.RoleTool, Native: on.Native(v.Raw())}
	if m.ToolCallID, err = on.Text(v, "tool_use_id"); err != nil {
		return m, err
	}
	m.ToolName = names[m.ToolCallID]
	failed, err := on.Kind(v, "is_error", rawjson.Bool)
	if err != nil {
		return m, err
	}
	m.IsError = failed.Raw() == "true"
	blocks, err := readBlocks(v, "content", m.Role)
	for _, b := range blocks {
		add(&m, b)
	}
	return m, err
}

// origin is what a message was, when it was read. It is found from the text of the
// message's Native alone, so that a message that comes from storage, or from another
// request, is edited in the same way. The zero origin is that of a fresh message.
type origin struct {
	v      rawjson.Value // the element of messages, absent for none
	result rawjson.Value // of a tool message
	texts  []string      // of the blocks
}

// readOrigin reads the text behind m again. It has no origin if it had another
// role, or was an answer without content, which no request can hold.
func readOrigin(m middleware.Message) (o origin, err error) {
	v, err := on.Value(m.Native)
	role := middleware.Role(v.Get("role").Str())
	if err != nil || role == "" {
		if m.Role == middleware.RoleSystem && v.Exists() { // a block of the system prompt
			o.texts = []string{v.Raw()}
		}
		return o, err
	}
	content, err := contentOf(v, "content")
	if err == nil && len(content) > 0 && isResult(role, content[0]) {
		if len(content) > 1 {
			return o, codec.Unencodablef("what was stored: several messages")
		}
		role, o.result = middleware.RoleTool, content[0]
		content, err = contentOf(o.result, "content")
	}
	if role != m.Role || role == middleware.RoleAssistant && len(content) == 0 {
		return origin{}, stored(err)
	}
	o.v, o.texts = v, lens.Raws(content)
	return o, stored(err)
}

// stored makes ErrUnencodable of the error of a text that was stored.
func stored(err error) error {
	if err != nil {
		return codec.Unencodablef("what was stored: %v", err)
	}
	return nil
}

// contentsOf returns the blocks of m, and its origin. A result is one block. Each
// block is a JSON text: an object, or a string for a text with nothing beside it.
func contentsOf(m middleware.Message) (o origin, contents []string, err error) {
	if m.Role != middleware.RoleAssistant && len(m.ToolCalls) > 0 {
		return o, nil, codec.Unencodablef("tool calls that are not the assistant's")
	}
	if o, err = readOrigin(m); err != nil {
		return o, nil, err
	}
	if contents, err = historyTexts(m, o.texts); err != nil || m.Role != middleware.RoleTool {
		return o, contents, err
	}
	text, err := o.resultText(m, contents)
	return o, []string{text}, err
}

// historyTexts returns the parts and calls of m in the order of the wire; old are the texts
// that m held. It leaves out what no provider takes: reasoning of another one,
// and text that is empty, unless it was there.
func historyTexts(m middleware.Message, old []string) ([]string, error) {
	return on.Arrange(m, old, math.MaxInt, func(p middleware.Part, at int) (string, error) {
		text, err := partText(p)
		if p.Kind == middleware.PartText && p.Text == "" && (at < 0 || text != old[at]) {
			text = ""
		}
		return text, err
	}, func(c middleware.ToolCall, _ int) (string, error) { return callText(c, true) })
}

// resultText returns m, a tool message with those contents, as a tool_result.
func (o origin) resultText(m middleware.Message, contents []string) (string, error) {
	if !o.result.Exists() {
		members := resultMembers(o.result, m)
		if len(contents) > 0 {
			members = append(members[:2:2], lens.Raw("content", freshContent(contents)), members[2])
		}
		return on.Object(members...), nil
	}
	was, err := readResult(o.result, nil)
	if err != nil {
		return "", stored(err)
	}
	e := on.Edit(o.result)
	e.Put(lens.Differ(resultMembers(o.result, was), resultMembers(o.result, m))...)
	putContent(e, o.result, "content", contents)
	return e.Text()
}

// resultMembers projects a result, but for its content. v is its text. A flag
// that the text has stays, as false too.
func resultMembers(v rawjson.Value, m middleware.Message) []lens.Member {
	failed := lens.Flag("is_error", m.IsError)
	if on.Get(v, "is_error").Exists() {
		failed.Raw = strconv.FormatBool(m.IsError)
	}
	return []lens.Member{lens.Text("type", "tool_result"), lens.Text("tool_use_id", m.ToolCallID), failed}
}

// element returns the messages of run as an element of messages. It is "" for an
// assistant message without content, which the provider refuses.
func (h *request) element(run lens.Run) (string, error) {
	var contents []string
	var o origin
	for _, m := range run.Messages {
		of, more, err := contentsOf(m)
		if err != nil {
			return "", err
		}
		o, contents = of, append(contents, more...)
	}
	role := run.Messages[0].Role
	switch role {
	case middleware.RoleTool:
		role = middleware.RoleUser
	case middleware.RoleAssistant:
		if len(contents) == 0 {
			return "", nil
		}
	case middleware.RoleUser, middleware.RoleSystem:
	default:
		return "", codec.Unencodablef("a message of an unknown role")
	}
	switch {
	case run.Group >= 0:
		o.v = h.elements[run.Group]
	case len(run.Messages) > 1:
		o.v = rawjson.Value{} // several elements of other requests
	}
	if !o.v.Exists() {
		return on.Object(lens.Text("role", string(role)), lens.Raw("content", freshContent(contents))), nil
	}
	e := on.Edit(o.v)
	putContent(e, o.v, "content", contents)
	return e.Text()
}
