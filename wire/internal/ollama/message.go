package ollama

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// conversation knows which call a result answers, as a reader of the messages so far takes it:
// by its id, else by its name, else by its place among the results. A result answers a call of
// the last message with calls.
type conversation struct {
	calls   int // so far
	turn    []middleware.ToolCall
	pairing codec.Pairing // of turn
}

// result is the reference of a tool message to its call.
type result struct{ id, name string }

// read reads the next message, and the reference of a result to its call. In the neutral
// message the id and the name of the call are complete; r has what is written.
func (c *conversation) read(v rawjson.Value) (m middleware.Message, r result, err error) {
	if v.Kind() != rawjson.Object {
		return m, r, codec.Shapef("a message of kind %s", v.Kind())
	}
	in := on.Reader()
	m.Role = middleware.Role(strings.ToLower(in.Text(v, "role"))) // as the server does
	m.Parts, m.Native = readParts(in, v), on.Native(v.Raw())
	for _, v := range in.Objects(v, "tool_calls") {
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
		r = result{in.Text(v, "tool_call_id"), in.Text(v, "tool_name")}
		if r.name == "" { // some clients write it under the key of other providers
			r.name = in.Text(v, "name")
		}
		whole := c.complete(r, c.pairing.Result(r.id, r.name))
		m.ToolCallID, m.ToolName = whole.id, whole.name
	}
	return m, r, in.Err
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

// readOrigin decodes n.
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

// text returns m as an element of a request: the text of its origin with its changes, or a
// fresh text.
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
		members, of := now.members(m.Role), r.members(o.v)
		return on.Object(slices.Concat(members, []lens.Member{lens.List("images", now.images), lens.List("tool_calls", calls)}, of)...), nil
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

// members projects the reference to a call. v is the message that is
// edited: a client that writes the name as other providers have it keeps its way.
func (r result) members(v rawjson.Value) []lens.Member {
	name := "tool_name"
	if !v.Get(name).Exists() && v.Get("name").Str() != "" {
		name = "name"
	}
	return []lens.Member{lens.Word(name, r.name), lens.Word("tool_call_id", r.id)}
}

// result returns the reference of m, a tool message, to its call: the one of its origin,
// unless a reader would take that for another call. The error is ErrUnencodable if a reader
// would find another call: without an id, only name and place identify it.
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

// readParts reads the parts of a message: its reasoning, its text and its images,
// in this order, which is the one in which models write them. An empty text is no
// part.
func readParts(in *lens.Reader, v rawjson.Value) (parts []middleware.Part) {
	for _, p := range []struct {
		key  string
		kind middleware.PartKind
	}{{"thinking", middleware.PartReasoning}, {"content", middleware.PartText}} {
		s := in.Kind(v, p.key, rawjson.String)
		if s.Str() != "" {
			parts = append(parts, middleware.Part{Kind: p.kind, Text: s.Str(), Native: on.Native(s.Raw())})
		}
	}
	for e := range in.Kind(v, "images", rawjson.Array).Each() {
		parts = append(parts, readImage(e))
	}
	return parts
}

// readImage reads an element of images. The server refuses elements that are not base64 or not
// an image; this package does not.
func readImage(v rawjson.Value) middleware.Part {
	data, err := base64.StdEncoding.DecodeString(v.Str())
	if err != nil || len(data) == 0 {
		return middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}
	}
	p := middleware.Part{Kind: middleware.PartMedia, Data: data, Native: on.Native(v.Raw())}
	if t := http.DetectContentType(data); strings.HasPrefix(t, "image/") {
		p.MediaType = t
	}
	return p
}

// content is what parts are on the wire. It does not tell where one text ended and
// the next began.
type content struct {
	text, thinking string
	images         []string
}

// members projects a message of that role, but for its lists.
func (c content) members(role middleware.Role) []lens.Member {
	return []lens.Member{lens.Text("role", string(role)), lens.Text("content", c.text), lens.Word("thinking", c.thinking)}
}

