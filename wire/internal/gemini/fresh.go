package gemini

import (
	"encoding/base64"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
)

// freshRequest writes a request from its neutral fields.
func freshRequest(req *middleware.Request) ([]byte, error) {
	lead := leading(req.Messages)
	w := &writer{replyRole: "user"}
	items, err := w.contents(req.Messages[lead:])
	if err != nil {
		return nil, err
	}
	system := ""
	if lead > 0 {
		parts, err := systemParts(req.Messages[:lead], nil)
		if err != nil {
			return nil, err
		}
		system = freshContent("", parts)
	}
	tools, err := freshTools(req.Tools)
	if err != nil {
		return nil, err
	}
	members := []codec.Member{
		{Key: "systemInstruction", Raw: system},
		{Key: "contents", Raw: codec.Array(items)},
		{Key: "tools", Raw: tools},
	}
	members, err = codec.WithParams(members, req.Params)
	if err != nil {
		return nil, err
	}
	// These two hold further settings, which Params has: they are joined.
	members, err = join(members, "toolConfig", choice(req.ToolChoice))
	if err != nil {
		return nil, err
	}
	members, err = join(members, "generationConfig", []codec.Member{temperature(req.Temperature), maxTokens(req.MaxTokens), stop(req.Stop)})
	return []byte(codec.Object(members...)), err
}

// join adds set to the member key of members, where it does not stand yet.
func join(members []codec.Member, key string, set []codec.Member) ([]codec.Member, error) {
	object := codec.Object(set...)
	if object == "{}" {
		return members, nil
	}
	for i, m := range members {
		if !isName(m.Key, key) {
			continue
		}
		v, err := codec.ParseObject(m.Raw)
		if err != nil {
			return nil, codec.Unencodablef("%s in Params is no object", key)
		}
		var missing []codec.Member
		for _, s := range set {
			if !get(v, s.Key).Exists() {
				missing = append(missing, s)
			}
		}
		members[i].Raw, err = edited(v, missing...)
		return members, err
	}
	return append(members, codec.Member{Key: key, Raw: object}), nil
}

func freshContent(role string, parts []string) string {
	if len(parts) == 0 { // the server refuses a content without parts
		parts = []string{`{"text":""}`}
	}
	return codec.Object(codec.Member{Key: "role", Raw: quoteOrNone(role)}, codec.Member{Key: "parts", Raw: codec.Array(parts)})
}

// freshPart writes a part from its neutral fields.
func freshPart(p middleware.Part) (string, error) {
	switch p.Kind {
	case middleware.PartText:
		return codec.Object(codec.Member{Key: "text", Raw: rawjson.Quote(p.Text)}), nil
	case middleware.PartMedia:
		return freshMedia(p)
	}
	return "", codec.Unencodablef("a part of kind %q of another format", p.Kind)
}

func freshMedia(p middleware.Part) (string, error) {
	media := codec.Member{Key: "mimeType", Raw: quoteOrNone(p.MediaType)}
	switch {
	case len(p.Data) > 0 && p.MediaType == "":
		return "", codec.Unencodablef("data without a media type")
	case len(p.Data) > 0:
		data := codec.Member{Key: "data", Raw: `"` + base64.StdEncoding.EncodeToString(p.Data) + `"`}
		return codec.Object(codec.Member{Key: "inlineData", Raw: codec.Object(media, data)}), nil
	case p.URL != "":
		uri := codec.Member{Key: "fileUri", Raw: rawjson.Quote(p.URL)}
		return codec.Object(codec.Member{Key: "fileData", Raw: codec.Object(media, uri)}), nil
	}
	return "", codec.Unencodablef("media without data and address")
}

// freshCall writes a call from its neutral fields.
func freshCall(c middleware.ToolCall, answer bool) (string, error) {
	if err := callable(c); err != nil {
		return "", err
	}
	args, err := arguments(c.Arguments, answer)
	if err != nil {
		return "", err
	}
	id := c.ID
	if codec.IsPlaceID(id) {
		id = ""
	}
	call := codec.Object(
		codec.Member{Key: "id", Raw: quoteOrNone(id)},
		codec.Member{Key: "name", Raw: rawjson.Quote(c.Name)},
		codec.Member{Key: "args", Raw: args})
	return codec.Object(codec.Member{Key: "functionCall", Raw: call}), nil
}

func temperature(t *float64) codec.Member {
	m := codec.Member{Key: "temperature"}
	if t != nil {
		m.Raw = codec.Number(*t)
	}
	return m
}

func maxTokens(n int) codec.Member {
	m := codec.Member{Key: "maxOutputTokens"}
	if n != 0 {
		m.Raw = codec.Count(int64(n))
	}
	return m
}

func stop(texts []string) codec.Member {
	m := codec.Member{Key: "stopSequences"}
	if len(texts) > 0 {
		quoted := make([]string, len(texts))
		for i, s := range texts {
			quoted[i] = rawjson.Quote(s)
		}
		m.Raw = codec.Array(quoted)
	}
	return m
}
