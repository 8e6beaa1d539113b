package chat

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readPart reads a part from its text, which is one of three things:
//
//	"Hello"                                            the whole content
//	{"type": "text", "text": "Hello"}                  an element of a content list
//	{"role": "assistant", "reasoning_content": "Hm."}  members of the message
//
// The third one stands nowhere in one piece. It is a message with nothing but a
// role and what the part stands in, so that storage keeps all of it.
func readPart(v rawjson.Value) middleware.Part {
	p := middleware.Part{Kind: middleware.PartOpaque}
	switch {
	case v.Kind() == rawjson.String:
		p = middleware.Part{Text: v.Str()}
	case isOwn(v) && hasReasoning(v):
		p = middleware.Part{Kind: middleware.PartReasoning, Text: reasoningText(v)}
	case isOwn(v) && v.Get("refusal").Kind() == rawjson.String:
		p = middleware.Part{Text: v.Get("refusal").Str()}
	case v.Kind() == rawjson.Object && !isOwn(v):
		p = readItem(v)
	}
	p.Native = on.Native(v.Raw())
	return p
}

// isOwn tells the members of a message from an element of a list, which has no
// role. An element with a role would be taken for a message: readParts refuses it.
func isOwn(v rawjson.Value) bool { return v.Get("role").Exists() && !v.Get("type").Exists() }

// ownPart returns a part that stands in members of the message. The role in its
// Native is what tells it from an element of a list.
func ownPart(kind middleware.PartKind, text string, members ...lens.Member) middleware.Part {
	raw := codec.Object(append([]lens.Member{lens.Text("role", "assistant")}, members...)...)
	return middleware.Part{Kind: kind, Text: text, Native: on.Native(raw)}
}

// itemKind returns the type of an element of a content list. All that have a
// text are the same to a reader.
func itemKind(v rawjson.Value) string {
	kind := v.Get("type")
	word := kind.Str()
	if kind.Kind() == rawjson.String && word != "text" && word != "input_text" && word != "output_text" {
		return word
	}
	if v.Get("text").Kind() == rawjson.String {
		return "text"
	}
	return ""
}

// urlKinds are the types of elements that hold an address.
var urlKinds = []string{"image_url", "video_url", "audio_url", "document_url", "file_url"}

