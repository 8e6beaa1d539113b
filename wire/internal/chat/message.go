package chat

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// functionRole is the role of the reply to a call in the old form.
const functionRole = "function"

// roleOf returns the neutral role of the wire's word; others pass as they are.
func roleOf(word string) middleware.Role {
	switch word {
	case "developer":
		return middleware.RoleSystem
	case functionRole:
		return middleware.RoleTool
	}
	return middleware.Role(word)
}

// readMessage reads a message of a request's history.
func readMessage(v rawjson.Value) (middleware.Message, error) {
	m := middleware.Message{Native: on.Native(v.Raw())}
	if v.Kind() != rawjson.Object {
		return m, codec.Shapef("a message is of kind %s", v.Kind())
	}
	if m.Role = roleOf(v.Get("role").Str()); m.Role == "" {
		return m, codec.Shapef("a message without a role")
	}
	if m.Role == middleware.RoleTool {
		m.ToolCallID, m.ToolName = codec.Text(v.Get("tool_call_id")), v.Get("name").Str()
	}
	var err error
	if m.Parts, err = readParts(v); err != nil {
		return m, err
	}
	m.ToolCalls, err = readCalls(v)
	return m, err
}

// editMessage returns v, a message that says what was does, with what now says.
func editMessage(v rawjson.Value, was, now middleware.Message) (string, error) {
	if now.Role == "" {
		return "", codec.Unencodablef("a message without a role")
	}
	before, _ := headMembers(v, was)
	after, err := headMembers(v, now)
	if err != nil {
		return "", err
	}
	e := on.Edit(v)
	e.Put(lens.Differ(before, after)...)
	if err := editParts(e, v, was.Parts, now); err != nil {
		return "", err
	}
	if err := editCalls(e, v, was.ToolCalls, now.ToolCalls); err != nil {
		return "", err
	}
	return e.Text()
}

// headMembers projects what a message has beside parts and calls. v is the text
// to edit, absent for a fresh message. A reply in the old form has no id, and a
// name that the text does not have is a view.
func headMembers(v rawjson.Value, m middleware.Message) ([]lens.Member, error) {
	word := v.Get("role")
	members := []lens.Member{lens.Text("role", string(m.Role))}
	if roleOf(word.Str()) == m.Role {
		members[0].Raw = word.Raw()
	}
	old := word.Str() == functionRole
	if old && m.ToolCallID != "" && !codec.IsPlaceID(m.ToolCallID) {
		return nil, codec.Unencodablef("an id for the reply to a function_call")
	}
	if !old && (m.Role == middleware.RoleTool || m.ToolCallID != "") {
		members = append(members, lens.Text("tool_call_id", m.ToolCallID))
	}
	if v.Get("name").Str() != "" && roleOf(word.Str()) == middleware.RoleTool {
		members = append(members, lens.Text("name", m.ToolName))
	}
	return members, nil
}

// editParts puts the parts of now into an edit of v. Those in members of
// their own and those in content do not know of each other: the order in which a
// middleware puts one of each is not kept.
func editParts(e *lens.Edit, v rawjson.Value, was []middleware.Part, now middleware.Message) error {
	if slices.EqualFunc(was, now.Parts, samePart) {
		return nil
	}
	wasItems, before, err := sortParts(was)
	if err != nil {
		return err
	}
	items, after, err := sortParts(now.Parts)
	if err != nil {
		return err
	}
	for _, m := range before {
		if !slices.ContainsFunc(after, func(n lens.Member) bool { return n.Key == m.Key }) {
			e.Put(lens.None(m.Key))
		}
	}
	e.Put(lens.Differ(before, after)...)
	if slices.EqualFunc(wasItems, items, samePart) {
		return nil
	}
	content := v.Get("content")
	if content.Kind() != rawjson.Array || len(items) == 0 {
		raw, err := contentText(now.Role, items)
		e.Put(lens.Raw("content", raw))
		return err
	}
	texts, err := itemTexts(lens.Raws(slices.Collect(content.Each())), items)
	e.Elements("content", texts)
	return err
}

