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
)

// message is the handle behind a message.
type message struct {
	value    rawjson.Value
	id, name string // of a result, as written
	snap     middleware.Message
}

// conversation reads the messages of a request in order, and knows which call
// a result is for.
type conversation struct {
	calls   int // so far
	pairing codec.Pairing
	turn    []middleware.ToolCall
}

// read reads the next message.
func (c *conversation) read(v rawjson.Value) (middleware.Message, error) {
	h := &message{value: v}
	m, err := readContent(v)
	if err != nil {
		return m, err
	}
	list, err := member(v, "tool_calls", rawjson.Array)
	if err != nil {
		return m, err
	}
	for e := range list.Each() {
		c.calls++
		tc, err := readCall(e, codec.PlaceID(c.calls))
		if err != nil {
			return m, err
		}
		m.ToolCalls = append(m.ToolCalls, tc)
	}
	c.begin(m.ToolCalls)
	if m.Role == middleware.RoleTool {
		if h.id, h.name, err = readResult(v); err != nil {
			return m, err
		}
		m.ToolCallID, m.ToolName = c.result(h.id, h.name)
	}
	h.snap = m.Clone()
	m.Native = native(v, h)
	return m, nil
}

// begin starts the turn of an assistant message.
func (c *conversation) begin(calls []middleware.ToolCall) {
	if len(calls) > 0 {
		c.turn = slices.Clone(calls)
		c.pairing.Turn(c.turn)
	}
}

// result returns id and name of the next result, completed from its call.
func (c *conversation) result(id, name string) (string, string) {
	if i := c.pairing.Result(id, name); i >= 0 {
		if id == "" {
			id = c.turn[i].ID
		}
		if name == "" {
			name = c.turn[i].Name
		}
	}
	return id, name
}

// readResult reads what a tool message says of its call. Some clients write
// the name as other providers have it.
func readResult(v rawjson.Value) (id, name string, err error) {
	if id, err = text(v, "tool_call_id"); err != nil {
		return "", "", err
	}
	if name, err = text(v, "tool_name"); err == nil && name == "" {
		name, err = text(v, "name")
	}
	return id, name, err
}

// readContent reads the role and the parts of a message.
func readContent(v rawjson.Value) (middleware.Message, error) {
	var m middleware.Message
	if v.Kind() != rawjson.Object {
		return m, codec.Shapef("a message of kind %s", v.Kind())
	}
	role, err := text(v, "role")
	if err != nil {
		return m, err
	}
	m.Role = middleware.Role(strings.ToLower(role)) // as the server does
	for _, p := range []struct {
		key  string
		kind middleware.PartKind
	}{{"thinking", middleware.PartReasoning}, {"content", middleware.PartText}} {
		s, err := member(v, p.key, rawjson.String)
		if err != nil {
			return m, err
		}
		if !s.Empty() && s.Str() != "" {
			m.Parts = append(m.Parts, middleware.Part{Kind: p.kind, Text: s.Str(), Native: native(s, nil)})
		}
	}
	images, err := member(v, "images", rawjson.Array)
	if err != nil {
		return m, err
	}
	for e := range images.Each() {
		m.Parts = append(m.Parts, readImage(e))
	}
	return m, nil
}

// readImage reads an element of images. What is not base64, or no image, the
// server will refuse; it is not this package's to say so.
func readImage(v rawjson.Value) middleware.Part {
	data, err := base64.StdEncoding.DecodeString(v.Str())
	if err != nil || len(data) == 0 {
		return middleware.Part{Kind: middleware.PartOpaque, Native: native(v, nil)}
	}
	p := middleware.Part{Kind: middleware.PartMedia, Data: data, Native: native(v, nil)}
	if t := http.DetectContentType(data); strings.HasPrefix(t, "image/") {
		p.MediaType = t
	}
	return p
}

// content is what parts are on the wire.
type content struct {
	text, thinking string
	images         []string
}

// contentOf joins parts. Reasoning that another provider wrote is left out,
// unless others is set.
func contentOf(parts []middleware.Part, others bool) (content, error) {
	var c content
	var text, thinking strings.Builder
	for _, p := range parts {
		switch {
		case p.Kind == middleware.PartText:
			text.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning && (others || own(p.Native)):
			thinking.WriteString(p.Text)
		case p.Kind == middleware.PartReasoning:
		case p.Kind == middleware.PartOpaque && own(p.Native):
			c.images = append(c.images, p.Native.Raw)
		case p.Kind == middleware.PartMedia && len(p.Data) > 0:
			c.images = append(c.images, writeImage(p))
		case p.Kind == middleware.PartMedia:
			return c, codec.Unencodablef("an image that is only an address")
		default:
			return c, codec.Unencodablef("a part of another format")
		}
	}
	c.text, c.thinking = text.String(), thinking.String()
	return c, nil
}

// writeImage returns p as an element of images: as it was written, if it is
// still the same.
func writeImage(p middleware.Part) string {
	if own(p.Native) {
		if doc, err := codec.Parse(p.Native.Raw); err == nil && bytes.Equal(readImage(doc.Root()).Data, p.Data) {
			return p.Native.Raw
		}
	}
	return `"` + base64.StdEncoding.EncodeToString(p.Data) + `"`
}
