package responses

import (
	"strings"

	"github.com/toolmend/toolmend/internal/rawjson"
	"github.com/toolmend/toolmend/middleware"
	"github.com/toolmend/toolmend/wire/internal/codec"
	"github.com/toolmend/toolmend/wire/internal/lens"
)

// readContent reads the content of a message: a text or a list of blocks. A
// message without any is one opaque part, so that it is not lost.
func readContent(v rawjson.Value) ([]middleware.Part, error) {
	if content := v.Get("content"); content.Kind() == rawjson.String {
		return []middleware.Part{readBare(content)}, nil
	}
	blocks, err := on.Kind(v, "content", rawjson.Array)
	if err != nil {
		return nil, err
	}
	if !blocks.Exists() || blocks.Empty() {
		return []middleware.Part{readOpaque(v)}, nil
	}
	return readBlocks(blocks)
}

// readBlocks reads a list of blocks, each as one part.
func readBlocks(v rawjson.Value) (parts []middleware.Part, err error) {
	for b := range v.Each() {
		p, err := readBlock(b)
		if err != nil {
			return nil, err
		}
		parts = append(parts, p)
	}
	return parts, nil
}

// readBare reads a text that stands in the place of a list of blocks. The Native of
// the part is that text, which tells it from a block after storage.
func readBare(v rawjson.Value) middleware.Part {
	return middleware.Part{Text: v.Str(), Native: on.Native(v.Raw())}
}

// readOpaque reads what only the provider understands: a block or a whole item.
func readOpaque(v rawjson.Value) middleware.Part {
	return middleware.Part{Kind: middleware.PartOpaque, Native: on.Native(v.Raw())}
}

// readBlock reads one block of a message or of a result, such as
//
//	{"type": "output_text", "text": text, "annotations": [], "logprobs": []}
//	{"type": "input_image", "image_url": address}
//	{"type": "refusal", "refusal": text}
//
// A refusal is a text: clients show it as one.
func readBlock(v rawjson.Value) (p middleware.Part, err error) {
	if v.Kind() != rawjson.Object {
		return p, codec.Shapef("%s where a block should be", v.Kind())
	}
	if key := textMember(v.Get("type").Str()); key != "" {
		p.Native = on.Native(v.Raw())
		p.Text, err = on.Text(v, key)
		return p, err
	}
	if p = readMedia(v); p.URL != "" || p.Data != nil {
		p.Native = on.Native(v.Raw())
		return p, nil
	}
	return readOpaque(v), nil
}

// textMember names the member that holds a block's text.
func textMember(typ string) string {
	switch typ {
	case "input_text", "output_text", "text", "summary_text", "reasoning_text":
		return "text"
	case "refusal":
		return "refusal"
	}
	return ""
}

// isBlock reports whether p stands in a message, not as an item of its own. What
// came from elsewhere does, but for reasoning.
func isBlock(p middleware.Part) bool {
	v, err := on.Value(p.Native)
	if err != nil || v.Kind() != rawjson.Object {
		return v.Exists() || p.Kind != middleware.PartReasoning
	}
	typ := v.Get("type").Str()
	return textMember(typ) != "" || strings.HasPrefix(typ, "input_") || strings.HasPrefix(typ, "output_")
}

// readReasoning reads a reasoning item: its summaries, then the reasoning
// itself, where the server gives it.
func readReasoning(v rawjson.Value) (middleware.Part, error) {
	p := middleware.Part{Kind: middleware.PartReasoning, Native: on.Native(v.Raw())}
	all, err := reasoningTexts(v)
	texts := make([]string, len(all))
	for i, t := range all {
		texts[i] = t.Str()
	}
	p.Text = strings.Join(texts, between)
	return p, err
}

// between stands between the texts of one reasoning item.
const between = "\n\n"