// readItem reads an element of a content list, such as
//
//	{"type": "text", "text": …}
//	{"type": "thinking", "thinking": [{"type": "text", "text": …}]}           Mistral
//	{"type": "image_url", "image_url": {"url": address or data}}
//	{"type": "input_audio", "input_audio": {"data": base64, "format": "wav"}}
//	{"type": "file", "file": {"filename": …, "file_data": data}}
//
// What cannot be told for sure is opaque: a file by its id, an address whose type is
// not known.
func readItem(v rawjson.Value) middleware.Part {
	kind := itemKind(v)
	switch {
	case kind == "text" || kind == "refusal":
		return middleware.Part{Text: v.Get(kind).Str()}
	case kind == "thinking":
		return middleware.Part{Kind: middleware.PartReasoning, Text: thinking(v.Get(kind))}
	case slices.Contains(urlKinds, kind):
		url := v.Get(kind).Str()
		if url == "" {
			url = v.Get(kind).Get("url").Str()
		}
		if mediaType, data, ok := codec.FromDataURL(url); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
		if kind == "image_url" && url != "" && !strings.HasPrefix(url, "data:") {
			return middleware.Part{Kind: middleware.PartMedia, URL: url}
		}
	case kind == "input_audio":
		data, err := base64.StdEncoding.DecodeString(v.Get(kind).Get("data").Str())
		if format := v.Get(kind).Get("format").Str(); err == nil && len(data) > 0 && format != "" {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: audioType(format), Data: data}
		}
	case kind == "file":
		if mediaType, data, ok := codec.FromDataURL(v.Get(kind).Get("file_data").Str()); ok {
			return middleware.Part{Kind: middleware.PartMedia, MediaType: mediaType, Data: data}
		}
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

// itemText returns p as an element of a content list.
func itemText(p middleware.Part) (string, error) {
	return rewrite(p.Native, p, codec.SamePart, form[middleware.Part]{
		read: func(v rawjson.Value) (middleware.Part, error) { return readPart(v), nil },
		fits: func(v rawjson.Value, was middleware.Part) bool {
			return v.Kind() != rawjson.String && !isOwn(v) && was.Kind == p.Kind
		},
		members: itemMembers,
	})
}

// itemMembers projects p onto an element of the same type as v or, without v, of
// the type that p is written as. What an element of that type has no member for
// is refused.
func itemMembers(v rawjson.Value, p middleware.Part) ([]lens.Member, error) {
	fresh, kind, url := !v.Exists(), itemKind(v), p.URL
	if len(p.Data) > 0 {
		url = codec.DataURL(p)
	}
	if fresh {
		kind = freshKind(p)
	}
	var members []lens.Member
	if fresh {
		members = append(members, lens.Text("type", kind))
	}
	switch {
	case kind == "text" || kind == "refusal":
		return append(members, lens.Text(kind, p.Text)), nil
	case kind == "thinking" && v.Get(kind).Kind() == rawjson.Array:
		return []lens.Member{lens.Raw(kind, thinkingList(p.Text))}, nil
	case kind == "thinking":
		return []lens.Member{lens.Text(kind, p.Text)}, nil
	case slices.Contains(urlKinds, kind) && v.Get(kind).Kind() == rawjson.String && url != "":
		return []lens.Member{lens.Text(kind, url)}, nil
	case slices.Contains(urlKinds, kind) && url != "":
		return append(members, lens.Text(kind+"/url", url)), nil
	case kind == "input_audio" && len(p.Data) > 0 && strings.HasPrefix(p.MediaType, "audio/"):
		return append(members, lens.Text("input_audio/data", base64.StdEncoding.EncodeToString(p.Data)),
			lens.Text("input_audio/format", audioFormat(p.MediaType))), nil
	case kind == "file" && len(p.Data) > 0:
		if fresh {
			members = append(members, lens.Text("file/filename", fileName(p.MediaType)))
		}
		return append(members, lens.Text("file/file_data", url)), nil
	}
	return nil, codec.Unencodablef("a part of kind %q without a place in its item", p.Kind)
}

// thinkingList is the content of a thinking item as Mistral writes it.
func thinkingList(text string) string {
	return codec.Array([]string{codec.Object(lens.Text("type", "text"), lens.Text("text", text))})
}

// freshKind returns the type of element that p is written as: images by address
// or data, sound as data, videos as most compatible servers want them, and any
// other data as a file. It is "" if there is none.
func freshKind(p middleware.Part) string {
	family, _, _ := strings.Cut(p.MediaType, "/")
	switch data := len(p.Data) > 0; {
	case p.Kind == middleware.PartText:
		return "text"
	case p.Kind != middleware.PartMedia, data && p.MediaType == "":
		return ""
	case family == "image" || family == "":
		return "image_url"
	case family == "video":
		return "video_url"
	case family == "audio" && data:
		return "input_audio"
	case data:
		return "file"
	}
	return ""
}

// fileName is for OpenAI, which wants a name beside the data of a file.
func fileName(mediaType string) string {
	_, sub, _ := strings.Cut(mediaType, "/")
	if sub == "" || strings.ContainsAny(sub, ".+;") {
		return "file"
	}
	return "file." + sub
}

// audioType returns the media type of what OpenAI calls a format of sound.
func audioType(format string) string {
	if format == "mp3" {
		return "audio/mpeg"
	}
	return "audio/" + format
}

// audioFormat returns what OpenAI calls a type of sound.
func audioFormat(mediaType string) string {
	switch _, sub, _ := strings.Cut(mediaType, "/"); sub {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave", "vnd.wave":
		return "wav"
	default:
		return sub
	}
}

// reasoningKeys are the members that servers put reasoning in. One that fills
// several says the same in each.
var reasoningKeys = []string{"reasoning_content", "reasoning", "reasoning_details"}

// hasReasoning reports whether a message has reasoning in any of its members.
func hasReasoning(v rawjson.Value) bool {
	return v.Get("reasoning_content").Str() != "" || v.Get("reasoning").Str() != "" ||
		v.Get("reasoning_details").Kind() == rawjson.Array && !v.Get("reasoning_details").Empty()
}

// reasoningText returns the reasoning of a message once.
func reasoningText(v rawjson.Value) string {
	for _, key := range reasoningKeys[:2] {
		if s := v.Get(key).Str(); s != "" {
			return s
		}
	}
	var b strings.Builder
	for d := range v.Get("reasoning_details").Each() {
		b.WriteString(d.Get("text").Str() + d.Get("summary").Str())
	}
	return b.String()
}

// readParts reads what a message says: reasoning first, then its content.
func readParts(v rawjson.Value) ([]middleware.Part, error) {
	var parts []middleware.Part
	if hasReasoning(v) {
		var members []lens.Member
		for _, key := range reasoningKeys {
			if m := v.Get(key); m.Kind() == rawjson.String || m.Kind() == rawjson.Array {
				members = append(members, lens.Raw(key, m.Raw()))
			}
		}
		parts = append(parts, ownPart(middleware.PartReasoning, reasoningText(v), members...))
	}
	switch content := v.Get("content"); content.Kind() {
	case rawjson.String:
		if content.Str() != "" {
			parts = append(parts, readPart(content))
		}
	case rawjson.Array:
		for item := range content.Each() {
			if isOwn(item) {
				return nil, codec.Shapef("a message in a content list")
			}
			parts = append(parts, readPart(item))
		}
	case rawjson.Object: // Cloudflare sends structured output as it is
		parts = append(parts, middleware.Part{Text: content.Raw(), Native: on.Native(rawjson.Quote(content.Raw()))})
	}
	if refusal := v.Get("refusal"); refusal.Str() != "" {
		parts = append(parts, ownPart(middleware.PartText, refusal.Str(), lens.Raw("refusal", refusal.Raw())))
	}
	if id := v.Get("audio").Get("id"); id.Str() != "" {
		audio := codec.Object(lens.Raw("id", id.Raw()))
		parts = append(parts, ownPart(middleware.PartOpaque, "", lens.Raw("audio", audio)))
	}
	return parts, nil
}

// sortParts tells the parts of a message that are its content from those in
// members of their own, of which it returns the members. Reasoning that this format did
// not write has no place: no provider takes another's. Text of reasoning_details
// cannot be told apart from what is signed there.
func sortParts(parts []middleware.Part) (items []middleware.Part, own []lens.Member, err error) {
	for _, p := range parts {
		v, err := on.Value(p.Native)
		switch {
		case err != nil:
			return nil, nil, err
		case !isOwn(v):
			if v.Exists() || p.Kind != middleware.PartReasoning {
				items = append(items, p)
			}
			continue
		}
		was := readPart(v)
		for m := range v.Each() {
			raw := m.Raw()
			switch {
			case m.Key() == "role":
				continue
			case codec.SamePart(p, was):
			case m.Kind() != rawjson.String || p.Kind != was.Kind:
				return nil, nil, codec.Unencodablef("%s holds a copy of what was changed", m.Key())
			default:
				raw = rawjson.Quote(p.Text)
			}
			own = append(own, lens.Raw(m.Key(), raw))
		}
	}
	return items, own, nil
}

// contentText writes parts as content: a text wherever that loses nothing, as
// not every server takes a list.
func contentText(role middleware.Role, parts []middleware.Part) (string, error) {
	assistant := role == middleware.RoleAssistant
	if len(parts) == 0 && assistant {
		return "null", nil
	}
	plain := len(parts) < 2 || assistant
	items, text := make([]string, len(parts)), ""
	for i, p := range parts {
		v, err := on.Value(p.Native)
		if err == nil {
			items[i], err = itemText(p)
		}
		if err != nil {
			return "", err
		}
		if p.Kind == middleware.PartMedia && assistant && !v.Exists() {
			return "", codec.Unencodablef("media in an assistant message")
		}
		plain = plain && p.Kind == middleware.PartText && (!v.Exists() || v.Kind() == rawjson.String)
		text += p.Text
	}
	if plain {
		return rawjson.Quote(text), nil
	}
	return codec.Array(items), nil
}
