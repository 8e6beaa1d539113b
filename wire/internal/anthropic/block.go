package anthropic

import (
	"encoding/base64"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// block is the handle of a part or a call: one content block.
type block struct {
	native middleware.Native
	v      rawjson.Value // what native.Raw holds: an object, or a string that stands for a text block
	kind   string        // its type
	part   middleware.Part
	call   middleware.ToolCall
	isCall bool
	odd    bool  // of an answer, and out of shape: history leaves it out
	early  bool  // it stands in the start of a stream's message
	home   *home // the message that it was decoded with, nil after storage
	at     int   // its place there
}

// home is the identity of a message; it has a size, so that no two are equal.
type home struct {
	answer bool // of the model: a request may have to hold it in another form
}

func newBlock(v rawjson.Value, h *home, at int) *block {
	b := &block{v: v, home: h, at: at}
	b.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: b}
	b.part.Native = &b.native
	return b
}

// bareBlock decodes a string that stands for a list of one text.
func bareBlock(v rawjson.Value, h *home) *block {
	b := newBlock(v, h, 0)
	b.kind, b.part.Text = "text", v.Str()
	return b
}

// readBlock decodes a content block of a message of that role.
func readBlock(v rawjson.Value, role middleware.Role, h *home, at int) (*block, error) {
	b := newBlock(v, h, at)
	if v.Kind() != rawjson.Object || v.Get("type").Kind() != rawjson.String {
		return nil, codec.Shapef("a content block without a type")
	}
	var err error
	switch b.kind = v.Get("type").Str(); {
	case b.kind == "text":
		b.part.Text, err = text(v, "text")
	case b.kind == "thinking":
		b.part.Kind = middleware.PartReasoning
		b.part.Text, err = text(v, "thinking")
	case b.kind == "redacted_thinking":
		b.part.Kind = middleware.PartReasoning
	case b.kind == "tool_use" && role == middleware.RoleAssistant:
		b.part, b.isCall = middleware.Part{}, true
		err = b.readCall()
	default:
		b.part.Kind = middleware.PartOpaque
		if b.kind == "image" || b.kind == "document" {
			b.readMedia()
		}
	}
	return b, err
}

// readAnswered decodes a content block of an answer: what is out of shape is
// opaque. The error wraps ErrShape: a client might read a call there.
func readAnswered(v rawjson.Value, h *home, at int) (*block, error) {
	if mayBeCall(v) {
		return nil, codec.Shapef("a call whose type is no tool_use")
	}
	b, err := readBlock(v, middleware.RoleAssistant, h, at)
	if err == nil || b != nil && b.isCall {
		return b, err
	}
	b = newBlock(v, h, at)
	b.kind, b.part.Kind, b.odd = v.Get("type").Str(), middleware.PartOpaque, true
	return b, nil
}

// mayBeCall reports whether a block looks like a call to a client that compares
// types without case, or takes what has an input for one.
func mayBeCall(v rawjson.Value) bool {
	typ := v.Get("type")
	if typ.Kind() == rawjson.String {
		return typ.Str() != "tool_use" && strings.EqualFold(typ.Str(), "tool_use")
	}
	for m := range v.Each() {
		if v.Kind() == rawjson.Object && strings.EqualFold(m.Key(), "input") {
			return true
		}
	}
	return false
}

// holdsCall reports whether a list of content has a call.
func holdsCall(content rawjson.Value) bool {
	for v := range content.Each() {
		if v.Get("type").Str() == "tool_use" || mayBeCall(v) {
			return true
		}
	}
	return false
}

func (b *block) readCall() (err error) {
	b.call = middleware.ToolCall{Arguments: b.v.Get("input").Raw(), Native: &b.native}
	if b.call.ID, err = idText(b.v, "id"); err != nil {
		return err
	}
	b.call.Name, err = idText(b.v, "name")
	return err
}

// idText is text for an id or a name: some servers write numbers, which clients
// read as text.
func idText(object rawjson.Value, key string) (string, error) {
	if v := object.Get(key); v.Kind() == rawjson.Number {
		return v.Raw(), nil
	}
	return text(object, key)
}

// readMedia reads what has neutral form; a file id or a list of blocks has
// none, and the part stays opaque.
func (b *block) readMedia() {
	source := b.v.Get("source")
	media := middleware.Part{Kind: middleware.PartMedia, MediaType: source.Get("media_type").Str(), Native: &b.native}
	switch source.Get("type").Str() {
	case "base64":
		data, err := base64.StdEncoding.DecodeString(source.Get("data").Str())
		if err != nil || len(data) == 0 {
			return
		}
		media.Data = data
	case "text":
		if media.Data = []byte(source.Get("data").Str()); len(media.Data) == 0 {
			return
		}
	case "url":
		if media.URL = source.Get("url").Str(); media.URL == "" {
			return
		}
		if b.kind == "document" && media.MediaType == "" {
			media.MediaType = "application/pdf" // the only one that the provider takes from an address
		}
	default:
		return
	}
	b.part = media
}