// reasoningTexts returns the texts of a reasoning item in the order in which a
// stream shows them. The error wraps ErrShape.
func reasoningTexts(v rawjson.Value) (all []rawjson.Value, err error) {
	for _, key := range []string{"summary", "content"} {
		blocks, err := on.Kind(v, key, rawjson.Array)
		if err != nil {
			return nil, err
		}
		for b := range blocks.Each() {
			if _, err := on.Text(b, "text"); err != nil {
				return nil, err
			}
			all = append(all, b.Get("text"))
		}
	}
	return all, nil
}

// readMedia reads an image or a file. Neither URL nor Data: it is known only to the
// provider.
func readMedia(v rawjson.Value) middleware.Part {
	typ := v.Get("type").Str()
	for _, key := range map[string][]string{"input_image": {"image_url"}, "input_file": {"file_data", "file_url"}}[typ] {
		url := v.Get(key).Str()
		if url == "" {
			continue
		}
		p := middleware.Part{Kind: middleware.PartMedia, URL: url}
		switch {
		case typ == "input_file" && strings.HasSuffix(url, ".pdf"):
			p.MediaType = "application/pdf"
		case typ == "input_file":
			p.MediaType = "application/octet-stream" // not an image
		}
		if media, data, ok := codec.FromDataURL(url); ok {
			p.URL, p.MediaType, p.Data = "", media, data
		}
		return p
	}
	return middleware.Part{}
}

// partText returns p as a block or, if it was one, as an item: its own text with
// what has changed in it, or afresh. text is the type of a fresh text.
func partText(p middleware.Part, text string) (string, error) {
	v, err := on.Value(p.Native)
	if err != nil {
		return "", err
	}
	typ := v.Get("type").Str()
	if other := (typ == "input_text" || typ == "output_text") && typ != text; v.Kind() != rawjson.Object || other && p.Kind == middleware.PartText {
		v, typ = rawjson.Value{}, ""
	}
	var was middleware.Part
	switch {
	case !v.Exists():
	case isBlock(p):
		was, err = readBlock(v)
	case typ == "reasoning":
		was, err = readReasoning(v)
	default:
		was = readOpaque(v)
	}
	switch {
	case err != nil:
		return "", codec.Unencodablef("the Native of a part is none")
	case v.Exists() && codec.SamePart(was, p):
		return v.Raw(), nil
	case v.Exists() && was.Kind != p.Kind:
		return "", codec.Unencodablef("a part that became one of another kind")
	case typ == "reasoning":
		return editReasoning(p, v)
	}
	now, err := blockMembers(v, p, text)
	if err != nil {
		return "", err
	}
	before, _ := blockMembers(v, was, text)
	return on.Write(v, before, now)
}

// blockMembers projects p onto a block of the type of v or, without v, of the type that p is
// written as; text is the type of a text. An image has one member for an address and for
// data, a file two. Media without a type are taken for an image. logprobs spell a text out,
// and go when it changes.
func blockMembers(v rawjson.Value, p middleware.Part, text string) ([]lens.Member, error) {
	typ, url, ext, data := v.Get("type").Str(), p.URL, "", len(p.Data) > 0
	if data {
		url = codec.DataURL(p)
		_, ext, _ = strings.Cut(p.MediaType, "/")
	}
	switch {
	case v.Exists():
	case p.Kind == middleware.PartText:
		typ = text
	case text == "output_text": // the model writes no media
	case p.Kind == middleware.PartMedia && (strings.HasPrefix(p.MediaType, "image/") || p.MediaType == "" && !data):
		typ = "input_image"
	case p.Kind == middleware.PartMedia:
		typ = "input_file"
	}
	members := []lens.Member{lens.Text("type", typ)}
	switch key := textMember(typ); {
	case key != "" && p.Kind == middleware.PartText && (!v.Exists() || v.Get(key).Kind() == rawjson.String):
		members = append(members, lens.Text(key, p.Text))
		if probs := v.Get("logprobs"); probs.Kind() == rawjson.Array && !probs.Empty() && p.Text != v.Get(key).Str() {
			members = append(members, lens.Raw("logprobs", "[]"))
		}
		if !v.Exists() && typ == "output_text" {
			members = append(members, lens.Raw("annotations", "[]"))
		}
		return members, nil
	case p.Kind != middleware.PartMedia, url == "", data && p.MediaType == "":
	case typ == "input_image":
		return append(members, lens.Text("image_url", url)), nil
	case typ == "input_file" && !data:
		return append(members, lens.Text("file_url", url), lens.None("file_data")), nil
	case typ == "input_file":
		members = append(members, lens.None("file_url"), lens.Text("file_data", url))
		if !v.Exists() { // a file without a name is refused
			members = append(members, lens.Text("filename", "file."+ext))
		}
		return members, nil
	}
	return nil, codec.Unencodablef("a part of kind %q for which its block, or this format, has no member", p.Kind)
}

