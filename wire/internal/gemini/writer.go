package gemini

import (
	"math"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// writer makes the contents of a request from messages.
type writer struct {
	of        *request // that is edited; nil: a fresh one
	replyRole string
	calls     map[string]wireCall // by neutral id
	out       []string
	open      *block
	read      reader // what the server makes of the turn's results so far
}

// wireCall is what the wire has for the call of a neutral id.
type wireCall struct{ id, name string }

// block is a content in the making.
type block struct {
	in       *content // that it was; nil: none
	role     string
	messages []middleware.Message
	turns    []*turn // of messages; nil for a new one
}

func (w *writer) contents(messages []middleware.Message) ([]string, error) {
	w.calls = map[string]wireCall{}
	for _, m := range messages {
		t, err := w.turn(m)
		if err != nil {
			return nil, err
		}
		if err := w.take(m, t); err != nil {
			return nil, err
		}
	}
	return w.out, w.close()
}

// turn returns the handle of m, nil if it is to be written from its fields.
func (w *writer) turn(m middleware.Message) (*turn, error) {
	t, err := codec.Handle(m.Native, dialect, readTurn)
	if err == nil && t != nil && t.in.n > 1 && t.in.of != w.of {
		t, err = readTurn(m.Native.Raw) // its content belongs to another request
	}
	if err != nil || t == nil || t.was.Role != m.Role {
		return nil, err
	}
	return t, nil
}

// take puts m into the open content, if it belongs there, or a new one. All
// results of a turn go into one; what was received as one stays one.
func (w *writer) take(m middleware.Message, t *turn) error {
	var in *content
	if t != nil {
		in = t.in
	}
	role := "user"
	switch m.Role {
	case middleware.RoleAssistant:
		role = "model"
	case middleware.RoleTool:
		role = w.replyRole
	case middleware.RoleUser:
	default:
		return codec.Unencodablef("a message of role %q that does not lead", m.Role)
	}
	if len(m.ToolCalls) > 0 && m.Role != middleware.RoleAssistant {
		return codec.Unencodablef("calls in a message of role %q", m.Role)
	}
	if !w.joins(m, in) {
		if err := w.close(); err != nil {
			return err
		}
		w.open = &block{in: in, role: role}
	}
	w.open.messages = append(w.open.messages, m)
	w.open.turns = append(w.open.turns, t)
	return nil
}

func (w *writer) joins(m middleware.Message, in *content) bool {
	if w.open == nil || m.Role == middleware.RoleAssistant {
		return false
	}
	if in != nil && in.of != nil && in.of == w.of {
		return in == w.open.in
	}
	return m.Role == middleware.RoleTool && w.open.messages[0].Role == middleware.RoleTool
}

// close writes the open content.
func (w *writer) close() error {
	b := w.open
	if b == nil {
		return nil
	}
	w.open = nil
	text, err := w.text(b)
	if err != nil {
		return err
	}
	w.out = append(w.out, text)
	return nil
}

func (w *writer) text(b *block) (string, error) {
	w.read.goesOn = w.read.goesOn && b.messages[0].Role == middleware.RoleAssistant
	same := b.in != nil && len(b.messages) == b.in.n
	for i, m := range b.messages {
		same = same && b.turns[i] != nil && b.turns[i].in == b.in && unchanged(m, b.turns[i].was)
	}
	if same {
		for i, m := range b.messages {
			if m.Role == middleware.RoleTool {
				if err := w.reaches(m, b.turns[i].reply.reply.id); err != nil {
					return "", err
				}
			}
			w.note(m)
		}
		return b.in.text, nil
	}
	items, err := w.items(b)
	if err != nil {
		return "", err
	}
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = item.raw
	}
	if b.in == nil {
		return freshContent(b.role, parts), nil
	}
	v, err := b.in.value()
	if err != nil {
		return "", err
	}
	edits, err := partEdits(v, parts)
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// items writes the parts of a content, in order.
func (w *writer) items(b *block) ([]item, error) {
	f := &finder{home: b.in}
	var rest, answers []item
	for i, m := range b.messages {
		if m.Role == middleware.RoleTool {
			it, err := w.result(m, b.turns[i], b.in)
			if err != nil {
				return nil, err
			}
			answers = append(answers, it)
			continue
		}
		parts, err := partItems(m.Parts, f)
		if err != nil {
			return nil, err
		}
		rest = append(rest, parts...)
		if m.Role == middleware.RoleAssistant {
			calls, err := callItems(m.ToolCalls, f, false)
			if err != nil {
				return nil, err
			}
			w.note(m)
			return merge(rest, calls, b.in.firstCall()), nil
		}
	}
	return merge(rest, answers, b.in.firstReply()), nil
}

// note keeps in mind what the wire has for the calls of m.
func (w *writer) note(m middleware.Message) {
	r := &w.read
	if len(m.ToolCalls) > 0 {
		if !r.goesOn {
			r.open, r.wireIDs = nil, false
		}
		r.open = append(r.open, m.ToolCalls...)
		r.paired, r.goesOn = false, true
	}
	for _, c := range m.ToolCalls {
		id := c.ID
		if p := pieceOf(c.Native); codec.IsPlaceID(id) && (p == nil || p.id == "") {
			id = ""
		}
		w.calls[c.ID] = wireCall{id, c.Name}
		r.wireIDs = r.wireIDs || id != ""
	}
}

// reaches is ErrUnencodable if the server takes the result m, of that id on the
// wire, for that of another call: without ids, only name and place tell.
func (w *writer) reaches(m middleware.Message, id string) error {
	call := w.read.answers(&reply{id: id, name: m.ToolName})
	if _, known := w.calls[m.ToolCallID]; known && call != m.ToolCallID && call != id {
		return codec.Unencodablef("results in another order than their calls, which have no ids")
	}
	return nil
}

// pieceOf returns the handle of a part or a call, nil if it has none.
func pieceOf(n *middleware.Native) *piece {
	p, _ := codec.Handle(n, dialect, readPiece)
	return p
}

// result writes a tool message: with an id where the call has one.
func (w *writer) result(m middleware.Message, t *turn, home *content) (item, error) {
	call, known := w.calls[m.ToolCallID]
	if !known && !codec.IsPlaceID(m.ToolCallID) {
		call.id = m.ToolCallID
	}
	if t == nil {
		if m.ToolName == "" {
			m.ToolName = call.name
		}
		if err := w.reaches(m, call.id); err != nil {
			return item{}, err
		}
		text, err := freshReply(m, call.id)
		return item{raw: text, at: anew}, err
	}
	id := &call.id
	if m.ToolCallID == t.was.ToolCallID || t.reply.reply.id == "" && codec.IsPlaceID(m.ToolCallID) {
		id, call.id = nil, t.reply.reply.id
	}
	if err := w.reaches(m, call.id); err != nil {
		return item{}, err
	}
	text, err := t.reply.replyText(m, id)
	at := anew
	if t.in == home {
		at = t.reply.at
	}
	return item{raw: text, at: at}, err
}

// partEdits makes parts the parts of a content.
func partEdits(v rawjson.Value, parts []string) ([]rawjson.Edit, error) {
	if !get(v, "parts").Exists() {
		return setAll(v, codec.Member{Key: "parts", Raw: codec.Array(parts)})
	}
	list, err := only(v, "parts")
	if err != nil {
		return nil, err
	}
	return spliced(list, parts), nil
}

func (c *content) firstCall() int {
	return c.first(func(p *piece) bool { return p.call != nil }, math.MaxInt)
}
func (c *content) firstReply() int {
	return c.first(func(p *piece) bool { return p.reply != nil }, anew)
}

func (c *content) first(is func(*piece) bool, none int) int {
	if c != nil {
		for _, p := range c.pieces {
			if is(p) {
				return p.at
			}
		}
	}
	return none
}