// text returns the string that the member key holds, "" where there is none.
func text(object rawjson.Value, key string) (string, error) {
	switch v := object.Get(key); v.Kind() {
	case rawjson.String:
		return v.Str(), nil
	case rawjson.Invalid, rawjson.Null:
		return "", nil
	default:
		return "", codec.Shapef("%s where the text of %s should be", v.Kind(), key)
	}
}

// blockOf returns the handle behind the Native of a part or, if isCall, of a
// call; nil for one of another dialect.
func blockOf(n *middleware.Native, isCall bool) (*block, error) {
	return codec.Handle(n, dialect, func(raw string) (*block, error) {
		role := middleware.RoleUser
		if isCall {
			role = middleware.RoleAssistant
		}
		doc, err := codec.Parse(raw)
		if err != nil {
			return nil, codec.Unencodablef("a Native that holds no content block")
		}
		if doc.Root().Kind() == rawjson.String && !isCall {
			return bareBlock(doc.Root(), nil), nil
		}
		b, err := readBlock(doc.Root(), role, nil, 0)
		if err != nil || isCall != b.isCall {
			return nil, codec.Unencodablef("a Native that holds another kind of content block")
		}
		return b, nil
	})
}

// withPart returns b's text with p in it.
func (b *block) withPart(p middleware.Part) (string, error) {
	if b.isCall {
		return "", codec.Unencodablef("a part with the Native of a tool call")
	}
	if codec.SamePart(p, b.part) {
		return b.native.Raw, nil
	}
	switch key := b.textKey(); {
	case p.Kind == middleware.PartMedia && b.part.Kind == middleware.PartMedia:
		return b.withMedia(p)
	case !b.onlyTextDiffers(p), key == "":
		return "", codec.Unencodablef("a block of a type that cannot be changed that way")
	case b.v.Kind() == rawjson.String:
		return quote(p.Text), nil
	default:
		return edited(b.v, kv(key, quote(p.Text)))
	}
}

// textKey names the member with the part's text; "" if it cannot be changed,
// as reasoning that the provider has signed.
func (b *block) textKey() string {
	switch {
	case b.kind == "text":
		return "text"
	case b.kind == "thinking" && b.v.Get("signature").Str() == "":
		return "thinking"
	}
	return ""
}

func (b *block) onlyTextDiffers(p middleware.Part) bool {
	p.Text = b.part.Text
	return codec.SamePart(p, b.part)
}

func (b *block) withMedia(p middleware.Part) (string, error) {
	kind, source, err := mediaSource(p)
	if err != nil {
		return "", err
	}
	members := []member{kv("source", source)}
	if kind != b.kind {
		members = append(members, kv("type", quote(kind)))
	}
	return edited(b.v, members...)
}

// withCall returns b's text with c in it. The provider refuses a history in
// which arguments are no object, so that lax writes {} for them.
func (b *block) withCall(c middleware.ToolCall, lax bool) (string, error) {
	was := b.v.Get("input")
	stays := c.Arguments == was.Raw()
	if lax { // what is no object stays only where the client itself sends it
		stays = c.Arguments == b.call.Arguments && (was.Kind() == rawjson.Object || b.home == nil || !b.home.answer)
	}
	if stays && codec.SameCall(c, b.call) {
		return b.native.Raw, nil
	}
	members, err := b.callMembers(c)
	if err != nil {
		return "", err
	}
	if !stays {
		input, err := inputOf(c, lax)
		if err != nil {
			return "", err
		}
		members = append(members, kv("input", input))
	}
	return edited(b.v, members...)
}

// callMembers returns the changes of c, but for its arguments.
func (b *block) callMembers(c middleware.ToolCall) ([]member, error) {
	if !b.isCall || c.Kind != middleware.KindFunction {
		return nil, codec.Unencodablef("a tool call of another kind")
	}
	var members []member
	if c.ID != b.call.ID {
		members = append(members, kv("id", quote(c.ID)))
	}
	if c.Name != b.call.Name {
		members = append(members, kv("name", quote(c.Name)))
	}
	return members, nil
}

// inputOf returns c's arguments as an object.
func inputOf(c middleware.ToolCall, lax bool) (string, error) {
	switch {
	case codec.IsObject(c.Arguments):
		return c.Arguments, nil
	case lax:
		return "{}", nil
	}
	return "", codec.Unencodablef("arguments that are no JSON object")
}