// editReasoning returns v with the text of p. If v has several texts, it cannot be
// known which part of the joined text belongs to which of them.
func editReasoning(p middleware.Part, v rawjson.Value) (string, error) {
	all, err := reasoningTexts(v)
	if err != nil || len(all) != 1 || all[0].Kind() != rawjson.String {
		return "", codec.Unencodablef("a change of reasoning that has no one text")
	}
	block := all[0].Parent()
	if _, err := on.Only(v, block.Parent().Key()); err != nil {
		return "", err
	}
	edits, err := on.Put(block, lens.Text("text", p.Text))
	if err != nil {
		return "", err
	}
	return codec.Within(v, edits)
}

// blocks returns parts as blocks of a message; text is the type of a fresh text:
// input_text for what the model reads, output_text for what it wrote. The blocks that
// stood there before, old, may be of any kind. Reasoning of another provider is left
// out.
func blocks(parts []middleware.Part, text string, old rawjson.Value) ([]string, error) {
	known := map[string]bool{}
	for b := range old.Each() {
		known[b.Raw()] = true
	}
	raws := make([]string, 0, len(parts))
	for _, p := range parts {
		own := on.Raw(p.Native)
		switch {
		case own == "" && p.Kind == middleware.PartReasoning:
			continue
		case known[own] && codec.SamePart(p, middleware.Part{Kind: middleware.PartOpaque}):
			raws = append(raws, own)
			continue
		case own != "" && !isBlock(p):
			return nil, codec.Unencodablef("an item inside of a message")
		}
		raw, err := partText(p, text)
		if err != nil {
			return nil, err
		}
		raws = append(raws, raw)
	}
	return raws, nil
}

// withContent returns the text of v with parts in its member key, which holds
// one text or a list of blocks. One text stays one; as soon as there is more to
// say, a list takes its place. text is the type of a fresh text.
func withContent(v rawjson.Value, key string, parts []middleware.Part, text string) (string, error) {
	content, err := on.Only(v, key)
	if err != nil {
		return "", err
	}
	if content.Kind() != rawjson.Array && len(parts) == 1 && parts[0].Kind == middleware.PartText {
		if content.Kind() == rawjson.String && content.Str() == parts[0].Text {
			return v.Raw(), nil
		}
		return on.Set(v, lens.Text(key, parts[0].Text))
	}
	raws, err := blocks(parts, text, content)
	if err != nil {
		return "", err
	}
	if content.Kind() == rawjson.Array {
		return codec.Within(v, codec.Splice(content, raws))
	}
	return on.Set(v, lens.Raw(key, codec.Array(raws)))
}

// freshContent returns one text as it is, anything else as a list of blocks.
func freshContent(parts []middleware.Part) (string, error) {
	if len(parts) == 0 {
		return `""`, nil
	}
	raws, err := blocks(parts, "input_text", rawjson.Value{})
	if len(parts) == 1 && parts[0].Kind == middleware.PartText && (err != nil || raws[0] != on.Raw(parts[0].Native)) {
		_, err := on.Value(parts[0].Native)
		return rawjson.Quote(parts[0].Text), err
	}
	return codec.Array(raws), err
}
