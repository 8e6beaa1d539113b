package anthropic

import (
	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// message is the handle of a neutral message: a message of the wire, its share
// of one, or a block of the top-level system prompt.
type message struct {
	native middleware.Native
	is     middleware.Message // as decoded
	home   *home
	group  *group // nil for the system prompt
	at     int    // which share of the group it is
	result *block // of a tool message: its tool_result
	answer bool   // decoded from an answer: blocks of empty text are no part of history
}

// group is a message of the wire, of which each tool message has a share.
type group struct {
	raw    string
	v      rawjson.Value // absent for one from an answer, until it is needed
	shares int
	loose  bool // after storage: what other shares there were is not known
}

func (g *group) value() (rawjson.Value, error) {
	if g.v.Exists() {
		return g.v, nil
	}
	return codec.ParseObject(g.raw)
}

// reader decodes the messages of one request.
type reader struct {
	handles []*message
	names   map[string]string // of the calls so far, by id
}

// system reads the top-level system prompt: a message for each block.
func (r *reader) system(v rawjson.Value) error {
	switch v.Kind() {
	case rawjson.Invalid, rawjson.Null:
	case rawjson.String:
		if v.Str() != "" {
			return r.systemBlock(v)
		}
	case rawjson.Array:
		for b := range v.Each() {
			if b.Kind() != rawjson.Object {
				return codec.Shapef("%s where a block should be", b.Kind())
			}
			if err := r.systemBlock(b); err != nil {
				return err
			}
		}
	default:
		return codec.Shapef("%s where the system prompt should be", v.Kind())
	}
	return nil
}

func (r *reader) systemBlock(v rawjson.Value) error {
	m := r.open(middleware.RoleSystem, nil)
	m.native.Raw = v.Raw()
	if v.Kind() == rawjson.String {
		m.append(bareBlock(v, m.home))
		return nil
	}
	return m.add(v)
}

// message reads a message of the wire.
func (r *reader) message(v rawjson.Value) error {
	if v.Kind() != rawjson.Object {
		return codec.Shapef("%s where a message should be", v.Kind())
	}
	role := middleware.Role(v.Get("role").Str())
	switch role {
	case middleware.RoleUser, middleware.RoleAssistant, middleware.RoleSystem:
	default:
		return codec.Shapef("a message of an unknown role")
	}
	g, first := &group{raw: v.Raw(), v: v}, len(r.handles)
	switch content := v.Get("content"); content.Kind() {
	case rawjson.String:
		m := r.open(role, g)
		m.append(bareBlock(content, m.home))
	case rawjson.Array:
		if err := r.blocks(content, role, g); err != nil {
			return err
		}
	case rawjson.Invalid, rawjson.Null:
	default:
		return codec.Shapef("%s where the content of a message should be", content.Kind())
	}
	if len(r.handles) == first {
		r.open(role, g)
	}
	for _, m := range r.handles[first:] {
		if m.native.Raw = g.raw; g.shares > 1 {
			m.native.Raw = m.share()
		}
	}
	return nil
}

// blocks makes a message of every tool result, and one of what stands between
// two of them.
func (r *reader) blocks(content rawjson.Value, role middleware.Role, g *group) error {
	var open *message
	for v := range content.Each() {
		if role == middleware.RoleUser && v.Get("type").Str() == "tool_result" {
			open = nil
			if err := r.result(v, g); err != nil {
				return err
			}
			continue
		}
		if open == nil {
			open = r.open(role, g)
		}
		if err := open.add(v); err != nil {
			return err
		}
		if n := len(open.is.ToolCalls); n > 0 {
			r.names[open.is.ToolCalls[n-1].ID] = open.is.ToolCalls[n-1].Name
		}
	}
	return nil
}

func (r *reader) result(v rawjson.Value, g *group) error {
	m := r.open(middleware.RoleTool, g)
	var err error
	if m.result, err = readBlock(v, middleware.RoleUser, m.home, 0); err != nil {
		return err
	}
	if m.is.ToolCallID, err = text(v, "tool_use_id"); err != nil {
		return err
	}
	m.is.ToolName = r.names[m.is.ToolCallID]
	switch v.Get("is_error").Kind() {
	case rawjson.Invalid, rawjson.Null:
	case rawjson.Bool:
		m.is.IsError = v.Get("is_error").Raw() == "true"
	default:
		return codec.Shapef("is_error is no boolean")
	}
	switch content := v.Get("content"); content.Kind() {
	case rawjson.String:
		m.append(bareBlock(content, m.home))
	case rawjson.Array:
		for b := range content.Each() {
			if err := m.add(b); err != nil {
				return err
			}
		}
	case rawjson.Invalid, rawjson.Null:
	default:
		return codec.Shapef("%s where the content of a result should be", content.Kind())
	}
	return nil
}

// open begins a message, as the next share of g.
func (r *reader) open(role middleware.Role, g *group) *message {
	m := &message{is: middleware.Message{Role: role}, home: new(home), group: g}
	m.native = middleware.Native{Dialect: dialect, Ref: m}
	if g != nil {
		m.at = g.shares
		g.shares++
	}
	r.handles = append(r.handles, m)
	return m
}

// add appends a part or a call.
func (m *message) add(v rawjson.Value) error {
	b, err := readBlock(v, m.is.Role, m.home, len(m.is.Parts)+len(m.is.ToolCalls))
	if err != nil {
		return err
	}
	m.append(b)
	return nil
}

func (m *message) append(b *block) {
	if b.isCall {
		m.is.ToolCalls = append(m.is.ToolCalls, b.call)
	} else {
		m.is.Parts = append(m.is.Parts, b.part)
	}
}

// share returns m as a message of its own. Other members of the message of the
// wire are not repeated: they would be, for each of its results.
func (m *message) share() string {
	var blocks []string
	if m.result != nil {
		blocks = []string{m.result.native.Raw}
	} else {
		for _, p := range m.is.Parts {
			blocks = append(blocks, p.Native.Raw)
		}
	}
	return codec.Object(kv("role", `"user"`), kv("content", codec.Array(blocks)))
}

// neutral returns what m was decoded to, sharing nothing that can be changed.
func (m *message) neutral() middleware.Message {
	out := m.is.Clone()
	out.Native = &m.native
	return out
}

// stored returns the handle of a message that comes from storage.
func stored(raw string) (*message, error) {
	doc, err := codec.Parse(raw)
	if err != nil {
		return nil, codec.Unencodablef("a Native that holds no message")
	}
	r := reader{names: map[string]string{}}
	if root := doc.Root(); root.Kind() == rawjson.Object && root.Get("role").Exists() {
		err = r.message(root)
	} else {
		err = r.systemBlock(root)
	}
	if err != nil || len(r.handles) != 1 {
		return nil, codec.Unencodablef("a Native that holds no message")
	}
	h := r.handles[0]
	if h.group != nil {
		h.group.loose = true
	}
	if h.is.Role == middleware.RoleAssistant && len(h.is.Parts)+len(h.is.ToolCalls) == 0 {
		h.group = nil // an answer without content: as it stands, a request cannot hold it
	}
	return h, nil
}

// unchanged reports whether m is what the handle was decoded to. The name of a
// tool message is not looked at: the wire has no place for it.
func (h *message) unchanged(m middleware.Message) bool {
	m.ToolName = h.is.ToolName
	return codec.SameMessage(m, h.is)
}

// adopted returns m, which comes from storage, with the handles of was where
// it holds the same.
func adopted(m, was middleware.Message) middleware.Message {
	m = m.Clone()
	for i := range min(len(m.Parts), len(was.Parts)) {
		m.Parts[i].Native = known(m.Parts[i].Native, was.Parts[i].Native)
	}
	for i := range min(len(m.ToolCalls), len(was.ToolCalls)) {
		m.ToolCalls[i].Native = known(m.ToolCalls[i].Native, was.ToolCalls[i].Native)
	}
	return m
}

// known returns was if n, which comes from storage, holds the same.
func known(n, was *middleware.Native) *middleware.Native {
	if n != nil && n.Ref == nil && n.Dialect == dialect && n.Raw == was.Raw {
		return was
	}
	return n
}
