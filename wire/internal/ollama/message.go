package ollama

import (
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// conversation knows which call a result is for, as a reader of the messages so
// far takes it: by its id, else by its name, else by its place among the results.
// The calls that a result may be for are those of the last message that had any.
type conversation struct {
	calls   int // so far
	turn    []middleware.ToolCall
	pairing codec.Pairing // of turn
}

// result is what a tool message says of its call.
type result struct{ id, name string }

// read reads the next message, and what a result says of its call. In the neutral
// message the id and the name of the call are complete; r has what is written.
func (c *conversation) read(v rawjson.Value) (m middleware.Message, r result, err error) {
	if v.Kind() != rawjson.Object {
		return m, r, codec.Shapef("a message of kind %s", v.Kind())
	}
	role, err := on.Text(v, "role")
	if err != nil {
		return m, r, err
	}
	m.Role = middleware.Role(strings.ToLower(role)) // as the server does
	if m.Parts, err = readParts(v); err != nil {
		return m, r, err
	}
	calls, err := on.List(v, "tool_calls", rawjson.Object)
	if err != nil {
		return m, r, err
	}
	for _, v := range calls {
		c.calls++
		call, err := readCall(v)
		if err != nil {
			return m, r, err
		}
		if call.ID == "" {
			call.ID = codec.PlaceID(c.calls)
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	c.begin(m.ToolCalls)
	if m.Role == middleware.RoleTool {
		if r, err = readResult(v); err != nil {
			return m, r, err
		}
		whole := c.complete(r, c.pairing.Result(r.id, r.name))
		m.ToolCallID, m.ToolName = whole.id, whole.name
	}
	m.Native = on.Native(v.Raw())
	return m, r, nil
}

// readResult reads what a tool message says of its call. Some clients write the
// name as other providers have it.
func readResult(v rawjson.Value) (r result, err error) {
	if r.id, err = on.Text(v, "tool_call_id"); err != nil {
		return r, err
	}
	if r.name, err = on.Text(v, "tool_name"); err == nil && r.name == "" {
		r.name, err = on.Text(v, "name")
	}
	return r, err
}

// begin starts the turn of an assistant message.
func (c *conversation) begin(calls []middleware.ToolCall) {
	if len(calls) > 0 {
		c.turn = slices.Clone(calls)
		c.pairing.Turn(c.turn)
	}
}

// complete returns r with what it leaves out of call i of the turn, -1 for none.
func (c *conversation) complete(r result, i int) result {
	if i >= 0 && r.id == "" {
		r.id = c.turn[i].ID
	}
	if i >= 0 && r.name == "" {
		r.name = c.turn[i].Name
	}
	return r
}

// origin is the message that a message was.
type origin struct {
	v   rawjson.Value // its object; absent: it is not of this format
	was middleware.Message
	result
	same bool // nothing in it has changed
}

// readOrigin reads the text behind n again.
func readOrigin(n *middleware.Native) (o origin, err error) {
	if o.v, err = on.Value(n); err != nil || !o.v.Exists() {
		return o, err
	}
	if o.was, o.result, err = new(conversation).read(o.v); err != nil {
		return o, codec.Unencodablef("the Native of a message is none")
	}
	return o, nil
}

// writer writes the messages of a request in order. Its conversation is what a
// reader makes of what was written so far.
type writer struct {
	conversation
	written map[string]bool // the calls of the turn: whether their id is on the wire
}

// text returns m as it stands in a request: the text of its origin with what has
// changed, or a fresh one.
func (w *writer) text(m middleware.Message, o origin) (string, error) {
	w.begin(m.ToolCalls)
	if len(m.ToolCalls) > 0 {
		w.written = map[string]bool{}
	}
	for _, c := range m.ToolCalls {
		w.written[c.ID] = !codec.IsPlaceID(c.ID) || hasID(c.Native)
	}
	r := o.result
	if m.Role == middleware.RoleTool { // even one that is as it was: its call may have changed
		var err error
		if r, err = w.result(m, o); err != nil {
			return "", err
		}
	}
	switch {
	case o.same && r == o.result:
		return o.v.Raw(), nil
	case o.v.Exists() && m.IsError:
		return "", codec.Unencodablef("a mark of failure")
	}
	now, err := contentOf(m.Parts, false)
	if err != nil {
		return "", err
	}
	calls, err := callTexts(m.ToolCalls, false)
	if err != nil {
		return "", err
	}
	if !o.v.Exists() {
		said, of := now.members(m.Role), r.members(o.v)
		return on.Object(slices.Concat(said, []lens.Member{lens.List("images", now.images), lens.List("tool_calls", calls)}, of)...), nil
	}
	was, err := contentOf(o.was.Parts, false)
	if err != nil {
		return "", err
	}
	edit := on.Edit(o.v)
	edit.Put(lens.Differ(was.members(o.was.Role), now.members(m.Role))...)
	edit.Put(lens.Differ(o.members(o.v), r.members(o.v))...)
	edit.Elements("images", now.images)
	edit.Elements("tool_calls", calls)
	return edit.Text()
}

// members projects what a result says of its call. v is the message that is
// edited: a client that writes the name as other providers have it keeps its way.
func (r result) members(v rawjson.Value) []lens.Member {
	name := "tool_name"
	if !v.Get(name).Exists() && v.Get("name").Str() != "" {
		name = "name"
	}
	return []lens.Member{lens.Word(name, r.name), lens.Word("tool_call_id", r.id)}
}

// result returns what m, a tool message, says of its call: what its origin says,
// unless a reader takes that for something else. It is ErrUnencodable if a reader
// takes the result for that of another call: without an id, only name and place
// tell.
func (w *writer) result(m middleware.Message, o origin) (result, error) {
	r := o.result
	if !o.v.Exists() {
		r = w.complete(result{m.ToolCallID, m.ToolName}, w.pairing.Find(m.ToolCallID, m.ToolName))
		r.id = w.wireID(m.ToolCallID)
	} else if is := w.complete(r, w.pairing.Find(r.id, r.name)); is.id != m.ToolCallID || is.name != m.ToolName {
		if is.id != m.ToolCallID {
			r.id = w.wireID(m.ToolCallID)
		}
		if is.name != m.ToolName && o.was.ToolName != m.ToolName {
			r.name = m.ToolName
		}
	}
	i := w.pairing.Result(r.id, r.name)
	if _, known := w.written[m.ToolCallID]; known && i >= 0 && w.turn[i].ID != m.ToolCallID {
		return r, codec.Unencodablef("results in another order than their calls, which have no ids")
	}
	return r, nil
}

// wireID returns the id by which a result names its call on the wire.
func (w *writer) wireID(id string) string {
	if codec.IsPlaceID(id) && !w.written[id] {
		return ""
	}
	return id
}