// itemTexts writes parts as elements of a list that has the texts have. A bare
// text among them stays one.
func itemTexts(have []string, parts []middleware.Part) ([]string, error) {
	texts := make([]string, len(parts))
	for i, p := range parts {
		texts[i] = on.Raw(p.Native)
	}
	for i, at := range lens.Align(have, texts) {
		v, err := on.Value(parts[i].Native)
		if err == nil && (at < 0 || !codec.SamePart(readPart(v), parts[i])) {
			texts[i], err = itemText(parts[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// samePart reports whether a part is what was decoded.
func samePart(was, now middleware.Part) bool {
	return codec.SameNative(was.Native, now.Native) && codec.SamePart(was, now)
}

// editCalls puts the calls now into an edit of v. A message that had its call in the old
// form keeps that form.
func editCalls(e *lens.Edit, v rawjson.Value, was, now []middleware.ToolCall) error {
	if slices.EqualFunc(was, now, sameCall) {
		return nil
	}
	old, key := isOldTurn(v), "tool_calls" // by the place: an element of tool_calls may look like a function_call
	if len(was) == 0 {
		old = oldCall(now)
	}
	if old {
		key = "function_call"
	}
	switch {
	case !old && hasFunction(v) && len(was) > 0:
		return codec.Unencodablef("a call in both forms")
	case old && len(now) > 1:
		return codec.Unencodablef("a function_call has room for one call")
	case len(now) == 0:
		e.Put(lens.None(key))
		return nil
	}
	texts := make([]string, len(now))
	for i, call := range now {
		var err error
		if texts[i], err = callText(call, old); err != nil {
			return err
		}
	}
	if old {
		e.Put(lens.Raw(key, texts[0]))
	} else {
		e.Elements(key, texts)
	}
	return nil
}

// messageText writes m as it stands in a request: its own text with what differs
// set in it or, without one, afresh. before are the messages in front of it.
func messageText(m middleware.Message, before []middleware.Message) (string, error) {
	v, err := on.Value(m.Native)
	switch {
	case err != nil:
		return "", err
	case !v.Exists():
		return freshMessage(m, before)
	}
	was, err := readMessage(v)
	if err != nil {
		return "", codec.Unencodablef("what was stored: %v", err)
	}
	return editMessage(v, was, m)
}

// freshMessage writes m from its neutral fields, its parts and calls from their
// Native where they have one of this format: as a change of a message that says nothing.
func freshMessage(m middleware.Message, before []middleware.Message) (string, error) {
	members := []lens.Member{lens.Text("role", string(m.Role))}
	switch {
	case m.Role != middleware.RoleTool:
	case answersOld(m.ToolCallID, before):
		members, m.ToolCallID = []lens.Member{lens.Text("role", functionRole), lens.Text("name", m.ToolName)}, ""
	default:
		members = append(members, lens.Text("tool_call_id", ""))
	}
	content := lens.Text("content", "")
	if len(m.ToolCalls) > 0 {
		content.Raw = "null"
	}
	v, err := codec.ParseObject(codec.Object(append(members, content)...))
	if err != nil {
		return "", err
	}
	return editMessage(v, middleware.Message{Role: m.Role}, m)
}

// answersOld reports whether the call of that id, which one of before has, came
// in the old form.
func answersOld(id string, before []middleware.Message) bool {
	for _, m := range slices.Backward(before) {
		if slices.ContainsFunc(m.ToolCalls, func(c middleware.ToolCall) bool { return c.ID == id }) {
			return oldCall(m.ToolCalls)
		}
	}
	return false
}

// form is how a thing is written that comes in several forms, such as a call in
// tool_calls or in function_call. members projects onto the form that v has or, for
// a fresh one, onto the form that is wanted.
type form[T any] struct {
	read    func(v rawjson.Value) (T, error)
	fits    func(v rawjson.Value, was T) bool // v, which was is read from, can be edited
	members func(v rawjson.Value, value T) ([]lens.Member, error)
}

// rewrite is lens.Rewrite for a thing that comes in several forms: now is written
// afresh if the text of n has another one.
func rewrite[T any](n *middleware.Native, now T, same func(was, now T) bool, f form[T]) (string, error) {
	v, err := on.Value(n)
	if err != nil {
		return "", err
	}
	if v.Exists() {
		switch was, err := f.read(v); {
		case err != nil:
			return "", codec.Unencodablef("what was stored: %v", err)
		case same(was, now) && f.fits(v, was):
			return v.Raw(), nil
		case !f.fits(v, was):
			n = nil
		}
	}
	return lens.Rewrite(on, n, now, f.read, f.members)
}
