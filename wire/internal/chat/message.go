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

// list is a list to write, by its elements: content or tool_calls. Elements that the
// message has already are spliced, so that they keep their bytes.
type list struct {
	key   string
	items []string
}

// change is what a message has to be given: members, and lists that it may have
// already. It is found out once, from the message as it stands in history, and
// written to one of three places: that text itself, the message of a whole
// answer, which differs from it in some members, or the deltas of a stream.
type change struct {
	members []lens.Member
	lists   []list
	said    bool // its parts change
}

// empty reports whether nothing has to be written.
func (c *change) empty() bool { return len(c.members) == 0 && len(c.lists) == 0 }

// changeOf returns what makes v, the text that was was read from, say what now
// does.
func changeOf(v rawjson.Value, was, now middleware.Message) (c change, err error) {
	if now.Role == "" {
		return c, codec.Unencodablef("a message without a role")
	}
	before, _ := headMembers(v, was)
	after, err := headMembers(v, now)
	if err != nil {
		return c, err
	}
	c.members = lens.Differ(before, after)
	if err := c.parts(v, was.Parts, now); err != nil {
		return c, err
	}
	return c, c.calls(v, was.ToolCalls, now.ToolCalls)
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

// parts finds out what has to change for the parts of now. Those in members of
// their own and those in content do not know of each other: the order in which a
// middleware puts one of each is not kept.
func (c *change) parts(v rawjson.Value, was []middleware.Part, now middleware.Message) error {
	if slices.EqualFunc(was, now.Parts, samePart) {
		return nil
	}
	c.said = true
	wasItems, wasOwn, err := sortParts(was)
	if err != nil {
		return err
	}
	items, own, err := sortParts(now.Parts)
	if err != nil {
		return err
	}
	before, err := ownMembers(wasOwn)
	if err != nil {
		return err
	}
	after, err := ownMembers(own)
	if err != nil {
		return err
	}
	for _, m := range before {
		if !slices.ContainsFunc(after, func(n lens.Member) bool { return n.Key == m.Key }) {
			c.members = append(c.members, lens.None(m.Key))
		}
	}
	c.members = append(c.members, lens.Differ(before, after)...)
	if slices.EqualFunc(wasItems, items, samePart) {
		return nil
	}
	content := v.Get("content")
	if content.Kind() != rawjson.Array || len(items) == 0 {
		raw, err := contentText(now.Role, items)
		c.members = append(c.members, lens.Raw("content", raw))
		return err
	}
	texts, err := itemTexts(lens.Raws(slices.Collect(content.Each())), items)
	c.lists = append(c.lists, list{"content", texts})
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

// calls finds out what has to change for the calls now. A message that had its
// call in the old form keeps that form.
func (c *change) calls(v rawjson.Value, was, now []middleware.ToolCall) error {
	if slices.EqualFunc(was, now, sameCall) {
		return nil
	}
	old, key := isOldTurn(v), "tool_calls" // by the place: an element of tool_calls may look like a function_call
	if len(was) == 0 {
		old = oldCall(now)
	}
	switch {
	case !old && hasFunction(v) && len(was) > 0:
		return codec.Unencodablef("a call in both forms")
	case old && len(now) > 1:
		return codec.Unencodablef("a function_call has room for one call")
	case old:
		key = "function_call"
	}
	if len(now) == 0 {
		c.members = append(c.members, lens.None(key))
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
		c.members = append(c.members, lens.Raw(key, texts[0]))
	} else {
		c.lists = append(c.lists, list{key, texts})
	}
	return nil
}

// edit adds the change to an edit of the object that has the message at path.
func (c *change) edit(e *lens.Edit, path string) {
	for _, m := range c.members {
		e.Put(lens.Raw(path+m.Key, m.Raw))
	}
	for _, l := range c.lists {
		e.Elements(path+l.key, l.items)
	}
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
	c, err := changeOf(v, was, m)
	if err != nil {
		return "", err
	}
	e := on.Edit(v)
	c.edit(e, "")
	return e.Text()
}

// freshMessage writes m from its neutral fields, its parts and calls from their
// Native where they have one of this format.
func freshMessage(m middleware.Message, before []middleware.Message) (string, error) {
	if m.Role == "" {
		return "", codec.Unencodablef("a message without a role")
	}
	items, own, err := sortParts(m.Parts)
	if err != nil {
		return "", err
	}
	content, err := contentText(m.Role, items)
	if err != nil {
		return "", err
	}
	if content == "null" && len(m.ToolCalls) == 0 {
		content = `""`
	}
	members := []lens.Member{lens.Text("role", string(m.Role))}
	switch {
	case m.Role != middleware.RoleTool:
	case answersOld(m.ToolCallID, before):
		members = []lens.Member{lens.Text("role", functionRole), lens.Text("name", m.ToolName)}
	default:
		members = append(members, lens.Text("tool_call_id", m.ToolCallID))
	}
	more, err := ownMembers(own)
	if err != nil {
		return "", err
	}
	members = append(append(members, lens.Raw("content", content)), more...)
	var c change
	if err := c.calls(rawjson.Value{}, nil, m.ToolCalls); err != nil {
		return "", err
	}
	for _, l := range c.lists {
		c.members = append(c.members, lens.List(l.key, l.items))
	}
	return codec.Object(append(members, c.members...)...), nil
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
