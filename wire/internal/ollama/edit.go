package ollama

import (
	"slices"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// writer writes the messages of a request in order.
type writer struct {
	conversation
	ids  map[string]bool // of the turn's calls: whether it stands on the wire
	told codec.Pairing   // what a reader makes of the results so far
}

// write returns m as it stands in a request: its own text where nothing has
// changed.
func (w *writer) write(m middleware.Message) (string, error) {
	h, err := codec.Handle(m.Native, dialect, readAgain)
	if err != nil {
		return "", err
	}
	calls, err := w.writeCalls(m.ToolCalls)
	if err != nil {
		return "", err
	}
	if h == nil {
		return w.fresh(m, calls)
	}
	return w.edited(h, m, calls)
}

// readAgain makes a handle of a message that was stored.
func readAgain(raw string) (*message, error) {
	v, err := object(raw)
	if err != nil {
		return nil, err
	}
	m, err := new(conversation).read(v)
	if err != nil {
		return nil, codec.Unencodablef("the Native of a message is none")
	}
	return m.Native.Ref.(*message), nil
}

func (w *writer) writeCalls(calls []middleware.ToolCall) ([]string, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	w.begin(calls)
	w.told.Turn(w.turn)
	w.ids = map[string]bool{}
	raws := make([]string, len(calls))
	for i, c := range calls {
		raw, id, err := writeCall(c, false)
		if err != nil {
			return nil, err
		}
		raws[i] = raw
		w.ids[c.ID] = id != ""
	}
	return raws, nil
}

// resultID returns the id by which a result names its call on the wire.
func (w *writer) resultID(id string) string {
	if codec.IsPlaceID(id) && !w.ids[id] {
		return ""
	}
	return id
}

// reaches is ErrUnencodable if a reader takes the result for that of another
// call: without an id on the wire, only name and place tell.
func (w *writer) reaches(call, id, name string) error {
	i := w.told.Result(id, name)
	if _, known := w.ids[call]; known && id == "" && i >= 0 && w.turn[i].ID != call {
		return codec.Unencodablef("results in another order than their calls, which have no ids")
	}
	return nil
}

// fresh writes a message that is not of this format.
func (w *writer) fresh(m middleware.Message, calls []string) (string, error) {
	c, err := contentOf(m.Parts, false)
	if err != nil {
		return "", err
	}
	members := []codec.Member{{Key: "role", Raw: rawjson.Quote(string(m.Role))}, {Key: "content", Raw: rawjson.Quote(c.text)},
		quoted("thinking", c.thinking), listed("images", c.images), listed("tool_calls", calls)}
	if m.Role == middleware.RoleTool {
		_, name := w.result(m.ToolCallID, m.ToolName)
		id := w.resultID(m.ToolCallID)
		members = append(members, quoted("tool_name", name), quoted("tool_call_id", id))
		if err := w.reaches(m.ToolCallID, id, name); err != nil {
			return "", err
		}
	}
	return codec.Object(members...), nil
}

// listed is a member with a list, none for an empty one.
func listed(key string, items []string) codec.Member {
	if len(items) == 0 {
		return codec.Member{Key: key}
	}
	return codec.Member{Key: key, Raw: codec.Array(items)}
}

// edited writes what has changed in a message that was read.
func (w *writer) edited(h *message, m middleware.Message, calls []string) (string, error) {
	if m.IsError {
		return "", codec.Unencodablef("a mark of failure")
	}
	p := codec.NewPatch(h.value)
	if m.Role != h.snap.Role {
		p.Put(quoted("role", string(m.Role)))
	}
	if !sameParts(m.Parts, h.snap.Parts) {
		if err := h.editContent(p, m.Parts); err != nil {
			return "", err
		}
	}
	setList(p, h.value, "tool_calls", calls)
	if m.Role == middleware.RoleTool {
		if err := w.editResult(p, h, m); err != nil {
			return "", err
		}
	}
	return p.Text()
}

func (h *message) editContent(p *codec.Patch, parts []middleware.Part) error {
	old, err := contentOf(h.snap.Parts, false)
	if err != nil {
		return err
	}
	now, err := contentOf(parts, false)
	if err != nil {
		return err
	}
	if now.text != old.text {
		p.Set("content", rawjson.Quote(now.text))
	}
	if now.thinking != old.thinking {
		p.Put(quoted("thinking", now.thinking))
	}
	setList(p, h.value, "images", now.images)
	return nil
}

// editResult writes which call a result is for, unless that is what follows
// from its place.
func (w *writer) editResult(p *codec.Patch, h *message, m middleware.Message) error {
	id, name := w.result(h.id, h.name)
	onWire, nameThere := h.id, h.name
	if to := w.resultID(m.ToolCallID); m.ToolCallID != id && to != h.id {
		p.Put(quoted("tool_call_id", to))
		onWire = to
	}
	if m.ToolName != h.snap.ToolName && m.ToolName != name {
		key := "tool_name"
		if !h.value.Get(key).Exists() && h.name != "" {
			key = "name"
		}
		p.Put(quoted(key, m.ToolName))
		nameThere = m.ToolName
	}
	return w.reaches(m.ToolCallID, onWire, nameThere)
}

// setList makes items the elements of the list that stands in object under
// key.
func setList(p *codec.Patch, object rawjson.Value, key string, items []string) {
	list := object.Get(key)
	if list.Kind() != rawjson.Array {
		if len(items) > 0 {
			p.Put(listed(key, items))
		}
		return
	}
	if edits := codec.Splice(list, items); len(edits) > 0 {
		p.Add(edits, only(object, key))
	}
}

// only is the error of codec.Only.
func only(object rawjson.Value, key string) error {
	_, err := codec.Only(object, key)
	return err
}

func sameParts(a, b []middleware.Part) bool {
	return slices.EqualFunc(a, b, func(a, b middleware.Part) bool {
		return codec.SameNative(a.Native, b.Native) && codec.SamePart(a, b)
	})
}
