package chat

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// part is the handle of a part. Its Raw is one of three things: an element of a
// content list; a JSON string, which is the whole content; or a message with
// nothing but its role and members that are content as well, such as
// reasoning_content.
type part struct {
	native middleware.Native
	v      rawjson.Value
	snap   middleware.Part // as decoded; shares nothing that can be changed
	member bool            // the third of the three
}

// readPart decodes a part as it stands in Raw.
func readPart(v rawjson.Value) (middleware.Part, error) {
	h := &part{v: v}
	h.native = middleware.Native{Dialect: dialect, Raw: v.Raw(), Ref: h}
	p := middleware.Part{}
	switch {
	case v.Kind() == rawjson.String:
		p.Text = v.Str()
	case v.Kind() != rawjson.Object:
		p.Kind = middleware.PartOpaque
	case isMember(v):
		p, h.member = readMembers(v), true
	case v.Get("type").Kind() == rawjson.String:
		p = readItem(v, v.Get("type").Str())
	case v.Get("text").Kind() == rawjson.String:
		p.Text = v.Get("text").Str()
	default:
		p.Kind = middleware.PartOpaque
	}
	p.Native, h.snap = &h.native, p
	h.snap.Data = append([]byte(nil), p.Data...)
	return p, nil
}

// readItem decodes an element of a content list. What cannot be told for sure
// is opaque.
func readItem(v rawjson.Value, kind string) middleware.Part {
	opaque := middleware.Part{Kind: middleware.PartOpaque}
	switch kind {
	case "text", "input_text", "output_text":
		if t := v.Get("text"); t.Kind() == rawjson.String {
			return middleware.Part{Text: t.Str()}
		}
	case "refusal":
		return middleware.Part{Text: v.Get("refusal").Str()}
	case "thinking":
		return middleware.Part{Kind: middleware.PartReasoning, Text: thinking(v.Get("thinking"))}
	case "image_url", "video_url", "audio_url", "document_url", "file_url":
		url := urlOf(v, kind).Str()
		if mediaType, data, ok := codec.FromDataURL(url); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
		if kind == "image_url" && url != "" && !strings.HasPrefix(url, "data:") {
			return middleware.Part{Kind: middleware.PartMedia, URL: url}
		}
	case "input_audio":
		a := v.Get(kind)
		data, err := base64.StdEncoding.DecodeString(a.Get("data").Str())
		if format := a.Get("format").Str(); err == nil && len(data) > 0 && format != "" {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: audioType(format), Data: data}
		}
	case "file":
		if mediaType, data, ok := codec.FromDataURL(v.Get(kind).Get("file_data").Str()); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
	}
	return opaque
}

// urlOf returns where an item of a kind such as image_url holds its address:
// in an object, or as it is.
func urlOf(v rawjson.Value, kind string) rawjson.Value {
	u := v.Get(kind)
	if u.Kind() == rawjson.Object {
		return u.Get("url")
	}
	return u
}

// isMember tells the members of a message from an element of a list, which has
// no role.
func isMember(v rawjson.Value) bool { return v.Get("role").Exists() && !v.Get("type").Exists() }

// memberRaw returns the Raw of a part that stands in members of a message.
func memberRaw(members ...codec.Member) string {
	return codec.Object(append([]codec.Member{{Key: "role", Raw: `"assistant"`}}, members...)...)
}

// members returns what memberRaw was given.
func (h *part) members() []rawjson.Value {
	return slices.DeleteFunc(slices.Collect(h.v.Each()), func(m rawjson.Value) bool { return m.Key() == "role" })
}

// readMembers decodes a part that stands in members of the message.
func readMembers(v rawjson.Value) middleware.Part {
	f := readFields(v)
	switch {
	case f.hasReasoning():
		return middleware.Part{Kind: middleware.PartReasoning, Text: f.reasoningText()}
	case f.refusal.Kind() == rawjson.String:
		return middleware.Part{Text: f.refusal.Str()}
	}
	return middleware.Part{Kind: middleware.PartOpaque}
}

// thinking returns the text of a thinking item, which is a text or a list of
// texts.
func thinking(v rawjson.Value) string {
	if v.Kind() == rawjson.String {
		return v.Str()
	}
	var b strings.Builder
	for t := range v.Each() {
		b.WriteString(t.Get("text").Str())
	}
	return b.String()
}

// handleOf returns p's own handle; nil if p has none of this dialect.
func handleOf(p middleware.Part) (*part, error) {
	return codec.Handle(p.Native, dialect, func(raw string) (*part, error) {
		doc, err := codec.Parse(raw)
		if err != nil {
			return nil, err
		}
		again, err := readPart(doc.Root())
		if err != nil {
			return nil, err
		}
		return again.Native.Ref.(*part), nil
	})
}

// itemOf returns p as an element of a content list.
func itemOf(p middleware.Part) (string, error) {
	h, err := handleOf(p)
	switch {
	case err != nil:
		return "", err
	case h == nil || h.v.Kind() == rawjson.String || h.member:
		return freshItem(p)
	case codec.SamePart(p, h.snap):
		return h.v.Raw(), nil
	case p.Kind != h.snap.Kind:
		return freshItem(p)
	}
	edits, err := itemEdits(h.v, p)
	if err != nil {
		return "", err
	}
	return codec.Within(h.v, edits)
}

// itemEdits returns the edits that make the item v say what p does.
func itemEdits(v rawjson.Value, p middleware.Part) ([]rawjson.Edit, error) {
	switch kind := v.Get("type").Str(); kind {
	case "text", "input_text", "output_text", "":
		return codec.SetAll(v, codec.Member{Key: "text", Raw: rawjson.Quote(p.Text)})
	case "refusal":
		return codec.SetAll(v, codec.Member{Key: "refusal", Raw: rawjson.Quote(p.Text)})
	case "thinking":
		raw := rawjson.Quote(p.Text)
		if v.Get("thinking").Kind() == rawjson.Array {
			raw = `[{"type":"text","text":` + raw + `}]`
		}
		return codec.SetAll(v, codec.Member{Key: "thinking", Raw: raw})
	case "image_url", "video_url", "audio_url", "document_url", "file_url":
		at := urlOf(v, kind)
		url := p.URL
		if len(p.Data) > 0 {
			url = codec.DataURL(p)
		}
		if url != "" && at.Exists() {
			return []rawjson.Edit{codec.Replace(at, rawjson.Quote(url))}, nil
		}
	case "input_audio":
		if a := v.Get(kind); len(p.Data) > 0 && strings.HasPrefix(p.MediaType, "audio/") {
			return codec.SetAll(a, codec.Member{Key: "data", Raw: base64JSON(p.Data)},
				codec.Member{Key: "format", Raw: rawjson.Quote(audioFormat(p.MediaType))})
		}
	case "file":
		if len(p.Data) > 0 {
			return codec.SetAll(v.Get(kind), codec.Member{Key: "file_data", Raw: rawjson.Quote(codec.DataURL(p))})
		}
	}
	return nil, codec.Unencodablef("a changed part has no place in its item")
}