// contentOf joins parts. Reasoning that another provider wrote is left out,
// unless others is set.
func contentOf(parts []middleware.Part, others bool) (content, error) {
	var c content
	var text, thinking strings.Builder
	for _, p := range parts {
		own := on.Raw(p.Native) != ""
		switch {
		case p.Kind == middleware.PartText:
			text.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning && (others || own):
			thinking.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning:
		case p.Kind == middleware.PartOpaque && own:
			c.images = append(c.images, p.Native.Raw)
		case p.Kind == middleware.PartMedia && len(p.Data) > 0:
			c.images = append(c.images, imageText(p))
		case p.Kind == middleware.PartMedia:
			return c, codec.Unencodablef("an image that is only an address")
		default:
			return c, codec.Unencodablef("a part of another format")
		}
	}
	c.text, c.thinking = text.String(), thinking.String()
	return c, nil
}

// imageText returns p as an element of images: as it was written, if it is still
// the same.
func imageText(p middleware.Part) string {
	if v, err := on.Value(p.Native); err == nil && v.Exists() && bytes.Equal(readImage(v).Data, p.Data) {
		return v.Raw()
	}
	return `"` + base64.StdEncoding.EncodeToString(p.Data) + `"`
}

// readCall reads an element of tool_calls:
//
//	{"id": "call_1", "function": {"index": 0, "name": "weather", "arguments": {"city": "Oslo"}}}
//
// Its id is "" if it has none: the caller knows its place.
func readCall(v rawjson.Value) (c middleware.ToolCall, err error) {
	in := on.Reader()
	function := in.Kind(v, "function", rawjson.Object)
	c = middleware.ToolCall{ID: codec.Text(v.Get("id")), Name: in.Text(function, "name"), Arguments: argumentsOf(v), Native: on.Native(v.Raw())}
	if !function.Exists() {
		return c, codec.Shapef("a call without a function")
	}
	return c, in.Err
}

// argumentsOf returns the arguments of a call: an object or, as servers write it
// that are made like this one, a string that holds one.
func argumentsOf(call rawjson.Value) string {
	arguments := on.Get(on.Get(call, "function"), "arguments")
	if arguments.Kind() == rawjson.String {
		return arguments.Str()
	}
	return arguments.Raw()
}

// hasID reports whether the call of n has an id on the wire.
func hasID(n *middleware.Native) bool {
	v, err := on.Value(n)
	return err == nil && codec.Text(v.Get("id")) != ""
}

// callTexts returns calls as elements of tool_calls. Arguments that are not an
// object become {} in a request, and are ErrUnencodable in an answer. An index in an
// answer is the place of the call: clients put the calls of a stream together by it.
func callTexts(calls []middleware.ToolCall, answer bool) ([]string, error) {
	members := func(v rawjson.Value, c middleware.ToolCall) ([]lens.Member, error) {
		return callMembers(v, c, answer)
	}
	out := make([]string, len(calls))
	for i, c := range calls {
		if c.Kind != middleware.KindFunction {
			return nil, codec.Unencodablef("a call of kind %q", c.Kind)
		}
		var err error
		if out[i], err = lens.Rewrite(on, c.Native, c, codec.SameCall, readCall, members); err != nil {
			return nil, err
		}
		v, err := codec.ParseObject(out[i])
		if err == nil && answer && v.Get("function").Get("index").Exists() {
			out[i], err = on.Set(v, lens.Raw("function/index", codec.Count(int64(i))))
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// callMembers projects a call. v is the edited text, which shows how the arguments are
// written, and whether the call has an id. An id by place is not written into a call without
// an id.
func callMembers(v rawjson.Value, c middleware.ToolCall, answer bool) ([]lens.Member, error) {
	if codec.IsPlaceID(c.ID) && codec.Text(v.Get("id")) == "" {
		c.ID = ""
	}
	was := v.Get("function").Get("arguments")
	arguments := was.Raw()
	if !v.Exists() || c.Arguments != argumentsOf(v) {
		arguments = strings.TrimSpace(c.Arguments)
		switch object := codec.IsObject(arguments); {
		case !object && answer:
			return nil, codec.Unencodablef("arguments that are no JSON object")
		case !object:
			arguments = "{}"
		}
		if was.Kind() == rawjson.String {
			arguments = rawjson.Quote(arguments)
		}
	}
	return []lens.Member{lens.Word("id", c.ID), lens.Text("function/name", c.Name), lens.Raw("function/arguments", arguments)}, nil
}
